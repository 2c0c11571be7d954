"""Outcomes and the study that holds them; the edge of one arm and seed."""

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ablate.stats import Bound, Outcome, Response, Study, curve, lr50, lr_half, responses, sensitivities
from ablate.verdict import Kind

START, UNIGRAM = 6.2, 5.7
RATES = (1e-3, 1e-2, 1e-1, 1.0)


def run(arm: str, lr: float, seed: int, final: float | None, kind: Kind | None = None) -> Outcome:
    """One run; its verdict from its loss, if none is given."""
    lost = final is None or math.isnan(final)
    found = kind or (Kind.diverged if lost else Kind.collapsed if final >= UNIGRAM else Kind.stable)
    levels = {"bias": arm}
    return Outcome(f"{arm}-{lr:g}-{seed}", arm, lr, str(seed), found, final, START, UNIGRAM, levels)


def ladder(
    arm: str, finals: list[float | None], seed: int = 0, rates: tuple[float, ...] = RATES
) -> list[Outcome]:
    return [run(arm, lr, seed, final) for lr, final in zip(rates, finals, strict=False)]


# ℓ* = 4.0 and u = 5.7: half way is 4.85
def test_the_edge_is_interpolated_in_the_log_rate() -> None:
    edge = lr_half(Study.of(ladder("none", [4.0, 4.5, 5.2, 5.8])), "none", "0")
    part = (4.85 - 4.5) / (5.2 - 4.5)
    assert (edge.bound, edge.bracket, edge.monotone, edge.capped) == (Bound.exact, (1e-2, 1e-1), True, 0)
    assert edge.lr == pytest.approx(10 ** (-2 + part))


def test_the_level_is_half_way_to_the_unigram() -> None:
    inside, beyond = (Study.of(ladder("none", [4.0, 4.5, x, 5.8])) for x in (4.849, 4.851))
    assert lr_half(inside, "none", "0").bracket == (1e-1, 1.0)
    assert lr_half(beyond, "none", "0").bracket == (1e-2, 1e-1)


def test_a_broken_run_counts_as_its_start() -> None:
    lost = [ladder("none", [4.0, 4.5, x, 5.8]) for x in (math.nan, 1e9, 6.2)]
    edges = [lr_half(Study.of(runs), "none", "0") for runs in lost]
    assert edges[0].lr == edges[1].lr == edges[2].lr == pytest.approx(10 ** (-2 + 0.35 / 1.7))
    assert [e.capped for e in edges] == [1, 1, 0]


def test_an_edge_beyond_the_rates_is_censored_on_its_side() -> None:
    never = lr_half(Study.of(ladder("none", [4.2, 4.0, 4.3, 4.4])), "none", "0")
    assert (never.bound, never.lr) == (Bound.above, 1.0)
    runs = ladder("good", [4.0, 4.1, 4.2, 4.3]) + ladder("bad", [5.0, 5.7, math.nan, math.nan])
    always = lr_half(Study.of(runs), "bad", "0")
    assert (always.bound, always.lr) == (Bound.below, 1e-3)


def test_the_arms_best_rate_is_that_of_all_its_seeds() -> None:
    runs = ladder("none", [4.8, 4.0, 5.0, 5.8], 0) + ladder("none", [4.8, 4.0, 5.0, 5.8], 1)
    runs += ladder("none", [4.3, 5.3, 5.4, 5.8], 2)
    study = Study.of(runs)
    assert study.best_rates["none"] == 1e-2
    edge = lr_half(study, "none", "2")  # beyond already there: followed downwards
    assert edge.bracket == (1e-3, 1e-2)
    assert "at the arm's best rate" in edge.note
    low = [*ladder("none", [4.9, 4.0, 5.0, 5.8], 0), *ladder("none", [5.7, 5.4, 5.5, 5.8], 1)]
    lost = lr_half(Study.of(low), "none", "1")
    assert (lost.bound, lost.lr) == (Bound.below, 1e-2)  # nowhere half way, and nearest to it there
    lower = [*ladder("none", [5.1, 4.0, 5.0, 5.8], 0), *ladder("none", [5.3, 5.4, 5.5, 5.8], 1)]
    assert lr_half(Study.of(lower), "none", "1").lr == 1e-3


