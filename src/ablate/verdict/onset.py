"""Where a run left its best level: the step at which a breakdown with finite values begins.

Legend: R rows of a block, W rows of a running mean.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from ablate.config import VerdictConfig
from ablate.verdict.curve import Floats, first_bad_step
from ablate.verdict.windows import rolling, smooth_window


@dataclass(frozen=True, eq=False)
class Standing:
    """How a run stands after some of its rows, as a function of their excess alone.

    A row is *well* while the running mean of the excess has lost no more than `well` of the best gain so far:
    mean ≤ lowest + well · max(gap − lowest, scale). The gain is that of the verdict's `giveback`; one smaller
    than the scale would make noise count as a loss. Before the first full window the mean is over the rows
    there are. From the first non-finite value on no row is well, and none is looked at.

    Rows may be given in blocks of any length: what follows from them is the same, bit for bit.
    """

    gap: float  # NaN ("not known") counts as no gain
    thresholds: VerdictConfig
    window: int
    rows: int = 0  # looked at
    lowest: float = float("inf")  # running mean
    last_well: int = -1
    highest: float = float("-inf")  # largest rise of the running mean above the lowest one so far
    well_before: int = -1  # the last well row when that rise was reached
    over: bool = False
    _recent_W: Floats = field(default_factory=lambda: np.empty(0))  # the last W − 1 rows

    @classmethod
    def start(cls, gap: float, steps: int, thresholds: VerdictConfig) -> "Standing":
        """Before any row of a run of `steps` steps; `gap` in nats, as in the verdict."""
        return cls(gap, thresholds, smooth_window(steps, thresholds))

    @property
    def onset(self) -> int:
        """The step after the last well one; as many as there are rows, while the run is well."""
        return self.last_well + 1

    @property
    def rise(self) -> int:
        """The step at which the largest rise began: the step after the last well one before its top."""
        return self.well_before + 1

    @property
    def well(self) -> bool:
        """Is the last row well?"""
        return not self.over and self.last_well == self.rows - 1

    def after(self, excess_R: Floats) -> "Standing":
        """The standing after further rows (excess over the unigram of each, in nats)."""
        bad = first_bad_step(excess_R, np.empty(0))
        seen_R = excess_R[:bad]
        if self.over or not seen_R.size:
            return replace(self, over=self.over or bad is not None)
        with np.errstate(all="ignore"):
            return replace(self._after(seen_R), over=bad is not None)

    def _after(self, excess_R: Floats) -> "Standing":
        known_R = np.concatenate((self._recent_W, excess_R))
        mean_R = self._means(known_R, excess_R.size)
        lowest_R = np.minimum(np.minimum.accumulate(_or(mean_R, np.inf)), self.lowest)
        gain_R = np.fmax(self.gap - lowest_R, scale_of(self.gap, self.thresholds))
        well_R = np.isfinite(mean_R) & (mean_R <= lowest_R + self.thresholds.well * gain_R)
        row_R = np.arange(self.rows, self.rows + excess_R.size)
        last_R = np.maximum.accumulate(np.where(well_R, row_R, self.last_well))
        rise_R = np.nan_to_num(mean_R - lowest_R, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
        top = int(np.argmax(rise_R))
        higher = bool(rise_R[top] > self.highest)
        return replace(
            self,
            rows=self.rows + excess_R.size,
            lowest=float(lowest_R[-1]),
            last_well=int(last_R[-1]),
            highest=float(rise_R[top]) if higher else self.highest,
            well_before=int(last_R[top]) if higher else self.well_before,
            _recent_W=known_R[max(0, known_R.size - (self.window - 1)) :],
        )

    def _means(self, known_R: Floats, new: int) -> Floats:
        """The running mean that ends with each new row; `known_R`: older rows and the new ones."""
        growing = range(self.rows + 1, min(self.window, self.rows + new + 1))
        first = np.array([known_R[:count].mean() for count in growing])
        # Contiguous: then the order of a sum, and so its rounding, is the same for any number of windows.
        full = rolling(known_R, self.window, lambda windows: np.ascontiguousarray(windows).mean(axis=1))
        return np.concatenate((first, full))


def excess_of(loss_R: Floats, unigram_R: Floats, known: float) -> Floats:
    """Loss minus the unigram cross-entropy of its batch, in nats; `known` stands in for one not finite."""
    return loss_R - np.where(np.isfinite(unigram_R), unigram_R, known)


def scale_of(gap: float, thresholds: VerdictConfig) -> float:
    """The gap, or `min_gap` if the gap is smaller, or is not known."""
    return gap if np.isfinite(gap) and gap >= thresholds.min_gap else thresholds.min_gap


def _or(values: Floats, instead: float) -> Floats:
    return np.where(np.isfinite(values), values, instead)
