"""Does the service hold, row by row, what the record says? W&B's own exit codes do not tell.

Legend: row i of ours against row i of theirs; a row of theirs may hold more (W&B's own `_step`, `_runtime`).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ablate.mirror.rows import STEP, Row

CLOSE = 1e-12  # relative: rows travel as JSON, and the service may keep them in another form


def first_difference(ours: Sequence[Row], theirs: Sequence[Mapping[str, Any]]) -> str | None:
    """Where the rows of the service first differ from the record's, in words; None if they do not."""
    for mine, other in zip(ours, theirs, strict=False):
        for key, value in mine.items():
            if not _same(value, other.get(key)):
                return f"at step {mine[STEP]}, {key} is {other.get(key)!r} there and {value!r} here"
    if len(ours) != len(theirs):
        return f"{len(theirs)} rows there, {len(ours)} here"
    return None


def _same(mine: float, other: object) -> bool:
    if isinstance(other, bool) or not isinstance(other, int | float):
        return False
    return math.isclose(mine, other, rel_tol=CLOSE, abs_tol=0.0)
