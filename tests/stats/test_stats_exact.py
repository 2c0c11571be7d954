"""Exact tests against brute force, closed forms and scipy."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as reference

from ablate.stats import exact as _exact_values
from ablate.stats import flip_test, holm, sign_test, t_test
from ablate.stats.exact import DRAWS, EXACT_PAIRS, mean_sd

DIFFERENCES = st.lists(st.floats(-5, 5).map(lambda x: round(x, 2)), min_size=1, max_size=9)


def brute_flip(differences: list[float]) -> float:
    """The share of all sign patterns that reach the sum seen."""
    seen = abs(math.fsum(differences))
    sums = [
        abs(math.fsum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in itertools.product((-1, 1), repeat=len(differences))
    ]
    return sum(x >= seen - 1e-9 for x in sums) / len(sums)


@settings(deadline=None)
@given(DIFFERENCES)
def test_sign_flips_are_all_counted(differences: list[float]) -> None:
    assert flip_test(differences).p == pytest.approx(brute_flip(differences), abs=1e-12)


@settings(deadline=None)
@given(DIFFERENCES)
def test_the_sign_test_is_a_binomial_test_without_ties(differences: list[float]) -> None:
    moved = [d for d in differences if d != 0]
    ups = sum(d > 0 for d in moved)
    expected = reference.binomtest(ups, len(moved)).pvalue if moved else 1.0
    assert sign_test(differences).p == pytest.approx(expected, rel=1e-9)
    assert sign_test(differences).n == len(moved)


@settings(deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=2, max_size=20))
def test_the_t_test_is_scipys(differences: list[float]) -> None:
    found, (_, sd) = t_test(differences).p, mean_sd(differences)
    if sd == 0:
        assert math.isnan(found)
    elif sd > 1e-9:
        expected = reference.ttest_rel(differences, np.zeros(len(differences))).pvalue
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-300)


@settings(deadline=None)
@given(DIFFERENCES, st.floats(0.01, 100), st.randoms(use_true_random=False))
def test_blind_to_order_scale_and_which_arm_comes_first(differences, factor, random) -> None:
    shuffled = random.sample(differences, len(differences))
    for test in (flip_test, sign_test):
        found = test(differences)
        assert test(shuffled) == found
        assert test([-d for d in differences]) == found
        assert test([factor * d for d in differences]) == found


@pytest.mark.parametrize(("n", "least"), [(3, 0.25), (5, 0.0625), (6, 0.03125), (8, 2 / 256)])
def test_the_level_that_so_many_pairs_can_reach(n: int, least: float) -> None:
    all_up = [0.1 * (i + 1) for i in range(n)]
    for test in (flip_test, sign_test):
        assert test(all_up).p == test(all_up).attainable == least
        assert test([*all_up, 0.0]).attainable == least  # a tie adds nothing
    assert flip_test([0.0, 0.0]).p == sign_test([0.0, 0.0]).p == 1.0


def test_many_pairs_meet_in_the_middle_and_very_many_are_drawn() -> None:
    random = np.random.default_rng(3)
    many = list(random.normal(0.3, 1.0, 30))
    signs = np.random.default_rng(4).choice([-1, 1], (200_000, 30))
    drawn = np.mean(np.abs(signs @ np.array(many)) >= abs(sum(many)))
    assert flip_test(many).p == pytest.approx(drawn, abs=5 * math.sqrt(drawn / 200_000))
    very = list(random.normal(0.2, 1.0, EXACT_PAIRS + 20))
    found = flip_test(very)
    assert found == flip_test(very[::-1])
    assert found.p == pytest.approx(t_test(very).p, rel=0.1)  # the normal limit of both
    assert found.attainable == 1 / (DRAWS + 1)
    assert flip_test([1.0 + 0.01 * i for i in range(EXACT_PAIRS + 20)]).p == 1 / (DRAWS + 1)


def closed_testing(ps: list[float]) -> list[float]:
    """Adjusted p: the largest Bonferroni p of all subfamilies with the test. Holm is its shortcut."""
    indices = range(len(ps))
    families = [f for k in range(1, len(ps) + 1) for f in itertools.combinations(indices, k)]
    return [max(min(1.0, len(f) * min(ps[j] for j in f)) for f in families if i in f) for i in indices]


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
def test_holm_is_the_closure_of_bonferroni(ps: list[float]) -> None:
    assert holm(ps) == pytest.approx(closed_testing(ps), rel=1e-12)


def test_holm_leaves_out_what_is_no_test() -> None:
    found = holm([0.01, None, 0.04, math.nan])
    assert (found[0], found[1], found[2]) == (0.02, None, 0.04)
    assert found[3] is not None
    assert math.isnan(found[3])
    assert holm([]) == ()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12), st.randoms(use_true_random=False))
def test_mean_and_spread_do_not_depend_on_the_order(values, random) -> None:
    assert mean_sd(values) == mean_sd(random.sample(values, len(values)))
    assert mean_sd(values) == pytest.approx((np.mean(values), np.std(values, ddof=1)), rel=1e-9, abs=1e-6)


def test_plain_numbers_become_values() -> None:
    found = _exact_values({"0": 1.5, "1": math.nan})
    assert (found["0"].value, found["0"].bound, found["1"].bound) == (1.5, "exact", "missing")
