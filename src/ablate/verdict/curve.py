"""What a verdict is made of (Curve) and what it is (Verdict).

Legend: R recorded rows (row t = step t), E evaluations.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Kind(StrEnum):
    """What became of a run."""

    stable = "stable"
    spiked = "spiked"
    diverged = "diverged"
    collapsed = "collapsed"
    undertrained = "undertrained"
    censored = "censored"


@dataclass(frozen=True, eq=False)
class Curve:
    """All that the verdict reads of a run. Losses are in nats per token.

    Row t holds the training loss, its batch's unigram cross-entropy and the gradient norm before update t.
    NaN in `unigram_R` or `unigram` means "not known"; an empty `grad_R` means "not recorded".
    `complete` says that the run reached its planned end or was stopped by its own non-finite values.
    """

    steps: int  # planned
    warmup: int  # steps
    loss_R: Floats
    unigram_R: Floats
    grad_R: Floats
    val_step_E: NDArray[np.int64]
    val_loss_E: Floats
    unigram: float  # cross-entropy of the evaluation tokens under the training unigram
    complete: bool

    def __post_init__(self) -> None:
        assert self.loss_R.ndim == 1, "one loss a row"
        assert self.loss_R.size <= self.steps, "one row a step"
        assert self.unigram_R.shape == self.loss_R.shape, "one unigram value a row"
        assert self.grad_R.shape in ((0,), self.loss_R.shape), "one gradient norm a row, or none at all"
        assert self.val_step_E.shape == self.val_loss_E.shape, "one step an evaluation"


@dataclass(frozen=True)
class Verdict:
    """A class, why (plain sentences with numbers), and the measures behind it (finite floats only).

    `step` is the first step with a non-finite loss, gradient norm or held-out loss; None if there is none.
    `onset` is the step at which a diverged or collapsed run broke down: `step` if there is one, otherwise the
    step from which it was no longer at its best. None for other runs, and for one that never left its best.
    """

    kind: Kind
    reasons: tuple[str, ...]
    step: int | None
    onset: int | None
    measures: dict[str, float]


def first_bad_step(loss_R: Floats, grad_R: Floats) -> int | None:
    """First row whose loss or gradient norm is NaN or infinite (an empty `grad_R` is not looked at)."""
    bad_R = ~np.isfinite(loss_R)
    if grad_R.size:
        bad_R = bad_R | ~np.isfinite(grad_R)
    return int(np.argmax(bad_R)) if bad_R.any() else None


def stop_after(loss_R: Floats, grad_R: Floats, patience: int) -> int | None:
    """Last row a run records: its first bad step and `patience − 1` rows more; None while all is finite.

    A function of the series alone, so that when rows are flushed never changes a record. The row may lie
    beyond the rows given.
    """
    bad = first_bad_step(loss_R, grad_R)
    return None if bad is None else bad + patience - 1
