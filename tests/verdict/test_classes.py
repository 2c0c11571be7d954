"""Curves of every class, at many lengths and with several seeds, are called what a person would call them."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from synthetic_curves import L0, U, bump, curve, flat, healthy, joined, plus, ramp, towards

from ablate.config import VerdictConfig
from ablate.verdict import Curve, Kind, judge

LENGTHS = (30, 60, 200, 1000, 5000)
SEEDS = (0, 1, 2)
Make = Callable[[int, int], Curve]


def narrow(steps: int, height: float, width: int = 3) -> Callable[[np.ndarray], np.ndarray]:
    start = int(0.6 * steps)
    return lambda step_R: np.where((step_R >= start) & (step_R < start + width), height, 0.0)


def wave(amplitude: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: amplitude * np.sin(80 * x) * (x > 0.2)


CASES: dict[str, tuple[Kind, Make]] = {
    "healthy": (Kind.stable, lambda n, s: curve(healthy(), n, s)),
    "small batches": (Kind.stable, lambda n, s: curve(healthy(), n, s, noise=0.12, text=0.12)),
    "large batches": (Kind.stable, lambda n, s: curve(healthy(), n, s, noise=0.003, text=0.003)),
    "impaired": (Kind.stable, lambda n, s: curve(healthy(5.1), n, s, noise=0.06)),
    "restless at a high rate": (
        Kind.stable,
        lambda n, s: curve(plus(healthy(4.9), wave(0.1)), n, s, noise=0.08),
    ),
    "rests at the unigram, then breaks through": (
        Kind.stable,
        lambda n, s: curve(joined(towards(L0, U, 0.03, 40), towards(U, 4.6, 0.6), 0.6), n, s),
    ),
    "breaks through late": (
        Kind.stable,
        lambda n, s: curve(joined(towards(L0, U, 0.03, 40), towards(U, 5.2, 0.8, 15), 0.8), n, s),
    ),
    "rises above the start in warm-up": (
        Kind.stable,
        lambda n, s: curve(plus(healthy(), bump(0.04, 0.015, 1.0)), n, s),
    ),
    "rises a little at the end": (
        Kind.stable,
        lambda n, s: curve(joined(healthy(), ramp(4.2, 4.35, 0.7), 0.7), n, s),
    ),
    "a low, wide bump": (Kind.stable, lambda n, s: curve(plus(healthy(), bump(0.6, 0.05, 0.2)), n, s)),
    "waits at the start, then learns": (Kind.stable, lambda n, s: curve(towards(L0, 4.1, 0.3), n, s)),
    "leaves the unigram slowly": (
        Kind.stable,
        lambda n, s: curve(joined(towards(L0, U, 0.03, 40), ramp(U, U - 0.1, 0.4), 0.4), n, s),
    ),
    "goes on from trained weights, and learns a little": (
        Kind.stable,
        lambda n, s: curve(ramp(5.2, 5.18, 0.0), n, s),
    ),
    "goes on from trained weights, to a little worse": (
        Kind.stable,
        lambda n, s: curve(joined(ramp(4.6, 4.63, 0.0), flat(4.63), 0.3), n, s),
    ),
    "three steps, three nats": (Kind.spiked, lambda n, s: curve(healthy(), n, s, spikes=narrow(n, 3.0))),
    "three steps, one nat": (Kind.spiked, lambda n, s: curve(healthy(), n, s, spikes=narrow(n, 1.0))),
    "a high, wide bump": (Kind.spiked, lambda n, s: curve(plus(healthy(), bump(0.6, 0.05, 1.0)), n, s)),
    "rises half a nat at the end": (
        Kind.spiked,
        lambda n, s: curve(joined(healthy(), ramp(4.2, 4.8, 0.7), 0.7), n, s),
    ),
    "up and away": (
        Kind.diverged,
        lambda n, s: curve(joined(healthy(), towards(5.0, 9.0, 0.4, 20), 0.4), n, s),
    ),
    "goes on from trained weights, and blows up": (
        Kind.diverged,
        lambda n, s: curve(joined(flat(4.6), towards(4.6, 8.0, 0.3), 0.3), n, s),
    ),
    "above the start at once": (Kind.diverged, lambda n, s: curve(towards(L0, 6.9, 0.03, 30), n, s)),
    "back to the start": (Kind.diverged, lambda n, s: curve(joined(healthy(), flat(L0), 0.5), n, s)),
    "between start and unigram after learning": (
        Kind.diverged,
        lambda n, s: curve(joined(healthy(), flat(6.1), 0.6), n, s),
    ),
    "gives back most, below the unigram": (
        Kind.diverged,
        lambda n, s: curve(joined(healthy(), ramp(4.2, 5.4, 0.6, 0.8), 0.6), n, s),
    ),
    "collapses early": (Kind.collapsed, lambda n, s: curve(towards(L0, U, 0.03, 40), n, s)),
    "goes on from trained weights, and loses all it knew": (
        Kind.diverged,
        lambda n, s: curve(joined(flat(4.6), towards(4.6, U, 0.3, 30), 0.3), n, s),
    ),
    "collapses just below the unigram": (
        Kind.collapsed,
        lambda n, s: curve(towards(L0, U - 0.07, 0.03, 40), n, s),
    ),
    "collapses late from deep": (Kind.collapsed, lambda n, s: curve(joined(healthy(), flat(U), 0.7), n, s)),
    "collapses late from little": (
        Kind.collapsed,
        lambda n, s: curve(joined(healthy(5.3), flat(U), 0.6), n, s),
    ),
    "learns late, and loses it": (
        Kind.collapsed,
        lambda n, s: curve(joined(ramp(L0, 5.0, 0.25, 0.6), flat(U), 0.6), n, s),
    ),
    "tiny rate": (Kind.undertrained, lambda n, s: curve(ramp(L0, L0 - 1e-4, 0), n, s)),
    "small rate, still at the start": (Kind.undertrained, lambda n, s: curve(ramp(L0, L0 - 0.018, 0), n, s)),
    "small rate, wanders a little below the start": (
        Kind.undertrained,
        lambda n, s: curve(joined(ramp(L0, L0 - 0.04, 0, 0.5), ramp(L0 - 0.04, L0 - 0.02, 0.5), 0.5), n, s),
    ),
    "half way to the unigram": (Kind.undertrained, lambda n, s: curve(ramp(L0, U + 0.25, 0.05), n, s)),
    "slowly to the unigram": (Kind.undertrained, lambda n, s: curve(ramp(L0, U + 0.02, 0.05), n, s)),
}

SHORTEST = {  # steps; see the test below
    "collapses early": 60,
    "collapses just below the unigram": 60,
    "goes on from trained weights, to a little worse": 60,
}


@pytest.mark.parametrize("steps", LENGTHS)
@pytest.mark.parametrize("name", CASES)
def test_class(name: str, steps: int) -> None:
    kind, make = CASES[name]
    if steps < SHORTEST.get(name, 0):
        pytest.skip("too short for the class")
    for seed in SEEDS:
        verdict = judge(make(steps, seed), VerdictConfig())
        assert verdict.kind is kind, verdict
        assert verdict.step is None
        assert verdict.reasons


@pytest.mark.parametrize("steps", [200, 1000, 5000])
def test_one_step_spike(steps: int) -> None:
    """One step of 0.6 nats stands out of usual noise; in 30 steps no spike window is long enough to tell."""
    assert judge(curve(healthy(), steps, spikes=narrow(steps, 0.6, 1)), VerdictConfig()).kind is Kind.spiked


@pytest.mark.parametrize(("noise", "kind"), [(0.003, Kind.spiked), (0.06, Kind.stable)])
def test_a_spike_is_judged_against_the_noise(noise: float, kind: Kind) -> None:
    """0.25 nats on two steps: plain to see on a quiet curve, lost in a noisy one."""
    for seed in SEEDS:
        made = curve(healthy(), 500, seed, noise=noise, spikes=narrow(500, 0.25, 2))
        assert judge(made, VerdictConfig()).kind is kind


def test_a_ripple_of_a_quiet_curve_is_no_spike() -> None:
    """Far beyond 7 σ, and yet only 0.06 nats."""
    found = judge(
        curve(healthy(pace=25), 1000, noise=0.003, text=0.0, spikes=narrow(1000, 0.06, 1)), VerdictConfig()
    )
    assert found.kind is Kind.stable
    assert found.measures["spike_score_loss"] > 0


def test_reasons_name_every_rule_that_sees_it() -> None:
    """A plateau of six nats for 150 of 1,000 steps is seen by all of them."""
    seen = judge(curve(healthy(), 1000, warmup=0.02, spikes=narrow(1000, 6.0, 150)), VerdictConfig())
    assert seen.kind is Kind.spiked
    assert [reason.split(":")[0][:20] for reason in seen.reasons] == [
        "KillLossSpike",
        "KillLossSpike",
        seen.reasons[2][:20],
        "above the loss at st",
        seen.reasons[4][:20],
        "the running mean ros",
    ]
    assert "first at step 604" in seen.reasons[0]
    assert "first at step 650" in seen.reasons[1]
    assert "first at step 600" in seen.reasons[2]
    assert re.search(r"single steps more than .* the 5 before them, first at step 600", seen.reasons[4])
    assert seen.measures["first_outlying"] == 600
    single = judge(curve(healthy(), 1000, warmup=0.02, spikes=narrow(1000, 6.0, 1)), VerdictConfig())
    assert re.search(r"^1 single step more than \S+ above the 5 before it, ", "\n".join(single.reasons), re.M)


def test_a_batch_of_hard_text_is_no_spike() -> None:
    """Where the batch's unigram rises with the loss, the text was hard, not the training unstable."""
    made = curve(healthy(), 500, spikes=narrow(500, 1.0, 1))
    hard = made.unigram_R + narrow(500, 1.0, 1)(np.arange(500))
    assert judge(made, VerdictConfig()).kind is Kind.spiked
    easy = {name: getattr(made, name) for name in Curve.__dataclass_fields__} | {"unigram_R": hard}
    assert judge(Curve(**easy), VerdictConfig()).kind is Kind.stable