def test_a_ladder_that_trains_again_is_flagged() -> None:
    edge = lr_half(Study.of(ladder("none", [4.0, 5.2, 4.4, 5.8])), "none", "0")
    assert (edge.bracket, edge.monotone) == ((1e-3, 1e-2), False)
    assert "trains again at lr 0.1" in edge.note


def test_what_is_not_known_before_the_edge_makes_it_missing_and_after_it_not() -> None:
    whole = ladder("none", [4.0, 4.5, 5.2, 5.8])
    for kind, why in ((None, "not finished"), (Kind.censored, "stopped early")):
        gone = [dataclasses.replace(o, kind=kind) if o.lr == 1e-1 else o for o in whole]
        edge = lr_half(Study.of(gone), "none", "0")
        assert (edge.bound, why in edge.note) == (Bound.missing, True)
    assert lr_half(Study.of([o for o in whole if o.lr != 1e-1], RATES), "none", "0").note == "lr 0.1: no run"
    assert lr_half(Study.of([o for o in whole if o.lr != 1.0], RATES), "none", "0").bound == Bound.exact


def test_no_edge_where_nobody_learns_more_than_the_unigram() -> None:
    edge = lr_half(Study.of(ladder("none", [5.7, 5.8, 5.9, 6.0])), "none", "0")
    assert (edge.bound, "half way is not defined" in edge.note) == (Bound.missing, True)
    best_last = lr_half(Study.of(ladder("a", [4.0, 4.1, 4.2]) + ladder("b", [6.1, 5.9, 5.5])), "b", "0")
    assert (best_last.bound, "is the highest" in best_last.note) == (Bound.missing, True)


def test_no_edge_where_a_broken_run_would_count_as_half_way_there() -> None:
    low = [dataclasses.replace(o, start=4.8) for o in ladder("none", [4.0, 4.5, 4.7, math.nan])]
    assert lr_half(Study.of(low), "none", "0").bound == Bound.missing  # half way, 4.85, is above the start


def test_edge_search_runs_serve_the_edge_and_nothing_else() -> None:
    grid = ladder("none", [4.0, 4.5, 5.2, 5.8])
    searched = [*grid, run("none", 3e-2, 0, 5.0), run("none", 5e-4, 0, 3.9)]
    study, plain = Study.of(searched, RATES), Study.of(grid)
    assert lr_half(study, "none", "0").bracket == (1e-2, 3e-2)
    assert study.best == plain.best == {"": 4.0}
    assert study.best_rates == plain.best_rates
    for response in (Response.sensitivity, Response.unstable, Response.best_loss):
        assert responses(study, response) == responses(plain, response)
    assert list(curve(study, "none")) == list(RATES)
    assert lr50(study, "none").n == 5  # from the best rate of the grid upwards


def test_runs_without_a_known_verdict_do_not_enter_lr50() -> None:
    finals = [4.0, 4.1, 5.8, 5.9]
    runs = [o for seed in range(4) for o in ladder("a", finals, seed)]
    gone = {"a-0.01-3": Kind.censored, "a-0.1-3": Kind.censored, "a-0.1-2": None}
    found = lr50(Study.of([dataclasses.replace(o, kind=gone.get(o.run_id, o.kind)) for o in runs]), "a")
    assert (found.n, found.left_out) == (13, 3)
    assert [(d.runs, d.unstable) for d in found.doses] == [(4, 0), (3, 0), (2, 2), (4, 4)]
    assert found.bracket == (1e-2, 1e-1)


def test_the_lowest_seed_mean_over_arms_is_the_studys_best() -> None:
    runs = [
        run("a", 1e-2, 0, 4.0),
        run("a", 1e-2, 1, 5.0),
        run("b", 1e-2, 0, 4.3),
        run("b", 1e-2, 1, math.nan),
    ]
    assert Study.of(runs).best == {"": 4.5}
    assert Study.of([]).best == {}
    assert Study.of([dataclasses.replace(runs[0], kind=None)]).best == {}


