"""The published spike rules, each a small function of a series.

All windows are trailing and must be full: rows before that are neither counted nor scored. Series are read up
to their first non-finite value.

Legend: R rows.
"""

import numpy as np
from numpy.typing import NDArray

from ablate.verdict.curve import Floats, first_bad_step
from ablate.verdict.windows import rolling_mean, rolling_median, rolling_std

Rows = NDArray[np.int64]


def finite_part(values_R: Floats) -> Floats:
    """The rows before the first non-finite one."""
    return values_R[: first_bad_step(values_R, np.empty(0))]


def kill_loss_spike(loss_R: Floats, window: int, times: float = 2.0, steps: int = 5) -> Rows:
    """Rows at which KillLossSpike reports a loss spike.

    A loss is an outlier if it is ≥ `times` the mean of the `window` losses before it (outliers included); a
    spike is reported at each row that ends `steps` or more outliers in a row. Source: llm-foundry,
    callbacks/kill_loss_spike_callback.py (outlier_multiplier 2, patience 4 = five in a row, window
    max(100, 5 % of the run)).
    """
    loss_R = finite_part(loss_R)
    if loss_R.size <= window:
        return np.empty(0, np.int64)
    outlier_N = loss_R[window:] >= times * rolling_mean(loss_R[:-1], window)
    rows_N = np.arange(outlier_N.size)
    last_normal_N = np.maximum.accumulate(np.where(outlier_N, -1, rows_N))
    return window + np.flatnonzero(rows_N - last_normal_N >= steps)


def kill_high_loss(loss_R: Floats, window: int, ceiling: float = 10.0) -> Rows:
    """Rows at which KillLossSpike reports a persistently high loss.

    From row 2 · `window` on: at least half of the `window` losses before the row are above the cap, which is
    min(`ceiling`, largest loss of the first window). Source: llm-foundry, as `kill_loss_spike`.
    """
    loss_R = finite_part(loss_R)
    if loss_R.size <= 2 * window:
        return np.empty(0, np.int64)
    cap = min(ceiling, float(loss_R[:window].max()))
    high_N = rolling_mean((loss_R[window:-1] > cap).astype(np.float64), window)
    return 2 * window + np.flatnonzero(high_N >= 0.5)


def deviations(values_R: Floats, window: int) -> Floats:
    """How far each value lies from the mean of the `window` values before it, in their standard deviations.

    [R], signed; NaN while the window is not full. The value itself is left out of the window: with it, no
    value could ever be √(W − 1) deviations away. A spread below rounding (1e-12 of the mean) counts as that.
    """
    values_R = finite_part(values_R)
    scores_R = np.full(values_R.size, np.nan)
    if values_R.size > window:
        mean_N = rolling_mean(values_R[:-1], window)
        spread_N = np.maximum(rolling_std(values_R[:-1], window), 1e-12 * np.abs(mean_N))
        distance_N = values_R[window:] - mean_N
        with np.errstate(all="ignore"):
            scores_R[window:] = np.where(distance_N == 0, 0.0, distance_N / spread_N)
    return scores_R


def spike_score(values_R: Floats, window: int, sigmas: float = 7.0) -> float:
    """Percentage of scored values at least `sigmas` deviations from the rolling mean; NaN if none is scored.

    Source: OLMo 2 (arXiv 2501.00656, section 3.2), on the training loss and the gradient norm, window 1000.
    The paper leaves open over what the deviation is taken; here over the same window, the value left out.
    """
    scores_R = deviations(values_R, window)[window:]
    return 100.0 * float(np.mean(np.abs(scores_R) >= sigmas)) if scores_R.size else float("nan")


def median_spikes(loss_R: Floats, window: int, margin: float = 0.1) -> Rows:
    """Rows whose loss is more than `margin` nats above the median of the `window` losses that end with it.

    Source: arXiv 2608.30320, section 3.3 (201 steps, 0.1 nats). That the window trails is our reading.
    """
    loss_R = finite_part(loss_R)
    if loss_R.size < window:
        return np.empty(0, np.int64)
    last = window - 1
    return last + np.flatnonzero(loss_R[last:] > rolling_median(loss_R, window) + margin)


def loss_spike_rate(loss_R: Floats, window: int, margin: float = 0.1) -> float:
    """`median_spikes` per 10,000 steps with a full window; NaN if there is none."""
    scored = finite_part(loss_R).size - window + 1
    return 1e4 * median_spikes(loss_R, window, margin).size / scored if scored > 0 else float("nan")
