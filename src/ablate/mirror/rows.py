"""What of a record becomes rows of a W&B run: a pure function of the series.

A run of at most `budget` rows is sent whole. A longer one is cut into windows, and of each window those
rows stay that a line chart needs: the last one, and the ones with the lowest and the highest value of the
columns that show divergence (Jugel et al. 2014, M4). So no spike is lost, and beside the values stand the
largest ones of a window, which survive the service's own sampling. What is not finite cannot be drawn: it
is left out, and counted beside it.

Rows of a growing record only ever grow: those of the first n steps are the beginning of those of all steps.
Legend: R rows, K key columns, C columns.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import orjson
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ablate.record import Run, Series

Floats = NDArray[np.float64]
Row = dict[str, float | int]

STEP = "train/step"
LOSS, GRAD = "train/loss", "grad/norm"
CAPPED, NONFINITE, DIVERGED = "train/loss_capped", "status/nonfinite", "status/diverged"
LARGEST = {LOSS: "train/loss_max", GRAD: "grad/norm_max"}  # largest values of a window
LARGEST_OUT, OUT = "out/max", "out/"
WINDOWS = 100  # a run has at least so many windows of the largest values
DENSE, VAL, PROBE = "", "val", "probe"


@dataclass(frozen=True)
class Shape:
    """What must be known of a run beside its series: planned steps and the cadences, in steps (0: never)."""

    steps: int
    val_every: int
    probe_every: int

    @classmethod
    def of(cls, run: Run) -> "Shape":
        """Raises ConfigError for an unreadable configuration."""
        config = run.config
        return cls(config.optim.steps, config.eval.every, config.probe.every)


def rows_of(run: Run, budget: int, ended: bool) -> list[Row]:
    """The rows of a run as far as they are settled (all of them if it has `ended`).

    Raises UserError for a damaged record.
    """
    return mirrored_rows(
        run.series(DENSE), run.series(VAL), run.series(PROBE), Shape.of(run), budget, ended=ended
    )


def mirrored_rows(
    dense: Series, val: Series, probe: Series, shape: Shape, budget: int, ended: bool
) -> list[Row]:
    """See the module's text. `budget`: rows of each cadence, at most."""
    cadences = [
        _Cadence(dense, _dense_keys(dense), _width(shape.steps, 2, budget)),
        _Cadence(val, _val_keys(val), _width(_count(shape, shape.val_every), 1, budget)),
        _Cadence(probe, _probe_keys(probe), _width(_count(shape, shape.probe_every), 1, budget)),
    ]
    end = math.inf if ended else _settled(dense, val, probe, shape)
    # A window that is still open may yet want a row from before one that another cadence has closed.
    limit = min(cadence.closed(end) for cadence in cadences)
    rows: dict[int, Row] = {}
    for cadence in cadences:
        for place in cadence.kept(limit):
            step = int(cadence.series.values_RC[place, 0])
            row = rows.setdefault(step, {STEP: step, NONFINITE: 0})
            finite = _finite(cadence.series, place)
            row[NONFINITE] += len(cadence.series.columns) - 1 - len(finite)
            row.update(finite)
    beside = _beside(dense, shape)
    return [{**rows[step], **beside.get(step, {})} for step in sorted(rows)]


def digest(rows: Sequence[Mapping[str, float | int]]) -> str:
    """Tells whether the rows that were sent are still those of the record (16 hex digits)."""
    return hashlib.sha256(orjson.dumps(list(rows))).hexdigest()[:16]


def _settled(dense: Series, val: Series, probe: Series, shape: Shape) -> float:
    """The first step of which a row may still be missing while the run goes on."""
    ends: list[float] = [dense.steps[-1] + 1 if len(dense) else 0]
    for series, every in ((val, shape.val_every), (probe, shape.probe_every)):
        if every:
            ends.append(series.steps[-1] + every if len(series) else 0)
    return float(min(ends))


def _count(shape: Shape, every: int) -> int:
    return shape.steps // every + 1 if every else 1