def test_false_alarms_are_rare() -> None:
    """Of 200 noisy healthy runs at most two are called anything but stable."""
    kinds = [
        judge(curve(healthy(), 200, seed, noise=0.1, text=0.1), VerdictConfig()).kind for seed in range(200)
    ]
    assert sum(kind is not Kind.stable for kind in kinds) <= 2


def test_noise_is_not_taken_for_a_rise() -> None:
    """A running mean of very noisy steps moves by more than `rise` by chance: the noise threshold knows."""
    made = [curve(healthy(), 200, seed, noise=0.25) for seed in range(40)]
    spiked = [
        sum(judge(one, VerdictConfig(noise=noise)).kind is Kind.spiked for one in made)
        for noise in (0.0, 7.0)
    ]
    assert spiked[0] >= 20
    assert spiked[1] <= 2


@pytest.mark.parametrize("steps", [200, 1000])
def test_an_excursion_above_the_start_after_warm_up_counts(steps: int) -> None:
    """The same hump in warm-up and after it: only the later one is a spike."""
    hump = plus(healthy(), bump(0.035, 0.01, 1.5))
    assert judge(curve(hump, steps, warmup=0.3), VerdictConfig()).kind is Kind.stable
    late = judge(curve(hump, steps, warmup=0.0), VerdictConfig())
    assert late.kind is Kind.spiked
    assert any("after warm-up" in reason for reason in late.reasons)


