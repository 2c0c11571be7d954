"""Intervals against scipy, exhaustive resampling, inverted tests and simulation."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as reference

from ablate.stats import (
    Interval,
    IntervalKind,
    bootstrap_interval,
    flip_interval,
    flip_test,
    mean_interval,
    minimum_detectable,
    t_interval,
)

SPREAD = st.lists(st.floats(-5, 5).map(lambda x: round(x, 3)), min_size=6, max_size=9, unique=True)


@settings(deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=5, max_size=15, unique=True))
def test_the_t_interval_is_scipys_paired_one(differences: list[float]) -> None:
    found = t_interval(differences)
    expected = reference.ttest_rel(differences, np.zeros(len(differences))).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-9, abs=1e-9)


def test_which_interval_is_shown() -> None:
    values = list(np.random.default_rng(0).normal(size=40))
    assert mean_interval(values[:4]) is None
    assert [mean_interval(values[:n]) for n in (5, 15)] == [t_interval(values[:n]) for n in (5, 15)]
    assert mean_interval([0.25] * 8) is None  # nothing varies: no spread to judge by


@settings(max_examples=60, deadline=None)
@given(SPREAD)
def test_the_flip_interval_is_the_set_of_means_that_the_test_does_not_reject(
    differences: list[float],
) -> None:
    found = flip_interval(differences)
    assert found is not None
    width = found.high - found.low
    for inside in (found.low, found.high, *np.linspace(found.low, found.high, 5)):
        assert flip_test([d - inside for d in differences]).p > 0.05
    for outside in (found.low - 1e-6 - 0.01 * width, found.high + 1e-6 + 0.01 * width):
        assert flip_test([d - outside for d in differences]).p <= 0.05


def test_the_flip_interval_needs_six_pairs_and_is_then_the_range() -> None:
    assert flip_interval([1.0, 2, 3, 4, 5]) is None
    found = flip_interval([6.0, 1, 2, 3, 4, 5])
    assert found is not None
    assert (found.low, found.high, found.kind) == (1.0, 6.0, IntervalKind.flip)
    assert flip_interval(list(range(21))) is None


def exhaustive(values: list[float]) -> tuple[float, float]:
    """The studentised bootstrap from every one of the n^n resamples."""
    n, mean = len(values), float(np.mean(values))
    drawn = np.array(list(itertools.product(values, repeat=n)))
    sd = drawn.std(axis=1, ddof=1)
    gap = drawn.mean(axis=1) - mean
    with np.errstate(all="ignore"):
        t = np.where(sd > 0, gap / (sd / math.sqrt(n)), np.sign(gap) * 1e300)
    low, high = np.quantile(t, [0.025, 0.975], method="inverted_cdf")
    scale = float(np.std(values, ddof=1)) / math.sqrt(n)
    return mean - high * scale, mean - low * scale


def test_the_bootstrap_is_that_over_all_resamples() -> None:
    for values in ([0.3, 1.1, 1.9, -0.4, 0.8, 3.0], [-2.0, -1.4, 0.1, 0.2, 0.4, -3.3]):
        found = bootstrap_interval(values)
        low, high = exhaustive(values)
        width = high - low
        assert found.low == pytest.approx(low, abs=0.04 * width)
        assert found.high == pytest.approx(high, abs=0.04 * width)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=16, max_size=20, unique=True), st.randoms(use_true_random=False))
def test_the_bootstrap_is_blind_to_order_and_mirrored_by_swapped_arms(values, random) -> None:
    found = bootstrap_interval(values)
    assert bootstrap_interval(random.sample(values, len(values))) == found
    mirrored = bootstrap_interval([-v for v in values])
    assert (mirrored.low, mirrored.high) == (-found.high, -found.low)


@pytest.mark.parametrize("n", [16, 17, 40])
def test_from_16_the_interval_spans_both(n: int) -> None:
    random = np.random.default_rng(n)
    skew = list(np.exp(random.normal(size=n)))
    heavy = [*random.normal(0, 1e-3, n - 4), 1.0, -1.1, 0.5, -0.6]  # most near zero, a few large
    for values in (skew, heavy):
        found, one, other = mean_interval(values), bootstrap_interval(values), t_interval(values)
        assert one != other
        expected = Interval(min(one.low, other.low), max(one.high, other.high), IntervalKind.both)
        assert found == expected


def test_where_most_values_are_tied_the_bootstrap_says_that_it_is_t() -> None:
    found = mean_interval([0.0] * 15 + [0.5])
    assert found == t_interval([0.0] * 15 + [0.5])
    assert bootstrap_interval([0.0] * 8 + [0.5] * 8).kind is IntervalKind.bootstrap


@pytest.mark.parametrize("n", [5, 6, 8, 12, 20])
def test_the_minimum_detectable_effect_has_a_power_of_four_fifths(n: int) -> None:
    effect = minimum_detectable(1.7, n)
    assert effect is not None
    shift, limit = effect / 1.7 * math.sqrt(n), reference.t.ppf(0.975, n - 1)
    power = reference.nct.sf(limit, n - 1, shift) + reference.nct.cdf(-limit, n - 1, shift)
    assert power == pytest.approx(0.8, abs=0.03)  # the sum of two t quantiles is an approximation


def test_no_minimum_detectable_effect_without_spread_or_seeds() -> None:
    assert minimum_detectable(0.0, 8) is None
    assert minimum_detectable(1.0, 4) is None
    assert minimum_detectable(2.0, 8) == 2 * minimum_detectable(1.0, 8)


def coverage(interval, sample, studies: int) -> float:
    """The share of intervals of samples with mean 0 that hold 0."""
    found = [interval(list(sample())) for _ in range(studies)]
    return float(np.mean([i.low <= 0 <= i.high for i in found]))


@pytest.mark.parametrize("n", [5, 6, 10])
def test_t_covers_at_its_level(n: int) -> None:
    random = np.random.default_rng(n)
    assert coverage(t_interval, lambda: random.normal(size=n), 3000) == pytest.approx(0.95, abs=0.014)


@pytest.mark.parametrize("n", [6, 9])
def test_the_flip_interval_covers_at_least_its_level_whatever_the_symmetric_noise(n: int) -> None:
    random = np.random.default_rng(n)
    assert coverage(flip_interval, lambda: random.standard_cauchy(n), 1500) > 0.95 - 0.015


def test_the_bootstrap_covers_near_its_level() -> None:
    random = np.random.default_rng(16)
    assert coverage(bootstrap_interval, lambda: random.normal(size=16), 400) == pytest.approx(0.95, abs=0.033)


@pytest.mark.slow
@pytest.mark.parametrize("n", [16, 20, 32])
def test_the_bootstrap_covers_near_its_level_under_skew_too(n: int) -> None:
    random = np.random.default_rng(n)
    normal = coverage(bootstrap_interval, lambda: random.normal(size=n), 2000)
    skewed = coverage(bootstrap_interval, lambda: np.exp(random.normal(size=n)) - math.exp(0.5), 2000)
    by_t = coverage(t_interval, lambda: np.exp(random.normal(size=n)) - math.exp(0.5), 2000)
    assert normal == pytest.approx(0.95, abs=0.015)
    assert skewed > by_t + 0.02
    assert skewed > 0.89
