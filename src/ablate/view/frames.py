"""A study's tables as data: plain values under named columns, the same for the same records.

What `--format csv` and `--format parquet` write. Nothing in them depends on where the folders
stand or on when they are read.
"""

import csv
import io
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ablate.stats import Effect, Estimate, NoiseFloor, Response, curve
from ablate.view.analysis import Analysis, Row
from ablate.view.results import Results, seed_of
from ablate.view.text import as_float, clean

Cell = str | float | int | bool | None


@dataclass(frozen=True)
class Frame:
    """A table: `name` is its file's name."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def frames(results: Results, analysis: Analysis) -> list[Frame]:
    """runs, points (arm × rate), seeds (arm × seed), arms, effects, floor."""
    return [
        _runs(results),
        _points(results),
        _seeds(results, analysis),
        _arms(results, analysis),
        _effects(analysis),
        _floor(analysis),
    ]


def csv_text(frame: Frame) -> str:
    """RFC 4180 with line feeds; floats round-trip, absent values are empty, booleans are true and false."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(frame.columns)
    writer.writerows([_written(cell) for cell in row] for row in frame.rows)
    return out.getvalue()


def write_parquet(frame: Frame, path: Path) -> None:
    """One parquet file; a column of numbers and absences is a column of floats."""
    import pyarrow
    import pyarrow.parquet

    columns = {
        name: pyarrow.array([row[i] for row in frame.rows], type=_arrow_type([row[i] for row in frame.rows]))
        for i, name in enumerate(frame.columns)
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), path, compression="zstd")


