"""When a run stops early: a function of its series alone, so that flush timing cannot change the record."""

import math
from dataclasses import dataclass


@dataclass
class StopRule:
    """Stop `patience` rows after the first row whose loss or gradient norm is not finite.

    With that row at step b, rows b … b + patience − 1 are recorded and nothing from `end` = b + patience on,
    in any cadence. `first_bad` is carried in checkpoints, so a resumed run stops at the same row.
    """

    patience: int
    first_bad: int | None = None

    def see(self, step: int, loss: float, gradient_norm: float) -> None:
        """Take note of a row; rows come in the order of steps."""
        if self.first_bad is None and not (math.isfinite(loss) and math.isfinite(gradient_norm)):
            self.first_bad = step

    @property
    def end(self) -> int | None:
        """The first step that is not recorded, once known."""
        return None if self.first_bad is None else self.first_bad + self.patience

    def reached(self, step: int) -> bool:
        """Is `step` beyond the record?"""
        return self.end is not None and step >= self.end
