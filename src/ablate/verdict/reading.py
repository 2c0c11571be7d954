"""What the rules look at: the levels a loss is compared with, and the excess over the unigram.

Legend: R finite rows (those before the first non-finite one), M running means, E evaluations.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ablate.config import VerdictConfig
from ablate.verdict.curve import Curve, Floats, first_bad_step
from ablate.verdict.onset import Standing, excess_of, scale_of
from ablate.verdict.spikes import Rows, deviations
from ablate.verdict.windows import batch_noise, rolling_mean, scaled, smooth_window


@dataclass(frozen=True)
class Levels:
    """Where the loss starts, where the unigram lies, where the loss ends, in nats.

    NaN where there is nothing to read it from. `gap` = start − unigram; `scale` is the gap, or `min_gap`
    where that is larger. `notes` name everything that stands in for something missing.
    """

    start: float
    unigram: float
    final: float
    gap: float
    scale: float
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Reading:
    """A curve prepared for the rules; everything in it is a function of the curve and the thresholds."""

    curve: Curve
    thresholds: VerdictConfig
    levels: Levels
    loss_R: Floats
    excess_R: Floats

    @property
    def began_trained(self) -> bool:
        """Did it begin below the unigram, from trained weights? Its start is no level of knowing nothing."""
        levels = self.levels
        return levels.start < levels.unigram - self.thresholds.cap * levels.scale

    @cached_property
    def window(self) -> int:
        """Rows in one running mean."""
        return max(1, min(smooth_window(self.curve.steps, self.thresholds), self.loss_R.size))

    @cached_property
    def mean_M(self) -> Floats:
        """Running mean of the excess; element i ends with row i + window − 1."""
        return rolling_mean(self.excess_R, self.window)

    @cached_property
    def row_M(self) -> Floats:
        """The row with which each running mean ends."""
        return np.arange(self.mean_M.size, dtype=np.float64) + (self.window - 1)

    @cached_property
    def tolerance(self) -> float:
        """What a change of a running mean must exceed to count: `cap` gaps, and `noise` standard errors."""
        error = batch_noise(self.excess_R) / np.sqrt(self.window)
        return float(max(self.thresholds.cap * self.levels.scale, self.thresholds.noise * error))

    @cached_property
    def lowest(self) -> float:
        """The lowest running mean of the excess; NaN without rows."""
        return float(self.mean_M.min()) if self.mean_M.size else float("nan")

    @cached_property
    def end(self) -> float:
        """Median excess over the end of the run; NaN without rows."""
        return middle(ending(self.excess_R, self.thresholds))

    @cached_property
    def rise_M(self) -> Floats:
        """How far each running mean lies above the lowest one before it, or above the start if that is lower.

        A loss that explodes within the first window and only falls from there has risen too. The start is
        that of an average batch: an untrained model does not feel how hard its text is.
        """
        if not self.mean_M.size:
            return self.mean_M
        start = float(self.loss_R[0]) + float(np.median(self.excess_R - self.loss_R))
        return self.mean_M - np.minimum(np.minimum.accumulate(self.mean_M), start)

    @cached_property
    def outlying(self) -> Rows:
        """Rows on which two published rules agree: `sigmas` above the mean, `median_margin` above the median.

        Both are applied to the excess, so that a batch of hard text is no spike. Each alone misjudges some
        curves: the median rule takes small-batch noise for spikes, the deviations ripples of a quiet curve.
        """
        th, steps = self.thresholds, self.curve.steps
        scores_R = deviations(self.excess_R, scaled(th.sigma_window, steps, th))
        window = scaled(th.median_window, steps, th)
        return np.array(
            [
                row
                for row in np.flatnonzero(scores_R >= th.sigmas)
                if row + 1 >= window
                and self.excess_R[row] > middle(self.excess_R[row + 1 - window : row + 1]) + th.median_margin
            ],
            dtype=np.int64,
        )

    @cached_property
    def standing(self) -> Standing:
        """Where the run was last at its best."""
        return Standing.start(self.levels.gap, self.curve.steps, self.thresholds).after(self.excess_R)

    @cached_property
    def given_back(self) -> float:
        """Share of the best gain (start − lowest) that the end has lost again; NaN if nothing was gained."""
        gain = self.levels.gap - self.lowest
        return (self.end - self.lowest) / gain if gain > self.tolerance else float("nan")


def read(curve: Curve, thresholds: VerdictConfig) -> Reading:
    """Prepare a curve: cut it before its first non-finite row, find the levels, subtract the unigram."""
    loss_R = curve.loss_R[: first_bad_step(curve.loss_R, curve.grad_R)]
    unigram_R = curve.unigram_R[: loss_R.size]
    levels = _levels(curve, loss_R, unigram_R, thresholds)
    known = levels.unigram if np.isfinite(levels.unigram) else 0.0
    return Reading(curve, thresholds, levels, loss_R, excess_of(loss_R, unigram_R, known))


def ending(values_R: Floats, thresholds: VerdictConfig) -> Floats:
    """The last `tail` of the rows, at least `smooth_rows` of them (all, if there are fewer)."""
    return values_R[-max(thresholds.smooth_rows, round(thresholds.tail * values_R.size)) :]


def held_out(curve: Curve, step: int) -> float:
    """The held-out loss at a step (the last, if evaluated twice); NaN if it was not evaluated there."""
    at_E = curve.val_loss_E[curve.val_step_E == step]
    return float(at_E[-1]) if at_E.size else float("nan")


def _levels(curve: Curve, loss_R: Floats, unigram_R: Floats, thresholds: VerdictConfig) -> Levels:
    start, start_note = _first(
        (held_out(curve, 0), ""),
        (float(loss_R[0]) if loss_R.size else np.nan, "no held-out loss at step 0: the first training loss"),
    )
    final, final_note = _first(
        (held_out(curve, curve.steps), ""),
        (middle(ending(loss_R, thresholds)), "no held-out loss at the end: the last training losses"),
    )
    unigram, unigram_note = _first(
        (curve.unigram, ""),
        (middle(unigram_R[np.isfinite(unigram_R)]), "no held-out unigram level: that of the batches"),
        (start, "no unigram level at all: the start"),
    )
    gap = start - unigram
    scale = scale_of(gap, thresholds)
    scale_note = (
        ""
        if scale == gap
        else (
            f"the start ({nats(start)}) is not clearly above the unigram ({nats(unigram)}): "
            f"changes are measured against {thresholds.min_gap:g} nats in place of the gap"
        )
    )
    notes = tuple(note for note in (start_note, final_note, unigram_note, scale_note) if note)
    return Levels(start, unigram, final, gap, scale, notes)


def _first(*choices: tuple[float, str]) -> tuple[float, str]:
    """The first finite value, and the note that it stands in for the one before."""
    for value, note in choices:
        if np.isfinite(value):
            return value, f"{note} stands in ({nats(value)})" if note else ""
    return float("nan"), ""


def middle(values: Floats) -> float:
    """The median; NaN of nothing."""
    return float(np.median(values)) if values.size else float("nan")


def nats(value: float) -> str:
    """A loss for people: three decimals, or three digits where it is huge."""
    return f"{value:.3f}" if abs(value) < 1000 else f"{value:.3g}"
