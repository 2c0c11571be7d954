"""Are two series the same, bit for bit?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ablate.record.read import Series


@dataclass(frozen=True)
class Difference:
    """The first place where two series differ. A value is None where its series has no such row or column."""

    step: int
    column: str
    a: float | None
    b: float | None


def compare_series(a: Series, b: Series, columns: Sequence[str] | None = None) -> Difference | None:
    """The first difference of two series, by step and then by column; None if they are the same.

    Values are compared bit for bit, save that one NaN is as good as another. If one series starts later, the
    comparison starts there; from there on a row that only one has is a difference (in the column `step`), and
    so is a column that only one has. `columns` limits the comparison to some columns that both have.
    """
    if len(a) == 0 and len(b) == 0:
        return None
    if len(a) == 0 or len(b) == 0:
        step = int((b if len(a) == 0 else a).steps[0])
        return _missing_row(step, a, b)
    start = int(max(a.steps[0], b.steps[0]))
    if columns is None and set(a.columns) != set(b.columns):
        return _missing_column(start, a, b)
    steps_a, steps_b = a.steps[a.steps >= start], b.steps[b.steps >= start]
    odd = np.setxor1d(steps_a, steps_b)
    end = int(odd[0]) if len(odd) else None
    names = [name for name in (a.columns if columns is None else columns) if name != "step"]
    found = _first_unequal(a, b, names, start, end)
    if found is not None or end is None:
        return found
    return _missing_row(end, a, b)


def _first_unequal(a: Series, b: Series, names: list[str], start: int, end: int | None) -> Difference | None:
    """Among the steps from `start` to before `end`, which both series have."""
    rows_a, rows_b = _between(a, start, end), _between(b, start, end)
    left_RC = np.stack([a.column(name)[rows_a] for name in names], axis=1) if names else np.empty((0, 0))
    right_RC = np.stack([b.column(name)[rows_b] for name in names], axis=1) if names else np.empty((0, 0))
    # Bits, not values: 0.0 == -0.0 would hide a difference.
    same_RC = left_RC.view(np.int64) == right_RC.view(np.int64)
    same_RC |= np.isnan(left_RC) & np.isnan(right_RC)
    wrong = np.argwhere(~same_RC)
    if len(wrong) == 0:
        return None
    row, column = map(int, wrong[0])
    step = int(a.steps[rows_a][row])
    return Difference(step, names[column], float(left_RC[row, column]), float(right_RC[row, column]))


def _between(series: Series, start: int, end: int | None) -> slice:
    first, last = np.searchsorted(series.steps, [start, np.iinfo(np.int64).max if end is None else end])
    return slice(int(first), int(last))


def _missing_row(step: int, a: Series, b: Series) -> Difference:
    has_a, has_b = step in a.steps, step in b.steps
    return Difference(step, "step", float(step) if has_a else None, float(step) if has_b else None)


def _missing_column(step: int, a: Series, b: Series) -> Difference:
    both = (*a.columns, *b.columns)
    name = next(c for c in both if (c in a.columns) != (c in b.columns))
    value_a, value_b = (
        float(s.column(name)[s.steps >= step][0]) if name in s.columns and s.steps[-1] >= step else None
        for s in (a, b)
    )
    return Difference(step, name, value_a, value_b)
