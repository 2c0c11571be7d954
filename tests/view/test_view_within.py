"""Studies of several models: what biases do in each, what never learned, and what the page says of it."""

import dataclasses
import math
from pathlib import Path

import pytest
from view_studies import record

from ablate.config import expand, to_dict
from ablate.stats import Response, Study, lr_half
from ablate.view import Analysis, answer, markdown, reading_notes, report_page
from ablate.view.figures import effect_plate, within_plate
from ablate.view.report import study_results
from ablate.view.report.tables import effects_table, responses_table, within_table
from ablate.view.results import Results

TINY = "model.scale=tiny"
LOW = {"gpt2": 4.2, "llama": 3.0, "qwen2": 3.5, "bert": 4.9}
SHIFT = {"gpt2": 0.1, "llama": 0.3, "qwen2": 0.2, "bert": 0.0}


def made(root: Path, seeds: int) -> Results:
    """Biases raise the loss by SHIFT in each model; at 0.1 every model loses half of what it learned."""
    cells = expand(
        ["model=gpt2,llama,qwen2,bert", TINY, "model.bias=own,none,all", "optim.lr=0.01,0.1"]
    ).cells
    seen = set()
    for cell in cells:
        preset, biases, lr = str(cell.model.preset), len(cell.model.bias), cell.optim.lr
        if (preset, biases, lr) in seen:
            continue
        seen.add((preset, biases, lr))
        for seed in range(seeds):
            final = LOW[preset] + SHIFT[preset] * bool(biases) + 0.01 * seed * (1 + bool(biases))
            final = final + 0.6 * (5.0 - LOW[preset]) if lr > 0.05 else final
            verdict = "stable" if preset != "bert" else "undertrained" if lr > 0.05 else "collapsed"
            record(root, 10 * len(seen) + seed, to_dict(cell)["model"], lr=lr, seed=seed, final=final,
                   verdict=verdict)  # fmt: skip
    return study_results(root, "s")


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return made(tmp_path_factory.mktemp("few"), 2)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return made(tmp_path_factory.mktemp("many"), 6)


def test_every_model_has_its_own_bias_effects(few: Results) -> None:
    analysis = Analysis.of(few)
    rows = {r.contrast.name: r.effect.estimate for r in analysis.within_of(Response.best_loss)}
    assert list(rows) == [
        "bias: all − none in bert", "bias: [all,head] − none in bert", "bias: all − none in gpt2",
        "bias: all − none in llama", "bias: all − none in qwen2", "bias: qkv − none in qwen2",
    ]  # fmt: skip
    assert rows["bias: all − none in llama"].per_seed == pytest.approx((0.3, 0.31))
    assert rows["bias: qkv − none in qwen2"].mean == pytest.approx(0.205)
    assert all(found.n == 2 and found.interval is None for found in rows.values())


def test_the_mean_over_models_is_the_mean_of_their_effects(few: Results) -> None:
    analysis = Analysis.of(few)
    for response in (Response.edge, Response.best_loss, Response.unstable):
        (main,) = (r for r in analysis.of_response(response)
                   if r.contrast.name == "bias: all − none (objective=next)")  # fmt: skip
        own = [r.effect.estimate.mean for r in analysis.within_of(response)
               if r.contrast.task == "objective=next" and "all − none" in r.contrast.name]  # fmt: skip
        assert len(own) == 3
        assert main.effect.estimate.mean == pytest.approx(math.fsum(own) / 3)


def test_edges_are_measured_against_the_best_loss_of_the_model(few: Results) -> None:
    """LLaMA ends at 3 and GPT-2 at 4.2: against LLaMA's best, GPT-2 would be impaired at its best rate."""
    study, arm = few.study, "preset=gpt2 bias=none"
    alone = study.part(
        [dataclasses.replace(o, model="") for o in study.outcomes if o.levels["preset"] == "gpt2"]
    )
    assert lr_half(study, arm, "0") == lr_half(alone, arm, "0")
    together = Study.of([dataclasses.replace(o, model="") for o in study.outcomes], study.rates)
    assert lr_half(together, arm, "0") != lr_half(study, arm, "0")
    at_best = {o.run_id for o in study.outcomes if o.arm == arm and o.lr == 0.01}
    assert not at_best & few.impaired
    assert at_best <= together.impaired


