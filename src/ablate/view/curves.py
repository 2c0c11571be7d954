"""Courses of a run, thinned as they are read, so that a page of hundreds of runs stays small.

Legend: R rows (row t = step t), N points kept, B buckets, S rows of a bucket, P probe rows, L linears, T rows
of the last tenth.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ablate.config import UserError
from ablate.record import Run, RunFolder, Series, site_of
from ablate.stats import Departure, first_departure

Floats = NDArray[np.float64]

OUT = "out/"
LINE_POINTS = 200  # points of a line at most
MAP_STEPS = 60  # columns of a heatmap at most
PROBES = 60  # probe rows at most
END_SHARE = 10  # the end of a run: its last tenth


@dataclass(frozen=True, eq=False)
class Line:
    """A thinned course: the lowest and the highest value of every stretch where they stood.

    Not finite: a stretch without a finite value. `broken`: (step, value before it) where the course first is
    not finite, None if it always is; NaN for a value before the first.
    """

    step_N: NDArray[np.int64]
    value_N: Floats
    broken: tuple[int, float] | None = None


@dataclass(frozen=True)
class BiasCourse:
    """One site's bias beside its weight's output, on the probe cadence: medians over the blocks.

    `wx` and `b` are parts of the output's L2 on one scale; `cancellable` is d·mean(b)²/‖b‖².
    """

    steps: tuple[int, ...]
    wx: tuple[float | None, ...]
    b: tuple[float | None, ...]
    cancellable: tuple[float | None, ...]


@dataclass(frozen=True, eq=False)
class Curves:
    """What the page keeps of one run's rows. Empty where rows are absent or unreadable."""

    sites: Mapping[str, Line] = field(default_factory=dict)  # largest output L2 over the blocks
    map_steps: tuple[int, ...] = ()
    maps: Mapping[str, Floats] = field(default_factory=dict)  # by linear, one value a map step
    biases: Mapping[str, BiasCourse] = field(default_factory=dict)  # by site


@dataclass(frozen=True)
class Against:
    """A run against its stable twin: what leaves first, what has grown most, growth at the end by site."""

    departure: Departure | None
    grown: tuple[str, float] | None
    sites: Mapping[str, float]  # largest over the blocks; infinite where not finite


def read_outputs(folder: RunFolder, ended: bool = False) -> tuple[dict[str, Floats], str]:
    """Output L2 of every linear, row t = step t; nothing if rows are absent, unreadable or have gaps.

    And why rows cannot be read, "" if they can. `ended`: the run has a verdict, so it must have rows.
    """
    try:
        series = Run(folder).series()
    except (OSError, UserError) as error:
        return {}, (error.strerror if isinstance(error, OSError) else None) or str(error).splitlines()[0]
    steps = series.steps
    if not steps.size:
        return {}, f"{folder.metrics().name} is missing or empty" if ended else ""
    if steps[0] != 0 or steps[-1] != steps.size - 1:
        return {}, f"{folder.metrics().name} begins late or has gaps"
    names = [name for name in series.columns if name.startswith(OUT)]
    return {name.removeprefix(OUT): series.column(name) for name in names}, ""


def read_biases(folder: RunFolder) -> dict[str, BiasCourse]:
    """The bias decomposition by site; nothing for a run without biases or without readable probes."""
    try:
        probes = Run(folder).series("probe")
    except (OSError, UserError):
        return {}
    if not len(probes):
        return {}
    linears = [name.removeprefix("wx/") for name in probes.columns if name.startswith("wx/")]
    return {site: _bias(probes, names) for site, names in by_site(linears).items()}


def curves(
    outputs: Mapping[str, Floats], planned: int, biases: Mapping[str, BiasCourse], points: int = LINE_POINTS
) -> Curves:
    """The courses of one run, thinned to `points`; `planned` steps set the columns of its heatmap."""
    if not outputs:
        return Curves(biases=biases)
    rows = len(next(iter(outputs.values())))
    stride = max(1, math.ceil(max(planned, rows) / MAP_STEPS))
    return Curves(
        sites={
            site: thinned(np.max([outputs[name] for name in names], axis=0), points)
            for site, names in by_site(outputs).items()
        },
        map_steps=tuple(range(0, rows, stride)),
        maps={name: largest(values_R, stride) for name, values_R in outputs.items()},
        biases=biases,
    )


