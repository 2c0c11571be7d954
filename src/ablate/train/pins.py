"""Where a run in training may turn out to have broken down: checkpoints from before that stay."""

from array import array
from collections.abc import Sequence

import numpy as np

from ablate.config import VerdictConfig
from ablate.record import Series
from ablate.train.rows import Row
from ablate.verdict import Standing, excess_of

_COLUMNS = ("train/loss", "train/unigram", "grad/norm")


class Pins:
    """Follows the rows as they are written, and looks at them only when it is asked.

    A function of the rows alone: after a resume, take the rows before the step it resumes at and it goes on
    as if there had been no interruption.
    """

    def __init__(self, columns: Sequence[str], steps: int, thresholds: VerdictConfig) -> None:
        """`columns` of the rows; `steps` of the whole run."""
        self._at = [columns.index(name) for name in _COLUMNS]
        self._steps, self._thresholds = steps, thresholds
        self._first: int | None = None  # the step of the first row
        self._new = array("d")  # of each row the three columns
        self._standing: Standing | None = None

    def see(self, rows: Sequence[Row]) -> None:
        """Take note of further rows, in the order of steps."""
        if self._first is None and rows:
            self._first = int(rows[0][0])
        self._new.extend(row[at] for row in rows for at in self._at)

    def recall(self, recorded: Series, before: int) -> None:
        """Take note of the rows before a step that are on the disk, and of nothing else."""
        steps_R = recorded.steps[recorded.steps < before]
        self._first = int(steps_R[0]) if len(steps_R) else None
        self._standing = None
        columns = [recorded.column(name)[: len(steps_R)] for name in _COLUMNS] if len(steps_R) else []
        self._new = array("d", np.array(columns).T.ravel())

    def onsets(self, start: float, unigram: float) -> tuple[int, int]:
        """Steps from which the run was no longer at its best, as far as its rows are known.

        The first is that of now, the second that of the largest rise: which of them counts is known at the
        end. `start`: held-out loss at step 0; `unigram`: level of the evaluation tokens, both in nats.
        """
        standing = self._standing or Standing.start(start - unigram, self._steps, self._thresholds)
        if self._new:
            loss_R, unigram_R, grad_R = np.array(self._new).reshape(-1, len(_COLUMNS)).T
            excess_R = excess_of(loss_R, unigram_R, unigram)
            standing = standing.after(np.where(np.isfinite(grad_R), excess_R, np.nan))
            self._new = array("d")
        self._standing = standing
        first = self._first or 0
        return first + standing.onset, first + standing.rise
