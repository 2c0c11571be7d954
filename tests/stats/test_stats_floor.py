"""The noise floor, and departures of the loss."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ablate.stats import (
    exact,
    leads,
    loss_departure,
    output_departure,
    paired_effect,
    paired_floor,
    smoothing,
    unpaired_floor,
)

FLAT = np.full(60, 4.0)


def by_seed(values: list[float]) -> dict[str, float]:
    return {str(i): x for i, x in enumerate(values)}


def test_the_paired_floor_is_taken_about_zero() -> None:
    effects = [
        paired_effect(exact(by_seed([1, 1, 1])), exact(by_seed([1.3, 1.3, 0.9]))),
        paired_effect(exact(by_seed([2, 2])), exact(by_seed([2.2, math.nan]))),
    ]
    found = paired_floor(effects)
    assert (found.n, found.largest) == (4, pytest.approx(0.3))
    assert found.rms == pytest.approx(math.sqrt((0.09 + 0.09 + 0.01 + 0.04) / 4))
    assert found.reasons == ("seed 1 left out: not finite",)
    assert found.band(9) == pytest.approx(2.776445 * found.rms / 3, rel=1e-6)  # t(0.975) with 4 degrees
    empty = paired_floor([])
    assert (empty.n, empty.band(5)) == (0, None)


@settings(deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=2, max_size=9))
def test_the_unpaired_floor_is_the_spread_over_seeds(values: list[float]) -> None:
    found = unpaired_floor(by_seed(values))
    assert found.rms == pytest.approx(math.sqrt(2) * np.std(values, ddof=1), rel=1e-6, abs=1e-7)
    assert found.n == len(values) - 1
    assert unpaired_floor(by_seed(values[::-1])).rms == pytest.approx(found.rms, rel=1e-9, abs=1e-12)


def test_all_splits_into_disjoint_halves_each_once() -> None:
    values = [1.0, 2.0, 4.0, 8.0]
    found = unpaired_floor(by_seed(values))
    expected = [
        np.mean([values[i] for i in range(4) if i not in half]) - np.mean([values[i] for i in half])
        for half in itertools.combinations(range(4), 2)
        if 0 in half
    ]
    assert list(found.differences) == pytest.approx(expected)
    assert found.largest == pytest.approx(4.5)


def test_the_second_half_may_come_from_an_equal_arm() -> None:
    found = unpaired_floor(by_seed([1.0, 2.0]), by_seed([1.5, 2.5]))
    assert sorted(found.differences) == [-0.5, 1.5]  # 1.5 − 2 and 2.5 − 1
    assert unpaired_floor({"0": 1.0}).n == 0
    assert unpaired_floor({"0": 1.0, "1": 2.0}, {"7": 3.0}).n == 0


def test_many_seeds_are_sampled_the_same_way_every_time() -> None:
    values = by_seed(list(np.random.default_rng(0).normal(size=24)))
    found = unpaired_floor(values)
    assert found == unpaired_floor(dict(reversed(values.items())))
    assert found.rms == pytest.approx(math.sqrt(2) * np.std(list(values.values()), ddof=1), rel=0.03)


def test_the_smoothing_is_that_of_the_verdict() -> None:
    assert [smoothing(steps) for steps in (20, 100, 120, 2000)] == [5, 5, 6, 100]


def test_the_loss_departs_once_its_running_mean_stays_a_tenth_of_a_nat_above() -> None:
    loss = FLAT.copy()
    loss[30:] += 0.2
    assert loss_departure(loss, FLAT, window=5) == 32  # three of five rows above: a mean of 0.12
    assert loss_departure(loss, FLAT, window=1) == 30
    loss[50:] = 4.0
    assert loss_departure(loss, FLAT, window=5) is None  # it came back
    assert loss_departure(FLAT + 0.09, FLAT, window=5) is None
    assert loss_departure(FLAT + 0.2, FLAT, window=5) == 4  # the first full window


def test_a_loss_that_is_not_finite_has_departed_and_rows_end_where_either_ends() -> None:
    loss = FLAT.copy()
    loss[40:] = math.nan
    assert loss_departure(loss, FLAT, window=5) == 40
    assert loss_departure(loss[:40], FLAT, window=5) is None
    assert loss_departure(FLAT + 1, FLAT[:3], window=5) is None


def test_batches_that_are_hard_for_both_are_no_departure() -> None:
    hard = np.random.default_rng(1).normal(0, 1, 60)
    assert loss_departure(FLAT + hard + 0.05, FLAT + hard, window=5) is None


def test_the_lead_of_a_site_is_how_long_it_left_before_the_loss() -> None:
    early, late, loss = FLAT.copy(), FLAT.copy(), FLAT.copy()
    early[20:] *= 10.0
    late[45:] *= 10.0
    loss[30:] += 5.0
    outputs = {"b00_o": early, "b00_q": FLAT, "b01_down": late}
    found = leads(outputs, dict.fromkeys(outputs, FLAT), loss, FLAT, window=1)
    assert [(x.site, x.steps) for x in found] == [("b00_o", 10), ("b01_down", -15), ("b00_q", None)]
    assert output_departure(early, FLAT, window=1) == 20
    smoothed = leads(outputs, dict.fromkeys(outputs, FLAT), loss, FLAT, window=5)[0]
    assert smoothed.loss_step == 30  # 5/5 nats with the first row
    assert smoothed.site_step == 21  # ln 10 · 2/5 > ln 2 with the second
    assert leads(outputs, {"b00_o": FLAT}, FLAT, FLAT, window=5)[0].steps is None
