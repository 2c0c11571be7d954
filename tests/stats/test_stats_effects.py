"""Effects paired by seed, censored and capped values, factorial contrasts."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as reference

from ablate.stats import (
    Bound,
    Outcome,
    Response,
    Study,
    Value,
    contrast,
    estimate,
    exact,
    factorial,
    mean_interval,
    minimum_detectable,
    paired_effect,
)
from ablate.verdict import Kind

NUMBERS = st.lists(st.floats(-3, 3).map(lambda x: round(x, 3)), min_size=6, max_size=10)


def seeds(*values: float) -> dict[str, Value]:
    return exact({str(i): x for i, x in enumerate(values)})


def censored(value: float, bound: Bound) -> Value:
    return Value(value, bound)


def test_an_effect_is_scipys_paired_comparison() -> None:
    random = np.random.default_rng(5)
    a, b = random.normal(size=8), random.normal(0.5, 1.0, 8)
    found, expected = paired_effect(seeds(*a), seeds(*b)), reference.ttest_rel(b, a)
    interval = expected.confidence_interval(0.95)
    assert found.estimate.mean == pytest.approx(float(np.mean(b - a)))
    assert found.estimate.interval is not None
    assert (found.estimate.interval.low, found.estimate.interval.high) == pytest.approx(
        (interval.low, interval.high)
    )
    assert found.p == found.t.p == pytest.approx(expected.pvalue)
    assert found.mde == minimum_detectable(found.estimate.sd, 8)
    assert (found.flip.n, found.sign.attainable) == (8, 2 / 256)


def test_fewer_than_five_pairs_are_points() -> None:
    found = paired_effect(seeds(1, 2, 3, 4), seeds(2, 4, 6, 8))
    assert found.estimate.per_seed == (1.0, 2.0, 3.0, 4.0)
    assert found.estimate.mean == 2.5
    assert (found.estimate.interval, found.flip_interval, found.p, found.mde) == (None, None, None, None)


def test_many_pairs_are_tested_by_sign_flips() -> None:
    random = np.random.default_rng(6)
    found = paired_effect(seeds(*random.normal(size=18)), seeds(*random.normal(size=18)))
    assert found.p == found.flip.p
    assert found.estimate.interval == mean_interval(found.estimate.per_seed)
    assert found.flip_interval is None


def test_equal_differences_have_no_interval_but_a_test() -> None:
    found = paired_effect(seeds(*[1.0] * 6), seeds(*[1.5] * 6))
    assert (found.estimate.sd, found.estimate.interval, found.mde) == (0.0, None, None)
    assert found.p == found.flip.p == 2 / 64
    none = paired_effect(seeds(*[0.1 + 0.2] * 6), seeds(*[0.3] * 6))  # differs by rounding only
    assert (none.estimate.mean, none.p) == (0.0, 1.0)


@settings(deadline=None)
@given(NUMBERS, st.floats(0.1, 10), st.randoms(use_true_random=False))
def test_swapped_arms_scales_and_orders(numbers, factor, random) -> None:
    a, b = seeds(*numbers), seeds(*[x * x for x in numbers])
    one, other = paired_effect(a, b), paired_effect(b, a)
    assert other.estimate.mean == -one.estimate.mean
    assert (other.t, other.flip, other.sign, other.mde) == (one.t, one.flip, one.sign, one.mde)
    shuffled = dict(random.sample(list(a.items()), len(a)))
    assert repr(paired_effect(shuffled, b)) == repr(one)
    scaled = contrast([(-factor, a), (factor, b)])
    assert scaled.estimate.mean == pytest.approx(factor * one.estimate.mean, abs=1e-9)
    assert (scaled.flip, scaled.sign) == (one.flip, one.sign)


def test_a_missing_value_takes_its_pair_along_and_is_named() -> None:
    a, b = seeds(1, 2, 3, 4, 5, 6), seeds(2, 3, 4, 5, 6, 8)
    b["2"] = Value(math.nan, Bound.missing, note="lr 0.1: not finished")
    del b["3"]
    found = paired_effect(a, b).estimate
    assert (found.n, found.n_missing, found.seeds) == (4, 2, ("0", "1", "4", "5"))
    assert found.reasons[:2] == ("seed 2 left out: lr 0.1: not finished", "seed 3 left out: no run")


def test_a_capped_loss_enters_and_is_counted() -> None:
    a, b = seeds(4, 4, 4), seeds(5, 5, 5)
    b["1"] = Value(6.2, capped=1)
    found = paired_effect(a, b).estimate
    assert (found.n, found.n_capped, found.per_seed) == (3, 1, (1.0, pytest.approx(2.2), 1.0))
    assert found.reasons == ("the loss at step 0 stands in for a higher or non-finite final loss: seed 1",)


def test_an_edge_beyond_the_rates_enters_at_the_limit_and_bounds_the_effect() -> None:
    a, b = seeds(0.1, 0.2, 0.3), seeds(0.5, 0.6, 0.7)
    b["2"] = censored(1.0, Bound.above)
    found = paired_effect(a, b).estimate
    assert (found.per_seed[2], found.bound, found.n_censored) == (0.7, Bound.above, 1)
    assert paired_effect(b, a).estimate.bound is Bound.below
    b["0"] = censored(-1.0, Bound.below)
    assert paired_effect(a, b).estimate.bound is Bound.open
    assert estimate(b).bound is Bound.open


def test_two_censored_edges_tie_and_the_tie_is_open() -> None:
    a, b = seeds(0.1, 0.2, 0.0), seeds(0.5, 0.6, 0.0)
    a["2"] = b["2"] = censored(1.0, Bound.above)
    found = paired_effect(a, b)
    assert (found.estimate.per_seed[2], found.estimate.bound) == (0.0, Bound.open)


def test_an_edge_seen_beyond_the_other_arms_rates_counts_as_beyond() -> None:
    a, b = seeds(0.1, 0.2), seeds(2.0, 0.5)
    a["1"] = censored(1.0, Bound.above)
    found = paired_effect(a, b).estimate
    assert found.per_seed == (0.9, -0.5)  # 2.0 is cut to the 1.0 up to which both were seen
    assert found.n_censored == 2


@settings(max_examples=40, deadline=None)
@given(NUMBERS, st.floats(-2, 2))
def test_a_lower_limit_never_widens_what_is_seen(numbers: list[float], limit: float) -> None:
    """Cutting both arms at a common limit never makes a difference larger, nor turns it round."""
    a, b = list(numbers), [x + 0.5 * math.sin(7 * x) for x in numbers]

    def cut(values: list[float]) -> dict[str, Value]:
        return {str(i): censored(limit, Bound.above) if x > limit else Value(x) for i, x in enumerate(values)}

    whole = paired_effect(seeds(*a), seeds(*b)).estimate.per_seed
    found = paired_effect(cut(a), cut(b)).estimate.per_seed
    for d, d_cut in zip(whole, found, strict=True):
        assert abs(d_cut) <= abs(d) + 1e-12
        assert d_cut * d >= 0


FACTORS = {"bias": ("none", "linear", "all"), "norm": ("layernorm", "rmsnorm"), "placement": ("pre", "post")}


def study_of(loss, n_seeds: int = 6, leave=lambda levels, seed: False) -> Study:
    """One rate; the loss of each arm and seed is given."""
    runs = []
    for chosen in itertools.product(*FACTORS.values()):
        levels = dict(zip(FACTORS, chosen, strict=True))
        for seed in range(n_seeds):
            if not leave(levels, seed):
                key, final = "/".join(chosen), loss(levels, seed)
                runs.append(
                    Outcome(f"{key}-{seed}", key, 0.01, str(seed), Kind.stable, final, 9.0, 8.0, levels)
                )
    return Study.of(runs, factors=FACTORS)


def named(study: Study) -> dict[str, "object"]:
    return {c.name: c for c in factorial(study, Response.best_loss)}


def planted(levels: dict[str, str], seed: int) -> float:
    loss = 4.0 + 0.1 * seed + {"none": 0.0, "linear": 0.2, "all": 0.5}[levels["bias"]]
    loss += 0.3 * (levels["norm"] == "rmsnorm") + 0.7 * (levels["placement"] == "post")
    return loss + 0.4 * (levels["bias"] == "all" and levels["norm"] == "rmsnorm")


def test_planted_effects_come_out() -> None:
    found = named(study_of(planted))
    means = {name: c.effect.estimate.mean for name, c in found.items()}
    assert means == {
        "bias: linear − none": pytest.approx(0.2),
        "bias: all − none": pytest.approx(0.5 + 0.4 / 2),
        "norm: rmsnorm − layernorm": pytest.approx(0.3 + 0.4 / 3),
        "placement: post − pre": pytest.approx(0.7),
        "bias: linear − none × norm: rmsnorm − layernorm": pytest.approx(0.0, abs=1e-12),
        "bias: linear − none × placement: post − pre": pytest.approx(0.0, abs=1e-12),
        "bias: all − none × norm: rmsnorm − layernorm": pytest.approx(0.4),
        "bias: all − none × placement: post − pre": pytest.approx(0.0, abs=1e-12),
        "norm: rmsnorm − layernorm × placement: post − pre": pytest.approx(0.0, abs=1e-12),
    }


def test_each_contrast_is_the_least_squares_coefficient_of_its_seed() -> None:
    """Balanced data: least squares with centred codes for everything gives the same numbers, seed by seed."""
    random = np.random.default_rng(2)
    noise = {(k, s): float(random.normal()) for k in itertools.product(*FACTORS.values()) for s in range(5)}
    study = study_of(lambda levels, seed: 4 + 0.3 * noise[tuple(levels.values()), seed], n_seeds=5)
    codes = {
        "linear": lambda x: (x["bias"] == "linear") - 1 / 3,
        "all": lambda x: (x["bias"] == "all") - 1 / 3,
        "rms": lambda x: (x["norm"] == "rmsnorm") - 1 / 2,
        "post": lambda x: (x["placement"] == "post") - 1 / 2,
    }
    cells = [dict(zip(FACTORS, k, strict=True)) for k in itertools.product(*FACTORS.values())]
    columns = [[1.0] * 12, *([code(x) for x in cells] for code in codes.values())]
    pairs = [("linear", "rms"), ("all", "rms"), ("linear", "post"), ("all", "post"), ("rms", "post")]
    columns += [[codes[a](x) * codes[b](x) for x in cells] for a, b in pairs]
    design = np.array(columns, dtype=float).T
    found = {c.name: c.effect.estimate.per_seed for c in factorial(study, Response.best_loss)}
    for seed in range(5):
        y = np.array([4 + 0.3 * noise[tuple(x.values()), seed] for x in cells])
        fit = np.linalg.lstsq(design, y, rcond=None)[0]
        assert found["bias: linear − none"][seed] == pytest.approx(fit[1])
        assert found["bias: all − none"][seed] == pytest.approx(fit[2])
        assert found["norm: rmsnorm − layernorm"][seed] == pytest.approx(fit[3])
        assert found["placement: post − pre"][seed] == pytest.approx(fit[4])
        assert found["bias: all − none × norm: rmsnorm − layernorm"][seed] == pytest.approx(fit[6])
        assert found["norm: rmsnorm − layernorm × placement: post − pre"][seed] == pytest.approx(fit[9])


def test_a_block_without_its_arm_is_left_out_and_named() -> None:
    found = named(study_of(planted, leave=lambda x, _: x["bias"] == "all" and x["placement"] == "post"))
    bias = found["bias: all − none"]
    assert len(bias.blocks) == 2
    assert bias.left_out[0] == (
        "norm=layernorm, placement=post: no arm bias=all, norm=layernorm, placement=post"
    )
    assert bias.effect.estimate.n == 6
    crossed = found["bias: all − none × placement: post − pre"]
    assert (crossed.blocks, crossed.effect.estimate.n) == ((), 0)


def test_a_seed_without_one_of_its_runs_is_left_out_of_what_needs_it() -> None:
    whole = study_of(planted, leave=lambda x, seed: seed == 3 and x["bias"] == "all")
    found = named(whole)
    assert found["bias: linear − none"].effect.estimate.n == 6
    bias = found["bias: all − none"].effect.estimate
    assert (bias.n, bias.n_missing) == (5, 1)
    assert bias.reasons[0].startswith("seed 3 left out: ")


def test_factors_that_only_vary_together_are_one() -> None:
    runs = []
    for (width, heads), bias, seed in itertools.product(
        [("64", "4"), ("96", "6")], ("none", "all"), range(5)
    ):
        levels = {"width": width, "norm": "layernorm", "bias": bias, "heads": heads}
        loss = 4.0 + 0.01 * seed + 0.5 * (width == "96") + 0.2 * (bias == "all")
        key = f"{width}/{bias}"
        runs.append(Outcome(f"{key}{seed}", key, 0.01, str(seed), Kind.stable, loss, 9.0, 8.0, levels))
    factors = {"width": ("64", "96"), "bias": ("none", "all"), "heads": ("4", "6"), "norm": ("layernorm",)}
    found = {c.name: c for c in factorial(Study.of(runs, factors=factors), Response.best_loss)}
    joined = found["width + heads: 96 + 6 − 64 + 4"]
    assert joined.effect.estimate.mean == pytest.approx(0.5)
    assert joined.blocks == ((("bias", "none"),), (("bias", "all"),))
    assert len(found) == 3


def test_one_factor_is_its_pairs_and_no_factor_is_nothing() -> None:
    values = {"none": [4.0, 4.1, 4.3], "all": [4.5, 4.2, 4.9]}
    runs = [
        Outcome(f"{arm}{s}", arm, 0.01, str(s), Kind.stable, x, 9.0, 8.0, {"bias": arm})
        for arm, losses in values.items()
        for s, x in enumerate(losses)
    ]
    (only,) = factorial(Study.of(runs, factors={"bias": ("none", "all")}), Response.best_loss)
    expected = paired_effect(seeds(*values["none"]), seeds(*values["all"])).estimate
    assert only.effect.estimate.per_seed == expected.per_seed
    assert only.blocks == ((),)
    bare = [Outcome(f"r{s}", "-", 0.01, str(s), Kind.stable, 4.0, 9.0, 8.0) for s in range(3)]
    assert factorial(Study.of(bare), Response.best_loss) == ()
    assert len(factorial(study_of(planted), Response.best_loss, order=1)) == 4
