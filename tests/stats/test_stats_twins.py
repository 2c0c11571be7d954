"""Departures from a twin, growth at the end, impairment."""

import math

import numpy as np
import pytest

from ablate.stats import first_departure, impaired, most_grown
from ablate.verdict import Kind

FLAT = np.full(20, 2.0)


def rising(from_step: int, factor: float = 3.0) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    values = FLAT.copy()
    values[from_step:] *= factor
    return values


def test_the_first_to_leave_for_good() -> None:
    early = rising(2)
    early[10:] = 2.0  # comes back
    outputs = {"b00_q": rising(8), "b01_o": rising(5), "b02_v": early}
    found = first_departure(outputs, dict.fromkeys(outputs, FLAT))
    assert found is not None
    assert (found.linear, found.step, found.ratio) == ("b01_o", 5, pytest.approx(3.0))


def test_of_equals_the_one_furthest_above() -> None:
    outputs = {"a": rising(5), "b": rising(5, 9.0), "c": rising(5, 4.0)}
    found = first_departure(outputs, dict.fromkeys(outputs, FLAT))
    assert found is not None
    assert found.linear == "b"


def test_less_than_twice_is_no_departure_and_unknown_linears_are_passed_over() -> None:
    assert first_departure({"a": rising(5, 1.9)}, {"a": FLAT}) is None
    assert first_departure({"a": rising(5)}, {"b": FLAT}) is None


def test_blowing_up_is_leaving() -> None:
    values = FLAT.copy()
    values[12:] = math.nan
    found = first_departure({"a": values}, {"a": FLAT})
    assert found is not None
    assert (found.step, found.ratio) == (12, math.inf)
    assert most_grown({"a": values, "b": rising(0, 50.0)}, {"a": FLAT, "b": FLAT}) == ("a", math.inf)


def test_growth_at_the_end_is_that_of_the_last_tenth_in_common() -> None:
    found = most_grown({"a": rising(18, 5.0), "b": rising(2, 4.0)}, {"a": FLAT, "b": FLAT})
    assert found == ("a", pytest.approx(5.0))
    short = {"a": rising(18, 5.0)[:10], "b": rising(2, 4.0)[:10]}
    assert most_grown(short, {"a": FLAT, "b": FLAT}) == ("b", pytest.approx(4.0))
    assert most_grown({}, {"a": FLAT}) is None


def test_impaired_is_healthy_but_more_than_half_way_back_to_the_unigram() -> None:
    assert impaired(Kind.stable, 4.6, best=4.0, unigram=5.0)
    assert impaired(Kind.spiked, 4.6, best=4.0, unigram=5.0)
    assert not impaired(Kind.stable, 4.4, best=4.0, unigram=5.0)
    assert not impaired(Kind.collapsed, 4.9, best=4.0, unigram=5.0)
    assert not impaired(Kind.stable, math.nan, best=4.0, unigram=5.0)