def against(outputs: Mapping[str, Floats], twin: Mapping[str, Floats]) -> Against:
    """A run's outputs against its twin's."""
    common = [name for name in outputs if name in twin and outputs[name].size and twin[name].size]
    ends = _ends([outputs[name] for name in common], [twin[name] for name in common])
    grown_by = dict(zip(common, ends, strict=True))
    sites = {site: max(grown_by[name] for name in names) for site, names in by_site(grown_by).items()}
    grown = max(grown_by.items(), key=lambda item: (item[1], item[0]), default=None)
    return Against(first_departure(outputs, twin), grown, sites)


def by_site(linears: Sequence[str] | Mapping[str, object]) -> dict[str, list[str]]:
    """`{"down": ["b00_down", "b01_down"]}`: linears by what follows the block in their name."""
    found: dict[str, list[str]] = {}
    for name in linears:
        found.setdefault(site_of(name), []).append(name)
    return found


def thinned(values_R: Floats, points: int = LINE_POINTS) -> Line:
    """The course in at most about `points` points; spikes up and down stand where they stood."""
    finite_R = np.isfinite(values_R)
    kept_N = _extremes(values_R, finite_R, points) if values_R.size > points else np.arange(values_R.size)
    broken = None
    if not finite_R.all():
        first = int(np.argmin(finite_R))
        broken = first, float(values_R[first - 1]) if first else math.nan
    return Line(kept_N, values_R[kept_N], broken)


def largest(values_R: Floats, stride: int) -> Floats:
    """The largest value of every stretch of `stride` rows; not finite for one with a value that is not."""
    with np.errstate(invalid="ignore"):
        found = np.maximum.reduceat(np.abs(values_R), np.arange(0, values_R.size, stride))
    return np.where(np.isfinite(found), found, np.nan)


def plotted(values: Floats) -> list[float | None]:
    """Four digits, which is more than a figure shows; None for what is not finite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        place = 3 - np.floor(np.log10(np.abs(values)))
        scale = 10.0 ** np.where(np.isfinite(place), np.clip(place, -300, 300), 0.0)
        short = np.round(values * scale) / scale
    return [x if math.isfinite(x) else None for x in short.tolist()]


def _extremes(values_R: Floats, finite_R: NDArray[np.bool_], points: int) -> NDArray[np.int64]:
    """Where the lowest and the highest finite value of each bucket stand; a bucket's start if it has none."""
    width = math.ceil(values_R.size / (points // 2))
    count = math.ceil(values_R.size / width)
    padding = (0, count * width - values_R.size)
    value_BS = np.pad(values_R, padding).reshape(count, width)
    known_BS = np.pad(finite_R, padding).reshape(count, width)
    low_B = np.where(known_BS, value_BS, np.inf).argmin(axis=1)
    high_B = np.where(known_BS, value_BS, -np.inf).argmax(axis=1)
    start_B = np.arange(count) * width
    return np.unique(np.concatenate([start_B + low_B, start_B + high_B, [values_R.size - 1]]))


def _ends(values: Sequence[Floats], twins: Sequence[Floats]) -> list[float]:
    """Of each linear the geometric mean of value / twin's over the last tenth of the common steps.

    Infinite where one of these ratios is not finite, or the twin's value is not positive.
    """
    if not values:
        return []
    common = min(values[0].size, twins[0].size)
    end = slice(common - max(1, common // END_SHARE), common)
    value_LT, twin_LT = np.array([x[end] for x in values]), np.array([x[end] for x in twins])
    with np.errstate(all="ignore"):
        mean_L = np.exp(np.mean(np.log(value_LT / np.where(twin_LT > 0, twin_LT, np.nan)), axis=1))
    finite_L = np.isfinite(value_LT).all(axis=1) & np.isfinite(mean_L)
    return [float(x) for x in np.where(finite_L, mean_L, np.inf)]


def _bias(probes: Series, linears: Sequence[str]) -> BiasCourse:
    keep_P = np.unique(np.linspace(0, len(probes) - 1, min(PROBES, len(probes))).round().astype(int))
    columns = [
        _middle(probes, [column.format(name) for name in linears])[keep_P]
        for column in ("wx/{}", "bias/{}_norm", "bias/{}_cancellable")
    ]
    wx, b, cancellable = (tuple(plotted(values_P)) for values_P in columns)
    return BiasCourse(tuple(probes.steps[keep_P].tolist()), wx, b, cancellable)


def _middle(probes: Series, names: Sequence[str]) -> Floats:
    """Median over the blocks; NaN wherever one block is not finite or nothing is recorded."""
    found = [probes.column(name) for name in names if name in probes.columns]
    if not found:
        return np.full(len(probes), np.nan)
    stacked = np.array(found)
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(stacked).all(axis=0), np.median(stacked, axis=0), np.nan)
