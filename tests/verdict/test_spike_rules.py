"""The published spike rules against slow, obvious versions of themselves."""

import math
import statistics
from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ablate.config import VerdictConfig
from ablate.verdict import (
    deviations,
    kill_high_loss,
    kill_loss_spike,
    kill_window,
    loss_spike_rate,
    median_spikes,
    scaled,
    spike_score,
)

# Eighths are exact in binary, so that a loss that ties with a threshold does so in any order of summation.
series = st.lists(st.integers(1, 80).map(lambda n: n / 8), max_size=60)
windows = st.sampled_from([2, 4, 8, 16])


def walk(seed: int, rows: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = 5 + rng.normal(0, 0.1, rows)
    values[rng.integers(0, rows, rows // 20)] += rng.exponential(3, rows // 20)
    return values


@settings(max_examples=150, deadline=None)
@given(series, windows, st.integers(1, 5))
def test_kill_loss_spike(values: list[float], window: int, steps: int) -> None:
    """Step by step with a queue and a counter, as the callback does."""
    recent: deque[float] = deque(maxlen=window)
    fired, run = [], 0
    for row, loss in enumerate(values):
        if len(recent) == window:
            run = run + 1 if loss >= 2 * sum(recent) / window else 0
            if run >= steps:
                fired.append(row)
        recent.append(loss)
    assert kill_loss_spike(np.array(values), window, 2.0, steps).tolist() == fired


@settings(max_examples=150, deadline=None)
@given(series, windows, st.floats(2, 10))
def test_kill_high_loss(values: list[float], window: int, ceiling: float) -> None:
    fired = []
    for row in range(2 * window, len(values)):
        cap = min(ceiling, max(values[:window]))
        if sum(loss > cap for loss in values[row - window : row]) >= window / 2:
            fired.append(row)
    assert kill_high_loss(np.array(values), window, ceiling).tolist() == fired


@pytest.mark.parametrize("window", [2, 7, 50, 400])
def test_deviations_and_spike_score(window: int) -> None:
    values = walk(1, 400)
    scores = deviations(values, window)
    slow = [
        (values[t] - statistics.fmean(values[t - window : t])) / statistics.pstdev(values[t - window : t])
        for t in range(window, len(values))
    ]
    assert np.isnan(scores[:window]).all()
    np.testing.assert_allclose(scores[window:], slow, rtol=1e-9)
    if slow:
        far = sum(abs(z) >= 7 for z in slow)
        assert spike_score(values, window) == pytest.approx(100 * far / len(slow))
    else:
        assert math.isnan(spike_score(values, window))


def test_spike_score_counts_both_sides() -> None:
    quiet = 5 + 0.01 * np.random.default_rng(0).normal(size=1000)
    quiet[500], quiet[800] = 6.0, 4.0
    assert spike_score(quiet, 100) == pytest.approx(100 * 2 / 900)
    assert spike_score(quiet, 1000) != spike_score(quiet, 100)


def test_deviation_from_a_constant_series() -> None:
    """A jump out of a constant stands out, the constant itself does not."""
    values = np.full(50, 0.5)
    assert spike_score(values, 20) == 0
    values[40] = 0.6
    assert (deviations(values, 20) >= 7).nonzero()[0].tolist() == [40]
    values[40] = np.nextafter(0.5, 1)
    assert spike_score(values, 20) == 0
    assert spike_score(np.zeros(50), 20) == 0


@pytest.mark.parametrize("window", [2, 9, 10, 201])
def test_median_spikes_and_rate(window: int) -> None:
    values = walk(2, 400)
    slow = [
        t
        for t in range(window - 1, len(values))
        if values[t] > statistics.median(values[t - window + 1 : t + 1]) + 0.1
    ]
    assert median_spikes(values, window).tolist() == slow
    assert loss_spike_rate(values, window) == pytest.approx(1e4 * len(slow) / (len(values) - window + 1))
    assert slow


def test_series_shorter_than_the_window() -> None:
    values = walk(3, 20)
    assert kill_loss_spike(values, 20).size == 0
    assert kill_high_loss(values, 10).size == 0
    assert median_spikes(values, 21).size == 0
    assert math.isnan(spike_score(values, 20))
    assert math.isnan(loss_spike_rate(values, 21))


def test_series_are_read_up_to_their_first_non_finite_value() -> None:
    values = walk(4, 300)
    cut = values.copy()
    cut[200] = np.nan
    assert spike_score(cut, 50) == spike_score(values[:200], 50)
    assert loss_spike_rate(cut, 50) == loss_spike_rate(values[:200], 50)
    assert kill_loss_spike(cut, 50).tolist() == kill_loss_spike(values[:200], 50).tolist()
    assert kill_high_loss(cut, 50).tolist() == kill_high_loss(values[:200], 50).tolist()


def test_windows_scale_with_the_run() -> None:
    """Published lengths for long runs, a tenth of a short one, never below 20 steps."""
    th = VerdictConfig()
    assert [scaled(1000, steps, th) for steps in (50, 200, 1000, 9990, 10_000, 10**6)] == [
        20,
        20,
        100,
        999,
        1000,
        1000,
    ]
    assert [scaled(201, steps, th) for steps in (200, 1000, 2010, 10**6)] == [20, 100, 201, 201]
    assert [kill_window(steps, th) for steps in (50, 200, 500, 1000, 2000, 3000, 10**5)] == [
        20,
        20,
        50,
        100,
        100,
        150,
        5000,
    ]
