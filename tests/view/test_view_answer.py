"""The answer and the statistics behind it: sentences from numbers, placebos, floors, honest zeros."""

import itertools
import math
from pathlib import Path

import pytest
from view_effects import NOISE, planted
from view_studies import product, record

from ablate.record import State
from ablate.stats import Response
from ablate.view import Analysis, answer
from ablate.view.report import study_results

COMMAND = "ablate sweep more"


def analysed(root: Path) -> tuple[list[str], Analysis]:
    results = study_results(root, "s")
    analysis = Analysis.of(results)
    return answer(results, analysis, COMMAND), analysis


def test_a_planted_difference_is_found_with_its_size(tmp_path: Path) -> None:
    planted(tmp_path, {"none": 0.02, "linear": 0.05, "k": 0.02}, range(8))
    (first, _, third), analysis = analysed(tmp_path)
    (row,) = (r for r in analysis.of_response(Response.edge) if r.main)
    assert math.exp(row.effect.estimate.mean) == pytest.approx(2.5, rel=0.02)
    assert row.found
    assert first.startswith("With bias linear instead of none LR½ changes by ×2.5")
    assert "95 % paired t interval" in first
    assert "n = 8 seeds" in first
    assert "Holm-adjusted p < 0.001" in first
    assert "placebo" in third


def test_no_difference_is_said_with_what_could_have_been_seen(tmp_path: Path) -> None:
    planted(tmp_path, {"none": 0.02, "linear": 0.02}, range(8))
    (first, _, third), analysis = analysed(tmp_path)
    (row,) = (r for r in analysis.of_response(Response.edge) if r.main)
    assert not row.found
    assert first.startswith("bias: no detectable difference in LR½ at this scale")
    assert row.effect.mde is not None
    assert f"we could have seen ≥ ×{math.exp(row.effect.mde):#.3g}" in first
    assert "no placebo arm" in third


def test_the_placebo_is_known_by_what_it_computes_and_is_no_contrast(tmp_path: Path) -> None:
    planted(tmp_path, {"none": 0.02, "k": 0.02}, range(6))
    sentences, analysis = analysed(tmp_path)
    assert "bias=[k] computes the same function as bias=none" in sentences[0]
    assert analysis.placebos == (("bias=[k]", "bias=none"),)
    assert analysis.rows == ()
    floor = analysis.floors[Response.edge]
    assert set(floor.main) == {""}
    expected = [abs(NOISE[2 * s % 8] - NOISE[s]) for s in range(6)]
    assert floor.main[""].largest == pytest.approx(max(expected), rel=1e-6)


@pytest.mark.parametrize("model", [{"position": "rope"}, {"qk_norm": True}])
def test_a_key_bias_that_means_something_is_no_placebo(model: dict[str, object], tmp_path: Path) -> None:
    planted(tmp_path, {"none": 0.02, "k": 0.03}, range(2), model=model)
    _, analysis = analysed(tmp_path)
    assert analysis.placebos == ()
    assert [r.contrast.name for r in analysis.of_response(Response.edge)] == ["bias: [k] − none"]


def test_a_difference_within_the_noise_floor_is_not_found(tmp_path: Path) -> None:
    noise = {"none": 0.0, "linear": 0.1, "k": 20.0}
    planted(tmp_path, {"none": 0.02, "linear": 0.0206, "k": 0.02}, range(8), noise=noise)
    _, analysis = analysed(tmp_path)
    (row,) = (r for r in analysis.of_response(Response.edge) if r.main)
    assert row.holm is not None
    assert row.holm < 0.01
    assert row.floor is not None
    assert row.effect.estimate.mean < row.floor
    assert not row.found


@pytest.mark.parametrize(("seeds", "infers"), [(2, False), (4, False), (5, True)])
def test_few_seeds_infer_nothing_and_say_how_to_get_more(tmp_path: Path, seeds: int, infers: bool) -> None:
    planted(tmp_path, {"none": 0.02, "linear": 0.05}, range(seeds), rates=(0.001, 0.1))
    sentences, analysis = analysed(tmp_path)
    assert analysis.infers == infers
    assert ("infers nothing" in sentences[0]) != infers
    assert (COMMAND in sentences[0]) != infers
    row = analysis.rows[0]
    assert (row.effect.estimate.interval is not None) == infers
    assert (row.holm is not None) == infers


def test_an_unfinished_or_broken_study_has_a_plain_answer(tmp_path: Path) -> None:
    record(tmp_path, 0, verdict=None, state=State.running)
    record(tmp_path, 1, lr=0.1, verdict=None, state=None)
    sentences, _ = analysed(tmp_path)
    assert sentences[0].startswith("No run of this study has finished")
    assert "1 running, 1 queued" in sentences[1] or "1 queued, 1 running" in sentences[1]


