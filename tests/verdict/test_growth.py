"""Growth of a norm, alone and against its stable twin."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ablate.verdict import growth_against, growth_rate

NAN, INF = float("nan"), float("inf")


@given(st.floats(-0.2, 0.2), st.floats(1e-3, 1e3), st.integers(2, 50), st.integers(2, 50))
def test_exponential_growth_is_found_exactly(rate: float, start: float, rows: int, window: int) -> None:
    values = start * np.exp(rate * np.arange(rows))
    assert growth_rate(values, window) == pytest.approx(rate, abs=1e-9)


def test_least_squares_over_the_last_usable_values() -> None:
    values = np.random.default_rng(0).lognormal(size=40)
    values[[3, 20, 33]] = NAN, -1.0, INF
    usable = np.array([t for t in range(40) if t not in (3, 20, 33)])[-25:]
    expected = stats.linregress(usable, np.log(values[usable])).slope
    assert growth_rate(values, 25) == pytest.approx(expected)
    assert growth_rate(values, 10) != pytest.approx(expected)


@pytest.mark.parametrize("values", [[], [1.0], [NAN, 0.0, -1.0, INF, 2.0]])
def test_undefined_with_fewer_than_two_values(values: list[float]) -> None:
    assert math.isnan(growth_rate(np.array(values), 10))


def test_departure_is_the_first_step_of_the_last_stay_above() -> None:
    twin = np.full(8, 2.0)
    values = twin * np.exp([0.0, 0.2, 0.05, 0.11, 0.2, 0.3, 0.4, 0.5])
    growth = growth_against(values, twin)
    assert growth.departure == 3
    np.testing.assert_allclose(growth.ratio_R, values / twin)
    assert growth_against(values, twin, margin=0.25).departure == 5
    assert growth_against(twin, twin).departure is None
    assert growth_against(values[:3], twin).departure is None
    assert growth_against(values, twin / 2).departure == 0


def test_a_blown_up_value_has_departed() -> None:
    growth = growth_against(np.array([1.0, 1.0, INF, NAN, NAN]), np.ones(5))
    assert growth.departure == 2


def test_a_step_without_a_twin_says_nothing() -> None:
    values, twin = np.array([1.0, 3.0, 3.0, 3.0]), np.array([1.0, 1.0, NAN, 1.0])
    growth = growth_against(values, twin)
    assert growth.departure == 1
    assert np.isnan(growth.ratio_R[2])
    assert growth_against(values, np.zeros(4)).departure is None


def test_only_common_steps_count() -> None:
    growth = growth_against(np.ones(3), np.ones(10))
    assert growth.ratio_R.shape == (3,)