def _written(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return repr(cell) if isinstance(cell, float) else str(cell)


def _arrow_type(cells: Sequence[Cell]) -> object:
    import pyarrow

    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {bool}:
        return pyarrow.bool_()
    if kinds == {int}:
        return pyarrow.int64()
    return pyarrow.float64() if kinds and kinds <= {int, float} else pyarrow.string()


def _runs(results: Results) -> Frame:
    factors = list(results.study.factors)
    found = {r.run_id: arm for arm in results.arms for p in arm.points for r in p.runs}
    left_out = {r.folder: why for r, why in results.left_out}
    rows = []
    for run in (*results.runs, *(r for r, _ in results.left_out)):
        arm = None if run.folder in left_out else found.get(run.run_id)
        reasons = run.summary.get("reasons")
        rows.append(
            (
                run.run_id, None if arm is None else clean(arm.name),
                *(None if arm is None else clean(arm.levels.get(name)) for name in factors),
                run.lr, seed_of(run), run.state, run.verdict, run.run_id in results.impaired, run.val,
                as_float(run.summary.get("measures/l0")), as_float(run.summary.get("measures/u")), run.step,
                _whole(run.summary.get("first_bad_step")),
                "; ".join(clean(x) for x in reasons) if isinstance(reasons, list) else None,
                None if run.reason is None else clean(run.reason), run.fingerprint, left_out.get(run.folder),
                run.folder.name,
            )
        )  # fmt: skip
    columns = (
        "id", "arm", *factors, "lr", "seed", "state", "verdict", "impaired", "final_val", "start_val",
        "unigram",
        "steps", "first_bad_step", "reasons", "failure", "data", "left_out", "folder",
    )  # fmt: skip
    return Frame("runs", columns, tuple(sorted(rows, key=lambda row: (str(row[0]), str(row[-1])))))


def _points(results: Results) -> Frame:
    rows = []
    for arm in results.arms:
        at = curve(results.study, arm.name) if arm.name in results.study.arms else {}
        for point in arm.points:
            counts = Counter(results.word(r) for r in point.runs)
            found = at.get(point.lr) if point.lr is not None else None
            rows.append(
                (
                    clean(arm.name), point.lr, len(point.runs),
                    sum(r.verdict is not None for r in point.runs),
                    point.median_val(),
                    *(_estimate(found) if found is not None else (None,) * len(ESTIMATE)),
                    "; ".join(f"{counts[word]} {word}" for word in sorted(counts)),
                )
            )  # fmt: skip
    return Frame(
        "points", ("arm", "lr", "runs", "finished", "median_val", *ESTIMATE, "verdicts"), tuple(rows)
    )


def _seeds(results: Results, analysis: Analysis) -> Frame:
    rows = []
    for answer in analysis.arms:
        values = {
            response: dict(zip(found.seeds, found.per_seed, strict=True))
            for response, found in answer.estimates.items()
        }
        for seed, edge in answer.edges.items():
            parts = answer.sensitivities.get(seed)
            low, high = edge.bracket or (None, None)
            rows.append(
                (
                    clean(answer.arm.name), seed, None if math.isnan(edge.lr) else edge.lr, str(edge.bound),
                    low, high, edge.monotone, clean(edge.note),
                    *((parts.total, parts.below, parts.above, parts.best_lr) if parts else (None,) * 4),
                    values[Response.unstable].get(seed), values[Response.best_loss].get(seed),
                )
            )  # fmt: skip
    columns = (
        "arm", "seed", "lr_half", "bound", "bracket_low", "bracket_high", "monotone", "note", "sensitivity",
        "sensitivity_below", "sensitivity_above", "best_lr", "share_unstable", "loss_at_best_lr",
    )  # fmt: skip
    return Frame("seeds", columns, tuple(rows))


ESTIMATE = (
    "n", "mean", "sd", "low", "high", "interval", "bound", "n_capped", "n_censored", "n_missing", "notes",
)  # fmt: skip


def _estimate(found: Estimate) -> tuple[Cell, ...]:
    interval = found.interval
    return (
        found.n, _known(found.mean), _known(found.sd), None if interval is None else interval.low,
        None if interval is None else interval.high, None if interval is None else str(interval.kind),
        str(found.bound), found.n_capped, found.n_censored, found.n_missing, clean("; ".join(found.reasons)),
    )  # fmt: skip


def _arms(results: Results, analysis: Analysis) -> Frame:
    rows: list[tuple[Cell, ...]] = []
    for answer in analysis.arms:
        name, best = clean(answer.arm.name), answer.arm.best_lr
        for response, found in answer.estimates.items():
            rows.append((name, best, _name(response), *_estimate(found)))
        fit = answer.lr50
        interval = fit.interval
        rows.append(
            (
                name, best, "lr50", fit.n, _known(fit.lr), None, None if interval is None else interval.low,
                None if interval is None else interval.high, None if interval is None else str(interval.kind),
                str(fit.bound), 0, 0, fit.left_out, clean(fit.note),
            )
        )  # fmt: skip
    return Frame("arms", ("arm", "best_lr", "response", *ESTIMATE), tuple(rows))


def _effects(analysis: Analysis) -> Frame:
    rows = [
        (
            _name(row.contrast.response), clean(row.contrast.name), _kind(row),
            *_effect(row.effect), row.holm, row.floor, row.found,
            clean("; ".join(row.contrast.left_out)),
        )
        for row in (*analysis.rows, *analysis.within)
    ]  # fmt: skip
    columns = (
        "response", "contrast", "kind", *EFFECT, "p_holm", "noise_floor", "detected", "blocks_left_out",
    )  # fmt: skip
    return Frame("effects", columns, tuple(rows))


def _kind(row: Row) -> str:
    if row.contrast.within:
        return "within"
    return "main" if row.main else "interaction"


EFFECT = (
    *ESTIMATE, "flip_low", "flip_high", "p_t", "p_flip", "p_flip_attainable", "p_sign", "p_sign_attainable",
    "p", "mde",
)  # fmt: skip


def _effect(effect: Effect) -> tuple[Cell, ...]:
    flips = effect.flip_interval
    return (
        *_estimate(effect.estimate),
        *((None, None) if flips is None else (flips.low, flips.high)),
        None if effect.t is None else _known(effect.t.p),
        *((None, None) if effect.flip is None else (effect.flip.p, effect.flip.attainable)),
        *((None, None) if effect.sign is None else (effect.sign.p, effect.sign.attainable)),
        effect.p, effect.mde,
    )  # fmt: skip


def _floor(analysis: Analysis) -> Frame:
    rows: list[tuple[Cell, ...]] = []
    for response, floors in analysis.floors.items():
        for arm, like, effect in floors.pairs:
            found = effect.estimate
            rows.append(
                (_name(response), "placebo pair", clean(f"{arm} − {like}"), found.n, _known(found.mean),
                 _known(found.sd), max(map(abs, found.per_seed), default=None))
            )  # fmt: skip
        for what, by_task in (("main", floors.main), ("interaction", floors.interaction)):
            for task, floor in by_task.items():
                rows.append((_name(response), f"paired, {what}", f"placebo {task}".strip(), *_null(floor)))
        rows.append((_name(response), "unpaired", "disjoint seeds of the first arm", *_null(floors.unpaired)))
    return Frame("floor", ("response", "kind", "of", "n", "mean", "spread", "largest"), tuple(rows))


def _null(floor: NoiseFloor) -> tuple[Cell, ...]:
    return floor.n, None, _known(floor.rms), _known(floor.largest)


def _name(response: Response) -> str:
    return "ln_lr_half" if response is Response.edge else str(response)


def _known(x: float) -> float | None:
    return None if math.isnan(x) else x


def _whole(item: object) -> int | None:
    return item if isinstance(item, int) else None