def test_what_is_tested_is_one_family_each_once(many: Results) -> None:
    analysis = Analysis.of(many)
    assert analysis.infers
    mains = [r for r in analysis.rows if r.holm is not None]
    within = [r for r in analysis.within if r.holm is not None]
    own = [r for r in within if r.contrast.task == "objective=next" and "all − none" in r.contrast.name]
    assert own
    assert len(analysis.tested) == len(mains) + len(own)  # BERT and qkv in Qwen 2 are main effects already
    names = {(r.contrast.response, r.contrast.name): r.holm for r in (*mains, *within)}
    for response in Response:
        alone, main = "bias: qkv − none in qwen2", "bias: qkv − none (objective=next)"
        assert names.get((response, alone)) == names.get((response, main))
    page = report_page(many, analysis, "s", "more")
    assert f"over all {len(analysis.tested)} contrasts of this page, these and the others" in page
    (llama,) = (r for r in analysis.within_of(Response.best_loss) if r.contrast.name.endswith("in llama"))
    assert llama.found
    tab = within_table(analysis)
    seen = [row[tab.columns.index("detectable")] for row in tab.rows if row[0] == "llama"]
    assert "loss at best lr" in seen[0]


@pytest.mark.parametrize("which", ["few", "many"])
def test_the_answer_says_of_which_models_it_speaks(which: str, request: pytest.FixtureRequest) -> None:
    results = request.getfixturevalue(which)
    words = " ".join(answer(results, Analysis.of(results), "more"))
    assert "averaged over 3 models (gpt2, llama, qwen2)" in words or "in llama" in words
    assert "block" not in words
    assert "preset" not in words
    assert "in bert" not in words


def test_models_that_never_learned_say_nothing(few: Results) -> None:
    assert few.study.unlearned == (
        "preset=bert bias=none",
        "preset=bert bias=all",
        "preset=bert bias=[all,head]",
    )
    notes = " ".join(reading_notes(few))
    assert "In 3 of 10 arms most runs get no further than the unigram even at the best rate" in notes
    assert "bert (3 of 3 arms)" in notes
    assert "6 runs learned nothing without breaking (undertrained) and are not counted as unstable" in notes
    analysis = Analysis.of(few)
    silent = {row[0] for row in within_table(analysis).rows if "says nothing" in row[-1]}
    assert silent == {"bert"}
    plate = within_plate(analysis)
    assert plate is not None
    assert "Never learned" in plate.caption


def test_a_run_at_another_rate_than_the_best_makes_no_arm_unlearned(tmp_path: Path) -> None:
    for lr, verdict, final in ((0.01, "stable", 4.0), (0.1, "collapsed", 5.0), (1.0, "undertrained", 5.9)):
        record(tmp_path, int(lr * 100), lr=lr, verdict=verdict, final=final)
    results = study_results(tmp_path, "s")
    assert results.study.unlearned == ()
    assert any(note.startswith("1 run learned nothing") for note in reading_notes(results))


def test_the_page_puts_the_models_after_the_answer_and_explains_its_signs(few: Results) -> None:
    page = report_page(few, Analysis.of(few), "s", "more")
    places = [page.index(f'id="{name}"') for name in ("answer", "within", "tables", "figures")]
    assert places == sorted(places)
    assert "Biases, model by model" in page
    assert page.index('id="within-edge"') < page.index('id="tables"')
    assert "everything else at its default or, where presets say otherwise" in page
    assert "each of these models survives" in page
    assert "the arms of one preset share" in page
    assert "1 block left out" not in page
    assert "## Effects within each model" in markdown(few, Analysis.of(few), "s", "more")


def test_a_study_of_one_model_has_none_of_this(tmp_path: Path) -> None:
    for number, bias in enumerate(("none", "all")):
        record(tmp_path, number, {"bias": bias})
    results = study_results(tmp_path, "s")
    analysis = Analysis.of(results)
    assert analysis.within == ()
    assert within_plate(analysis) is None
    page = report_page(results, analysis, "s", "more")
    assert 'id="within"' not in page
    assert "everything else at its default (ablate config --keys)" in page
    assert "which learning rates this model survives" in page


def test_what_was_not_tested_is_not_called_undetectable(few: Results, many: Results) -> None:
    for results, word in ((few, "mean, not tested"), (many, "mean, not detectable")):
        plate = effect_plate(Analysis.of(results))
        assert plate is not None
        assert word in {key.label for key in plate.key}


def test_rows_without_values_are_not_drawn(few: Results) -> None:
    analysis = Analysis.of(few)
    plate = effect_plate(analysis)
    assert plate is not None
    for panel, response in zip(plate.panels, Response, strict=True):
        known = sum(bool(r.effect.estimate.n) for r in analysis.of_response(response))
        assert len(panel.figure["layout"]["yaxis"]["ticktext"]) == known


def test_numbers_stand_to_the_right_and_means_over_many_are_counted(few: Results) -> None:
    analysis = Analysis.of(few)
    tab = responses_table(analysis)
    assert set(tab.right) == set(tab.columns[1:])
    assert "gpt2, llama, qwen2" in effects_table(analysis, Response.best_loss).column("mean over")
