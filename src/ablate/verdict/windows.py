"""Rolling windows over a series, and how long they are.

Legend: R rows, W window, N = R − W + 1 full windows.
"""

from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ablate.config import VerdictConfig
from ablate.verdict.curve import Floats

_CHUNK = 1 << 20  # elements of windows held in memory at a time


def scaled(published: int, steps: int, thresholds: VerdictConfig) -> int:
    """The published window, cut for short runs to `window_share` of the run, but not below `window_floor`."""
    return min(published, max(thresholds.window_floor, round(thresholds.window_share * steps)))


def smooth_window(steps: int, thresholds: VerdictConfig) -> int:
    """Rows in one running mean of the excess: max(smooth_rows, smooth · steps)."""
    return max(thresholds.smooth_rows, round(thresholds.smooth * steps))


def kill_window(steps: int, thresholds: VerdictConfig) -> int:
    """KillLossSpike's window, max(spike_window, spike_share · steps), cut for short runs like the others."""
    published = max(thresholds.spike_window, round(thresholds.spike_share * steps))
    return scaled(published, steps, thresholds)


def rolling(values_R: Floats, window: int, reduce: Callable[[Floats], Floats]) -> Floats:
    """`reduce` ([n, W] -> [n]) of every full window; element i is of rows i … i + W − 1. Empty if R < W."""
    if window < 1 or values_R.size < window:
        return np.empty(0)
    windows_NW = sliding_window_view(values_R, window)
    rows = max(1, _CHUNK // window)
    return np.concatenate([reduce(windows_NW[i : i + rows]) for i in range(0, len(windows_NW), rows)])


def rolling_mean(values_R: Floats, window: int) -> Floats:
    return rolling(values_R, window, lambda windows: windows.mean(axis=1))


def rolling_std(values_R: Floats, window: int) -> Floats:
    return rolling(values_R, window, lambda windows: windows.std(axis=1))


def rolling_median(values_R: Floats, window: int) -> Floats:
    return rolling(values_R, window, lambda windows: np.median(windows, axis=1))


def batch_noise(values_R: Floats) -> float:
    """Standard deviation of one row around a smooth trend, from the median absolute step-to-step change.

    Robust: neither a trend nor a few spikes move it. 0 for fewer than three rows.
    """
    if values_R.size < 3:
        return 0.0
    change_R = np.diff(values_R)
    spread = np.median(np.abs(change_R - np.median(change_R)))
    # 1.4826 MAD is the sigma of a normal distribution; a difference of two rows has twice their variance.
    return float(1.4826 * spread / np.sqrt(2.0))