def _width(planned: int, keys: int, budget: int) -> int:
    """Rows in a window: of each stay the last one and two for each key column."""
    return 1 if planned <= budget else math.ceil((1 + 2 * keys) * planned / budget)


@dataclass(frozen=True, eq=False)
class _Cadence:
    """One series cut into windows of `width` rows; `keys`: the columns whose extremes stay."""

    series: Series
    keys: Sequence[Floats]
    width: int

    def closed(self, end: float) -> float:
        """The step below which every row lies in a whole window, of those below `end`."""
        below = int(np.searchsorted(self.series.values_RC[:, 0], end))
        whole = below // self.width * self.width
        return float(self.series.values_RC[whole, 0]) if whole < below and math.isfinite(end) else end

    def kept(self, limit: float) -> list[int]:
        """Places of the rows that stay, of those below step `limit`."""
        below = int(np.searchsorted(self.series.values_RC[:, 0], limit))
        kept = {0}
        for start in range(0, below, self.width):
            stop = min(start + self.width, len(self.series))
            kept.add(stop - 1)
            for key_R in self.keys:
                kept |= _extremes(key_R[start:stop], start)
        return sorted(place for place in kept if place < below)


def _extremes(key_R: Floats, start: int) -> set[int]:
    """Places of the lowest and the highest value, and of every one that is not finite."""
    bad = np.flatnonzero(~np.isfinite(key_R))
    found = {start + int(i) for i in bad}
    if len(bad) < len(key_R):
        known_R = np.where(np.isfinite(key_R), key_R, np.nan)
        found |= {start + int(np.nanargmin(known_R)), start + int(np.nanargmax(known_R))}
    return found


def _dense_keys(dense: Series) -> list[Floats]:
    return [dense.column(name) for name in (LOSS, GRAD) if name in dense.columns]


def _val_keys(val: Series) -> list[Floats]:
    return [val.column("val/loss")] if "val/loss" in val.columns else []


def _probe_keys(probe: Series) -> list[Floats]:
    names = [name for name in probe.columns if name.endswith("_max_logit")]
    if not names:
        return []
    return [np.max(np.stack([probe.column(name) for name in names]), axis=0)]


def _finite(series: Series, place: int) -> Row:
    """The finite values of a row, by column; without the step."""
    values = series.values_RC[place].tolist()
    return {
        name: value
        for name, value in zip(series.columns[1:], values[1:], strict=True)
        if math.isfinite(value)
    }


def _beside(dense: Series, shape: Shape) -> dict[int, Row]:
    """What stands beside the values of every step: capped loss, largest values of a window, the marker."""
    if not len(dense) or LOSS not in dense.columns:
        return {}
    window = max(1, math.ceil(shape.steps / WINDOWS))
    loss_R = dense.column(LOSS)
    columns = {
        name: _trailing_max(dense.column(of), window) for of, name in LARGEST.items() if of in dense.columns
    }
    outs = [i for i, name in enumerate(dense.columns) if name.startswith(OUT)]
    if outs:
        columns[LARGEST_OUT] = _trailing_max(np.max(dense.values_RC[:, outs], axis=1), window)
    if math.isfinite(loss_R[0]):
        columns[CAPPED] = np.where(np.isfinite(loss_R), np.minimum(loss_R, loss_R[0]), loss_R[0])
    bad_R = ~np.isfinite(loss_R)
    if GRAD in dense.columns:
        bad_R |= ~np.isfinite(dense.column(GRAD))
    broken_R = np.maximum.accumulate(bad_R).astype(int).tolist()
    table = {name: column.tolist() for name, column in columns.items()}
    return {
        step: {DIVERGED: broken_R[i]} | {n: c[i] for n, c in table.items() if math.isfinite(c[i])}
        for i, step in enumerate(dense.steps.tolist())
    }


def _trailing_max(values_R: Floats, window: int) -> Floats:
    """Largest finite value of the last `window` rows; −inf where there is none."""
    known_R = np.where(np.isfinite(values_R), values_R, -np.inf)
    padded = np.concatenate([np.full(window - 1, -np.inf), known_R])
    return np.asarray(sliding_window_view(padded, window).max(axis=1))
