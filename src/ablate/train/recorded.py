"""How far the rows of a run reach, and so which checkpoints it can go on from."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ablate.config import Config
from ablate.record import RunFolder, read_series

DENSE = ""


@dataclass(frozen=True)
class Recorded:
    """The steps that have rows, by cadence ("" every step, `val`, `probe`).

    `planned`: steps of the run; `every`: steps from one row to the next, by cadence; `repetition`: a
    repetition from a checkpoint, whose rows may begin later than step 0.
    """

    planned: int
    steps: Mapping[str, NDArray[np.int64]]
    every: Mapping[str, int]
    repetition: bool

    @classmethod
    def of(cls, folder: RunFolder, config: Config) -> "Recorded":
        """Read the series of a run. Raises UserError for a damaged one."""
        every = {DENSE: 1, "val": config.eval.every}
        if config.probe.every:
            every["probe"] = config.probe.every
        steps = {cadence: read_series(folder.metrics(cadence)).steps for cadence in every}
        return cls(config.optim.steps, steps, every, folder.path.parent.name == "reruns")

    def obstacle(self, step: int) -> str | None:
        """Why the run cannot go on from the state before `step`; None if it can."""
        if step > self.planned:
            return f"the run has {self.planned} steps"
        first = self._first(step)
        # A repetition may measure more often than the rows that it took over.
        for cadence in (DENSE,) if self.repetition else self.every:
            wanted = np.arange(first, step, self.every[cadence])
            missing = np.setdiff1d(wanted, self.steps[cadence])
            if len(missing):
                name = f"metrics.{cadence}.jsonl" if cadence else "metrics.jsonl"
                return f"{name} has no row of step {missing[0]}"
        return None

    def _first(self, step: int) -> int:
        if not self.repetition:
            return 0
        rows_R = self.steps[DENSE]
        return int(rows_R[0]) if len(rows_R) else step