def test_what_is_known_of_a_run() -> None:
    healthy = run("a", 1e-2, 0, 4.0)
    assert (healthy.unknown, healthy.is_capped, healthy.loss) == ("", False, 4.0)
    broken = run("a", 1e-2, 0, None)
    assert (broken.unknown, broken.is_capped, broken.loss, broken.unstable) == ("", True, START, True)
    assert dataclasses.replace(healthy, final=None).unknown == "no held-out loss at the end"
    assert dataclasses.replace(healthy, start=None).unknown == "no held-out loss at step 0"


def test_twins_are_stable_runs_at_the_arms_best_rate_with_the_same_seed() -> None:
    runs = ladder("a", [4.4, 4.0, 5.0, 5.8], 0) + ladder("a", [4.4, 4.1, 5.0, 5.8], 1)
    runs = [dataclasses.replace(o, kind=Kind.spiked) if o.run_id == "a-0.01-1" else o for o in runs]
    twins = Study.of(runs).twins
    assert twins == {f"a-{lr:g}-0": "a-0.01-0" for lr in (1e-3, 1e-1, 1.0)}


def test_impaired_runs_look_healthy_beyond_half_way() -> None:
    runs = ladder("a", [4.4, 4.0, 4.9, 5.8])
    assert Study.of(runs).impaired == {"a-0.1-0"}
    assert Study.of([dataclasses.replace(o, kind=None) for o in runs]).impaired == frozenset()


def test_orders_are_those_of_declaration() -> None:
    runs = [run(arm, 1e-2, seed, 4.0) for arm in ("all", "linear", "none") for seed in (10, 9)]
    study = Study.of(runs, factors={"bias": ("none", "linear", "all")})
    assert (study.arms, study.seeds) == (("none", "linear", "all"), ("9", "10"))
    assert Study.of(runs).arms == ("all", "linear", "none")
    assert Study.of(runs, factors={"bias": ["linear", "absent"]}).factors == {
        "bias": ("linear", "all", "none")
    }


def test_a_sensitivity_needs_the_whole_grid_and_counts_what_is_capped() -> None:
    runs = ladder("a", [4.4, 4.0, 5.2, math.nan], 0) + ladder("a", [4.4, 4.0, 5.2], 1)
    study = Study.of(runs)
    values = responses(study, Response.sensitivity)["a"]
    assert values["0"].value == pytest.approx((0.4 + 1.2 + 2.2) / 4)
    assert (values["0"].capped, values["1"].bound, values["1"].note) == (1, Bound.missing, "lr 1: no run")
    found = sensitivities(study)["a"]
    assert list(found) == ["0"]
    assert (found["0"].below, found["0"].above) == (pytest.approx(0.1), pytest.approx(0.85))
    shares = responses(study, Response.unstable)["a"]
    assert (shares["0"].value, shares["1"].bound) == (0.25, Bound.missing)
    at = curve(study, "a")[1.0]
    assert (at.n, at.n_capped, at.n_missing, at.mean) == (1, 1, 1, START)


LOSS = st.one_of(st.floats(3.5, 6.5), st.just(math.nan))


@settings(max_examples=60, deadline=None)
@given(st.lists(LOSS, min_size=24, max_size=24), st.randoms(use_true_random=False))
def test_nothing_depends_on_the_order_of_the_runs(finals, random) -> None:
    runs = [
        run(arm, lr, seed, finals[8 * seed + 4 * a + i])
        for seed in range(3)
        for a, arm in enumerate(("none", "all"))
        for i, lr in enumerate(RATES)
    ]
    study, shuffled = Study.of(runs), Study.of(random.sample(runs, len(runs)))
    assert repr(study) == repr(shuffled)
    for response in Response:
        assert repr(responses(study, response)) == repr(responses(shuffled, response))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(4.0, 6.2), min_size=3, max_size=3), st.integers(0, 2), st.floats(0, 1))
def test_a_loss_that_rises_above_the_best_rate_never_raises_the_edge(finals, place, more) -> None:
    worse = [x + more if i == place else x for i, x in enumerate(finals)]
    before, after = (lr_half(Study.of(ladder("a", [4.0, *losses])), "a", "0") for losses in (finals, worse))
    assert after.lr <= before.lr * (1 + 1e-12)
