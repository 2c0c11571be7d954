import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablate.config import OptimConfig, Schedule
from ablate.train import factor


def optim(**changes: object) -> OptimConfig:
    settings = {"steps": 100, "warmup": 10.0, "cooldown": 20.0, "final_lr": 0.1} | changes
    return OptimConfig(**settings)


def test_warm_up_moves_from_the_first_update_and_ends_at_the_peak() -> None:
    assert [factor(optim(warmup=4.0), step) for step in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]


def test_cosine_passes_through_its_middle_and_its_end() -> None:
    assert factor(optim(), 55) == pytest.approx(0.1 + 0.9 / 2)
    assert factor(optim(), 32) == pytest.approx(0.1 + 0.45 * (1 + math.cos(math.pi * 22 / 90)))
    assert factor(optim(), 100) == pytest.approx(0.1)


def test_linear_constant_and_wsd() -> None:
    assert factor(optim(schedule=Schedule.linear), 55) == pytest.approx(0.55)
    assert factor(optim(schedule=Schedule.constant), 99) == 1.0
    wsd = optim(schedule=Schedule.wsd)
    assert [factor(wsd, step) for step in (10, 79, 80)] == [1.0, 1.0, 1.0]
    assert factor(wsd, 90) == pytest.approx(0.55)


@given(
    st.sampled_from(Schedule),
    st.integers(1, 50),
    st.integers(0, 60),
    st.integers(0, 60),
    st.floats(0, 1),
)
def test_every_update_moves_and_none_exceeds_the_peak(
    schedule: Schedule, steps: int, warmup: int, cooldown: int, final: float
) -> None:
    chosen = optim(
        schedule=schedule, steps=steps, warmup=float(warmup), cooldown=float(cooldown), final_lr=final
    )
    factors = [factor(chosen, step) for step in range(steps)]
    assert all(0 < value <= 1 for value in factors)
    assert factors[: warmup + 1] == sorted(factors[: warmup + 1])
    assert factors[warmup:] == sorted(factors[warmup:], reverse=True)
