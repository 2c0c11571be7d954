"""How fast rows go to the service: its published guidance for one project, all runs together."""

import time
from collections.abc import Callable

ROWS_A_MINUTE = 1_000  # https://docs.wandb.ai/models/track/limits, "Guidance at scale"
VALUES_A_MINUTE = 100_000


class Pace:
    """A minute's worth may go at once; beyond that rows wait, none is dropped."""

    def __init__(
        self,
        rows: float = ROWS_A_MINUTE,
        values: float = VALUES_A_MINUTE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits, self._clock = (rows, values), clock
        self._left = [float(rows), float(values)]
        self._then = clock()

    def take(self, values: int) -> bool:
        """May a row of so many values go now? If so it is counted. (One larger than a minute's worth may.)"""
        now = self._clock()
        for i, limit in enumerate(self._limits):
            self._left[i] = min(limit, self._left[i] + limit * (now - self._then) / 60.0)
        self._then = now
        needed = (1.0, min(float(values), self._limits[1]))
        if any(left < need for left, need in zip(self._left, needed, strict=True)):
            return False
        self._left = [left - need for left, need in zip(self._left, needed, strict=True)]
        return True
