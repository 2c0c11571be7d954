"""A repetition against the run it repeats: every series they share, row by row."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ablate.record import Difference, Run, Series, compare_environments, compare_series
from ablate.sweep.rerun import CADENCES


@dataclass(frozen=True)
class Comparison:
    """`difference`: the first one by step, None if exact; `cadence`: the series it stands in.

    `rows` and `columns` count what was compared in the per-step series, `sparse` the rows of the other
    series; `setting`: what differs between the two runs' settings, in words.
    """

    difference: Difference | None
    cadence: str
    rows: int
    columns: int
    sparse: int
    setting: tuple[str, ...]

    @property
    def exact(self) -> bool:
        return self.difference is None


def compare_runs(original: Run, repetition: Run, start: int = 0, shared_only: bool = False) -> Comparison:
    """Compare two runs from step `start` on, bit for bit.

    `shared_only`: only steps and columns that both recorded (the repetition measures other things, or at
    another cadence); otherwise a row or column that one lacks is a difference.
    """
    found: list[tuple[Difference, str]] = []
    sizes: dict[str, tuple[int, int]] = {}
    for cadence in CADENCES:
        a, b = (_from(run.series(cadence), start) for run in (original, repetition))
        if shared_only:
            a, b = _shared(a, b)
        sizes[cadence] = len(b), len(b.columns) - 1
        if (difference := compare_series(a, b)) is not None:
            found.append((difference, cadence))
    first, cadence = min(found, key=lambda pair: pair[0].step, default=(None, ""))
    rows, columns = sizes[""]
    sparse = sum(size[0] for name, size in sizes.items() if name)
    setting = tuple(compare_environments(original.meta, repetition.meta))
    return Comparison(first, cadence, rows, columns, sparse, setting)


def _from(series: Series, start: int) -> Series:
    return Series(series.columns, series.values_RC[series.steps >= start], series.torn)


def _shared(a: Series, b: Series) -> tuple[Series, Series]:
    steps = np.intersect1d(a.steps, b.steps)
    columns = [name for name in a.columns if name in b.columns]
    return _pick(a, steps, columns), _pick(b, steps, columns)


def _pick(series: Series, steps: "np.typing.NDArray[np.int64]", columns: Sequence[str]) -> Series:
    places = [series.columns.index(name) for name in columns]
    return Series(tuple(columns), series.values_RC[np.isin(series.steps, steps)][:, places], series.torn)