def test_only_unstable_runs(tmp_path: Path) -> None:
    for seed in range(5):
        for place, bias in enumerate(("none", "all")):
            record(tmp_path, 10 * seed + place, {"bias": bias}, seed=seed, verdict="diverged", final=math.nan)
    sentences, analysis = analysed(tmp_path)
    assert not any(r.found for r in analysis.rows)
    assert "no detectable difference" in sentences[0]


def test_one_arm_is_described_with_its_interval(tmp_path: Path) -> None:
    planted(tmp_path, {"none": 0.02}, range(6))
    sentences, analysis = analysed(tmp_path)
    assert analysis.rows == ()
    assert sentences[0].startswith("LR½ is 0.02")
    assert "95 % t interval" in sentences[0]
    assert "nothing is compared" in sentences[2]


def test_two_factors_have_an_interaction_and_one_family(tmp_path: Path) -> None:
    for place, placement in enumerate(("pre", "post")):
        for bias_place, bias in enumerate(("none", "all")):
            for seed in range(6):
                for lr in (0.01, 0.1):
                    number = 1000 * place + 100 * bias_place + 10 * seed + int(lr == 0.1)
                    model = {"bias": bias, "placement": placement}
                    final = 4.0 + 0.01 * seed * (place + bias_place) + 0.3 * place + lr
                    record(tmp_path, number, model, lr=lr, seed=seed, final=final)
    _, analysis = analysed(tmp_path)
    names = [r.contrast.name for r in analysis.of_response(Response.best_loss)]
    assert names == ["bias: all − none", "placement: post − pre", "bias: all − none × placement: post − pre"]
    (placement,) = (
        r for r in analysis.of_response(Response.best_loss) if r.contrast.name.startswith("placement")
    )
    assert placement.found
    assert placement.effect.estimate.mean == pytest.approx(0.3 + 0.01 * 2.5)


def test_product_without_enough_seeds_still_names_the_largest_difference(tmp_path: Path) -> None:
    product(tmp_path, ["none", "all"], [0.001, 0.01, 0.1], [0, 1])
    sentences, _ = analysed(tmp_path)
    assert "bias all instead of none" in sentences[1]
    assert "seed 0" in sentences[1]


def test_few_seeds_name_what_the_first_factor_does_and_the_largest_difference(tmp_path: Path) -> None:
    for place, (bias, placement) in enumerate(itertools.product(("none", "all"), ("pre", "post"))):
        for rate_place, lr in enumerate((0.01, 0.1)):
            final = 4.0 + 0.1 * (bias == "all") + 0.5 * (placement == "post") + lr
            record(
                tmp_path, 10 * place + rate_place, {"bias": bias, "placement": placement}, lr=lr, final=final
            )
    sentences, _ = analysed(tmp_path)
    assert "bias all instead of none changes LR½ by ~ ×1.00 (×1.00 in seed 0; edges" in sentences[1]
    assert (
        "the largest difference in LR½ is placement post instead of pre: ≤ ×0.100 (×0.100 in" in sentences[1]
    )


@pytest.mark.parametrize("seeds", [2, 6])
def test_one_rate_is_spoken_of_by_its_loss(seeds: int, tmp_path: Path) -> None:
    for seed, (place, bias) in itertools.product(range(seeds), enumerate(("none", "all"))):
        final = 4.0 + 0.2 * place + 0.01 * seed * (1 + place)
        record(tmp_path, 10 * seed + place, {"bias": bias}, seed=seed, final=final)
    sentences, _ = analysed(tmp_path)
    assert "LR" not in " ".join(sentences)
    assert "final loss" in sentences[1 if seeds < 5 else 0]


def test_a_single_run_is_told_by_its_verdict(tmp_path: Path) -> None:
    record(tmp_path, 0, verdict="spiked", final=4.25)
    sentences, _ = analysed(tmp_path)
    assert sentences[1:] == ["The one finished run (lr 0.01, seed 0) is spiked: final val 4.250."]


def test_unstable_runs_are_counted_apart_from_the_others(tmp_path: Path) -> None:
    for number, verdict in enumerate(["collapsed", "stable", "diverged", "collapsed", "spiked", "stable"]):
        record(tmp_path, number, seed=number, verdict=verdict)
    sentences, _ = analysed(tmp_path)
    expected = "Of 6 finished runs 3 are unstable (2 collapsed, 1 diverged); 2 are stable, 1 spiked."
    assert expected in sentences