@pytest.mark.parametrize("steps", [60, 200, 400])
def test_warm_up_excuses_no_jump_from_what_was_learned(steps: int) -> None:
    """A jump of a nat, too early for any published window: a spike once half the gap had been learned."""
    quick = towards(L0, 4.6, 0.0, 25)
    first = 8

    def jump(step_R: np.ndarray) -> np.ndarray:
        return np.where(step_R == first, 1.2, 0.0)

    assert judge(curve(quick, steps, warmup=0.1), VerdictConfig()).kind is Kind.stable
    found = judge(curve(quick, steps, warmup=0.1, spikes=jump), VerdictConfig())
    assert found.kind is Kind.spiked
    assert any(f"first at step {first};" in reason for reason in found.reasons)


@pytest.mark.parametrize(("warmup", "kind"), [(0.1, Kind.stable), (0.0, Kind.spiked)])
def test_warm_up_excuses_a_jump_before_anything_was_learned(warmup: float, kind: Kind) -> None:
    made = curve(
        towards(L0, 4.6, 0.1), 200, warmup=warmup, spikes=lambda step_R: np.where(step_R == 15, 1.2, 0.0)
    )
    assert judge(made, VerdictConfig()).kind is kind


@pytest.mark.parametrize(("steps", "kind"), [(50, Kind.undertrained), (60, Kind.collapsed)])
def test_a_short_rest_at_the_unigram_is_no_collapse(steps: int, kind: Kind) -> None:
    """Healthy runs rest there too, for some dozens of steps; those that lost what they had did collapse."""
    at_once = judge(curve(towards(L0, U, 0.0, 40), steps), VerdictConfig())
    assert at_once.kind is kind
    if kind is Kind.undertrained:
        assert "steps are too few to tell a collapse" in at_once.reasons[-1]
    lost = judge(curve(joined(healthy(), flat(U), 0.7), steps), VerdictConfig())
    assert lost.kind is Kind.collapsed


@pytest.mark.parametrize(
    ("end", "kind"), [(U + 0.35, Kind.diverged), (U, Kind.collapsed), (L0, Kind.diverged)]
)
@pytest.mark.parametrize("restless", [0.0, 25.0])
def test_an_explosion_is_judged_by_where_it_ends(end: float, kind: Kind, restless: float) -> None:
    """Also if it jumps about by many times the gap while it is high: that noise must not hide the rise."""
    jumps_R = np.abs(np.random.default_rng(0).normal(0, restless, 120))

    def jumps(step_R: np.ndarray) -> np.ndarray:
        return np.where((step_R > 0) & (step_R < 108), jumps_R[step_R], 0.0)

    high = joined(joined(flat(L0), flat(12.0), 0.005), flat(end), 0.9)
    assert judge(curve(high, 120, warmup=0.0, spikes=jumps), VerdictConfig()).kind is kind


def test_an_explosion_within_the_first_window_has_risen_too() -> None:
    """Its running mean only falls, and it is slow to come down: not early at the unigram."""
    slow = towards(7.0, U + 0.03, 0.04, 6)
    burst = plus(joined(flat(L0), slow, 0.01), bump(0.015, 0.005, 6.0))
    made = curve(lambda x: np.where(np.asarray(x) > 0, burst(x), L0), 200, warmup=0.1)
    found = judge(made, VerdictConfig())
    assert found.kind is Kind.collapsed, found
    assert "rose" in found.reasons[-1]
