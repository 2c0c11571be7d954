"""Which rules see an excursion in a run, in words.

Legend: R finite rows, M running means.
"""

import numpy as np

from ablate.verdict.reading import Reading, nats
from ablate.verdict.spikes import kill_high_loss, kill_loss_spike
from ablate.verdict.windows import batch_noise, kill_window, rolling_mean


def excursions(reading: Reading) -> tuple[str, ...]:
    """One sentence for every rule that sees the loss leave its path; empty if none does."""
    return (*_kill(reading), *_outlying(reading), *_above_start(reading), *_leapt(reading), *_risen(reading))


def _kill(reading: Reading) -> tuple[str, ...]:
    th, window = reading.thresholds, kill_window(reading.curve.steps, reading.thresholds)
    reasons = []
    spikes = kill_loss_spike(reading.loss_R, window, th.spike_times, th.spike_steps)
    if spikes.size:
        reasons.append(
            f"KillLossSpike: {th.spike_steps} losses in a row ≥ {th.spike_times:g} times the mean of "
            f"{window}, first at step {spikes[0]}"
        )
    high = kill_high_loss(reading.loss_R, window, th.high_loss)
    if high.size:
        reasons.append(f"KillLossSpike: half of {window} losses above the loss cap, first at step {high[0]}")
    return tuple(reasons)


def _outlying(reading: Reading) -> tuple[str, ...]:
    th, rows = reading.thresholds, reading.outlying
    if not rows.size:
        return ()
    top = rows[np.argmax(reading.excess_R[rows])]
    return (
        f"{rows.size} steps ≥ {th.sigmas:g} σ above the rolling mean and > {th.median_margin:g} above the "
        f"rolling median, first at step {rows[0]}; "
        f"the loss reaches {nats(reading.loss_R[top])} at step {top}",
    )


def _above_start(reading: Reading) -> tuple[str, ...]:
    """Above the loss at step 0 after warm-up, by more than noise."""
    levels, th = reading.levels, reading.thresholds
    margin = max(th.cap * levels.scale, th.noise * batch_noise(reading.loss_R))
    rows = np.flatnonzero(reading.loss_R > levels.start + margin)
    rows = rows[rows > reading.curve.warmup]
    if not rows.size:
        return ()
    return (
        f"above the loss at step 0 ({nats(levels.start)}) after warm-up: "
        f"{nats(reading.loss_R[rows[0]])} at step {rows[0]}",
    )


def _leapt(reading: Reading) -> tuple[str, ...]:
    """A single step as far above the mean of the few before it as a collapse rises, and beyond noise.

    Needs no full window of a published rule, and so sees the first steps too. In warm-up it counts only once
    the loss had come down as far: before that, a loss leaves its start in either direction.
    """
    th, levels, few = reading.thresholds, reading.levels, reading.thresholds.smooth_rows
    before_N = rolling_mean(reading.excess_R[:-1], few)
    rows_N = np.arange(few, few + before_N.size)
    height_N = reading.excess_R[few:] - before_N
    limit = max(th.rise * levels.scale, th.noise * batch_noise(reading.excess_R))
    learned_N = np.minimum.accumulate(before_N) < levels.gap - th.rise * levels.scale
    leaps = np.flatnonzero((height_N > limit) & ((rows_N > reading.curve.warmup) | learned_N))
    if not leaps.size:
        return ()
    top = rows_N[leaps[np.argmax(height_N[leaps])]]
    steps, them = ("step", "it") if leaps.size == 1 else ("steps", "them")
    return (
        f"{leaps.size} single {steps} more than {nats(limit)} above the {few} before {them}, "
        f"first at step {rows_N[leaps[0]]}; the loss reaches {nats(reading.loss_R[top])} at step {top}",
    )


def _risen(reading: Reading) -> tuple[str, ...]:
    """The running mean rose above its minimum after warm-up, as in a collapse, yet the run is not lost."""
    th = reading.thresholds
    start_M = reading.row_M - (reading.window - 1)
    rise_M = np.where(start_M > reading.curve.warmup, reading.rise_M, 0.0)
    limit = max(th.rise * reading.levels.scale, reading.tolerance)
    if not np.any(rise_M > limit):
        return ()
    top, left = int(np.argmax(rise_M)), float(reading.mean_M[-1] - reading.lowest)
    ends = "came back" if left <= limit else f"ends {nats(left)} above it"
    return (
        f"the running mean rose by {nats(float(rise_M[top]))} above its lowest, "
        f"up to step {int(reading.row_M[top])}, and {ends}",
    )
