"""LR sensitivity and best rates."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ablate.stats import Ending, best_rate, log_uniform, lr_sensitivity

LOSSES = st.one_of(
    st.floats(0.1, 20), st.just(math.nan), st.just(math.inf)
)  # fmt: skip


def grid(finals: list[float], start: float = 6.0) -> list[Ending]:
    return [Ending(10.0 ** (i - 3), final, start) for i, final in enumerate(finals)]


def test_the_sum_of_what_is_lost_on_either_side() -> None:
    found = lr_sensitivity(grid([5.0, 4.0, 4.5, math.nan]))
    assert (found.best, found.best_lr) == (4.0, 1e-2)
    assert found.below == pytest.approx((5.0 - 4.0) / 4)
    assert found.above == pytest.approx((0.5 + 2.0) / 4)  # what is not finite counts as the start, 6.0
    assert found.total == pytest.approx(found.below + found.above)


def test_a_loss_above_the_start_counts_as_the_start() -> None:
    assert lr_sensitivity(grid([4.0, 1e9])).total == lr_sensitivity(grid([4.0, 6.0])).total == 1.0


def test_an_arm_that_never_trains_has_no_best_rate() -> None:
    found = lr_sensitivity(grid([math.inf, 6.5, math.nan]))
    assert (found.total, found.best_lr) == (0.0, None)


@settings(deadline=None)
@given(st.lists(LOSSES, min_size=1, max_size=8), st.floats(1, 8), st.randoms())
def test_bounded_split_and_blind_to_order(finals: list[float], start: float, random) -> None:
    endings = grid(finals, start)
    found = lr_sensitivity(endings)
    assert 0 <= found.total <= start - found.best + 1e-12
    assert found.total == pytest.approx(found.below + found.above, abs=1e-12)
    shuffled = random.sample(endings, len(endings))
    assert lr_sensitivity(shuffled) == found


def test_the_best_rate_is_that_of_the_mean_over_seeds() -> None:
    seeds = [
        Ending(0.1, 3.0, 6.0),
        Ending(0.1, math.nan, 6.0),
        Ending(0.01, 4.0, 6.0),
        Ending(0.01, 4.1, 6.0),
    ]
    assert best_rate(seeds) == 0.01  # 0.1 has the lowest run, but its other seed is lost
    assert best_rate([Ending(0.1, 7.0, 6.0)]) is None
    assert best_rate([]) is None
    assert best_rate([Ending(0.2, 4.0, 6.0), Ending(0.1, 4.0, 6.0)]) == 0.1


def test_even_grids() -> None:
    assert log_uniform([1e-3, 3e-3, 1e-2, 3e-2])
    assert log_uniform([0.1])
    assert not log_uniform([6e-3, 8e-3, 20e-3, 40e-3])
