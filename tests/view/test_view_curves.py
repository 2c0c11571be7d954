"""Thinning: a page keeps every spike, however many rows stand behind it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablate.view.curves import against, largest, plotted, thinned


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=3000), st.sampled_from([40, 200]))
def test_extremes_stand_where_they_stood(values: list[float], points: int) -> None:
    found = thinned(np.array(values), points)
    assert len(found.step_N.tolist()) <= points + 1 or len(values) <= points
    assert found.step_N.tolist() == sorted(set(found.step_N.tolist()))
    assert found.broken is None
    kept = dict(zip(found.step_N.tolist(), found.value_N.tolist(), strict=True))
    for extreme in (max(values), min(values)):
        near = [y for y in kept.values() if math.isclose(y, extreme, rel_tol=1e-3, abs_tol=1e-300)]
        assert near
    assert all(math.isclose(y, values[t], rel_tol=1e-3, abs_tol=1e-300) for t, y in kept.items())


def test_a_spike_between_values_that_are_not_finite_is_kept() -> None:
    values = np.ones(5000)
    values[1230:1236] = [np.nan, 50.0, np.inf, -3.0, np.nan, np.nan]
    found = thinned(values)
    kept = dict(zip(found.step_N.tolist(), found.value_N.tolist(), strict=True))
    assert (kept[1231], kept[1233]) == (50.0, -3.0)
    assert found.broken == (1230, 1.0)


def test_a_course_that_breaks_ends_there() -> None:
    values = np.ones(1000)
    values[700:] = np.nan
    found = thinned(values, 100)
    assert found.broken == (700, 1.0)
    assert {
        y
        for t, y in zip(found.step_N.tolist(), found.value_N.tolist(), strict=True)
        if t >= 700 and not math.isnan(y)
    } == set()
    broken = thinned(np.array([np.nan, np.nan])).broken
    assert broken is not None
    assert broken[0] == 0
    assert math.isnan(broken[1])


def test_heatmaps_show_the_largest_of_a_stretch_and_a_gap_where_one_is_not_finite() -> None:
    values = np.arange(10.0)
    values[7] = np.nan
    np.testing.assert_array_equal(largest(values, 4), [3.0, np.nan, 9.0])


def test_plotted_values_have_four_digits_and_gaps() -> None:
    values = np.array([0.0, 1.23456, -98765.4, 1e-310, 3e307, np.nan, np.inf])
    assert plotted(values)[:3] == [0.0, 1.235, -98770.0]
    assert plotted(values)[5:] == [None, None]
    assert plotted(values)[4] == pytest.approx(3e307)


def test_growth_at_the_end_is_the_largest_block_over_the_twin() -> None:
    twin = {"b00_o": np.full(40, 2.0), "b01_o": np.full(40, 2.0), "b00_q": np.ones(40), "head": np.zeros(40)}
    run = {"b00_o": np.full(30, 6.0), "b01_o": np.full(30, 10.0), "b00_q": np.ones(30), "head": np.ones(30)}
    run["b00_q"][-1] = np.nan
    found = against(run, twin)
    assert found.sites["o"] == pytest.approx(5.0)
    assert found.sites["q"] == math.inf
    assert found.grown is not None
    assert found.grown[1] == math.inf
