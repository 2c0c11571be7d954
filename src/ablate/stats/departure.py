"""When a run's loss leaves its stable twin's, and which outputs had left before.

Legend: R rows (row t = step t), M running means.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ablate.stats.exact import Floats
from ablate.stats.twins import DEPARTED

LOSS_MARGIN = 0.1  # nats


@dataclass(frozen=True)
class Lead:
    """How many steps before the loss a site's output leaves the twin (negative: after it).

    `site_step` and `loss_step` are the first steps beyond the twin for good; None where it does not leave,
    and `steps` is None then.
    """

    site: str
    site_step: int | None
    loss_step: int | None

    @property
    def steps(self) -> int | None:
        if self.site_step is None or self.loss_step is None:
            return None
        return self.loss_step - self.site_step


def smoothing(steps: int) -> int:
    """Rows in a running mean of a run of so many planned steps: max(5, steps/20), as for the verdict."""
    return max(5, round(steps / 20))


def loss_departure(loss_R: Floats, twin_R: Floats, window: int, margin: float = LOSS_MARGIN) -> int | None:
    """First step from which the running mean of the loss stays more than `margin` nats above the twin's.

    Both runs see the same batches, so the unigram cross-entropy cancels: this is the difference of their
    excess losses s_t. Judged up to the last common step, for good: None if it ends within the margin. A mean
    over a loss that is not finite counts as above. The step is the one with which the mean ends.
    """
    common = min(loss_R.size, twin_R.size)
    return _leaves(loss_R[:common] - twin_R[:common], window, margin)


def output_departure(output_R: Floats, twin_R: Floats, window: int, factor: float = DEPARTED) -> int | None:
    """First step from which an output's L2 stays more than `factor` times its twin's, as for the loss.

    The running mean is that of the log ratio, over as many rows as the loss's, so that neither is late
    because of it. (`first_departure` takes the ratio step by step.)
    """
    common = min(output_R.size, twin_R.size)
    with np.errstate(all="ignore"):
        log_ratio_R = np.log(output_R[:common] / twin_R[:common])
    return _leaves(log_ratio_R, window, float(np.log(factor)))


def leads(
    outputs: Mapping[str, Floats],
    twin: Mapping[str, Floats],
    loss_R: Floats,
    twin_loss_R: Floats,
    window: int,
) -> tuple[Lead, ...]:
    """The lead of every site that both runs have; the earliest to leave first, those that stay last.

    A lead compares two thresholds (a factor 2 of the output, 0.1 nats of the loss): it says which is seen
    first, not which causes which.
    """
    loss_step = loss_departure(loss_R, twin_loss_R, window)
    found = [
        Lead(site, output_departure(outputs[site], twin[site], window), loss_step)
        for site in outputs.keys() & twin.keys()
    ]
    return tuple(sorted(found, key=lambda x: (x.site_step is None, x.site_step, x.site)))


def _leaves(above_R: Floats, window: int, margin: float) -> int | None:
    """First row from which every running mean is above the margin; one that is not finite is."""
    if above_R.size < window:
        return None
    bad_R = ~np.isfinite(above_R)
    total_R = np.concatenate([[0.0], np.cumsum(np.where(bad_R, 0.0, above_R))])
    broken_R = np.concatenate([[0], np.cumsum(bad_R)])
    mean_M = (total_R[window:] - total_R[:-window]) / window
    out_M = (mean_M > margin) | (broken_R[window:] > broken_R[:-window])
    back = np.flatnonzero(~out_M)
    first = int(back[-1]) + 1 if back.size else 0
    return first + window - 1 if first < out_M.size else None
