"""Studies over published architectures: what arms are called, and what is never compared."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import view_studies
from test_view_layout import drawn
from view_runs import made_run
from view_studies import record

from ablate.api.together import Together
from ablate.config import expand, flatten, run_id, to_dict
from ablate.stats import Response
from ablate.sweep import describe_models, plan
from ablate.view import Arms, RunFacts, arms_table, planned_arms, reading_notes, report_page
from ablate.view.afresh import differing
from ablate.view.analysis import Analysis
from ablate.view.answer import answer
from ablate.view.comparable import tasks
from ablate.view.facts import with_later_keys
from ablate.view.figures import effect_plate, growth_maps, rate_plate
from ablate.view.figures.armstyle import arm_styles
from ablate.view.report.load import study_results
from ablate.view.results import Results

TINY = "model.scale=tiny"


def runs(*overrides: str) -> list[RunFacts]:
    """One run for each different cell, without results."""
    cells = expand(list(overrides)).cells
    return [dataclasses.replace(made_run(i), flat=flatten(cell)) for i, cell in enumerate(cells)]


def labels(found: Sequence[RunFacts]) -> list[str]:
    arms = Arms.of(found)
    return [arms.label(run) for run in found]


def test_an_arm_is_named_by_its_preset_and_not_by_what_follows_from_it() -> None:
    found = runs("model=transformer,bert,gpt2,palm,olmo2", TINY, "model.bias=own,none")
    assert list(dict.fromkeys(labels(found))) == [
        "preset=transformer bias=[up,down,norm]", "preset=transformer bias=none",
        "preset=bert bias=[all,head]", "preset=bert bias=none", "preset=gpt2 bias=all",
        "preset=gpt2 bias=none", "preset=palm bias=none", "preset=olmo2 bias=none",
    ]  # fmt: skip
    assert labels(runs("model=llama,llama2", TINY)) == ["preset=llama", "preset=llama2"]
    at_their_size = labels(runs("model=llama,palm"))  # the vocabularies follow too
    assert at_their_size == ["preset=llama", "preset=palm"]


def test_what_varies_within_a_preset_stays_a_factor() -> None:
    found = runs("model=palm,llama", TINY, "model.width=32,64")
    assert labels(found)[:2] == ["preset=palm width=32", "preset=palm width=64"]
    zipped = runs("model=gpt2,llama", TINY, "model.bias=none,all", "model.width=32,64",
                  "sweep.zip=[[model.bias,model.width]]")  # fmt: skip
    assert labels(zipped)[0] == "preset=gpt2 width=32 bias=none"
    crossed = runs("model=palm,llama", TINY, "model.placement=pre,post")
    assert labels(crossed)[1] == "preset=palm placement=post"


def test_presets_that_are_one_model_share_their_name() -> None:
    """Qwen at this size is LLaMA with other biases; a run of both is recorded as either."""
    found = runs("model=gpt2,llama,qwen", TINY, "model.bias=own,none")
    assert labels(found)[2:] == ["preset=llama/qwen bias=none"] * 2 + [
        "preset=llama/qwen bias=qkv", "preset=llama/qwen bias=none",
    ]  # fmt: skip
    as_other = [dataclasses.replace(r, flat={**r.flat, "model.preset": "qwen"})
                if r.flat["model.preset"] == "llama" else r for r in found[:3] + found[4:5]]  # fmt: skip
    assert labels(as_other)[2:] == ["preset=qwen bias=none", "preset=qwen bias=qkv"]


def test_presets_without_a_difference_are_no_factor() -> None:
    assert labels(runs("model=llama,qwen", TINY, "model.bias=none", "seed=0,1")) == ["-"] * 4
    assert labels(runs("model=llama,qwen", TINY)) == ["bias=none", "bias=qkv"]
    mixed = [made_run(0, {"model.preset": "gpt2", "seed": 0}), made_run(1, {"seed": 1})]
    assert labels(mixed) == ["-", "-"]


def test_scales_name_models_too() -> None:
    found = labels(runs("model=palm,llama", "model.scale=tiny,small"))
    assert found == [f"preset={p} scale={s}" for p in ("palm", "llama") for s in ("tiny", "small")]
    assert labels(runs("model=gpt2", "model.scale=tiny,small")) == ["scale=tiny", "scale=small"]


def test_the_objective_follows_from_the_stack_but_not_from_the_data() -> None:
    stacks = runs("model.stack=decoder,encoder")
    assert labels(stacks) == ["stack=decoder", "stack=encoder"]
    spans = runs("model=transformer", TINY, "data.objective=prefix,span")
    other = [dataclasses.replace(r, fingerprint=c * 64) for r, c in zip(spans, "ab", strict=True)]
    assert labels(other) == ["objective=prefix", "objective=span"]


def test_runs_recorded_before_a_setting_was_added_are_no_other_arm() -> None:
    new = made_run(0)
    added = ("data.objective", "model.preset", "model.shared_norm", "model.rope_share")
    old = {k: v for k, v in made_run(1, {"seed": 1}).flat.items() if k not in added}
    before = dataclasses.replace(made_run(1), flat=with_later_keys(old))
    assert labels([new, before]) == ["-", "-"]
    assert labels([new, dataclasses.replace(before, flat=old)]) != ["-", "-"]


def test_tasks_are_told_apart_by_objective_vocabulary_and_data() -> None:
    def of(found: Sequence[RunFacts]) -> list[str]:
        return list(tasks({str(i): [run] for i, run in enumerate(found)}).values())

    models = runs("model=bert,gpt2,llama", TINY)
    assert of(models) == ["objective=masked", "objective=next", "objective=next"]
    assert of(models[1:]) == ["", ""]
    assert of(runs("data.vocab_size=256,512")) == ["vocab_size=256", "vocab_size=512"]
    assert of(runs("model.stack=encoder", "data.mask_rate=0.15,0.4")) == ["mask_rate=0.15", "mask_rate=0.4"]
    texts = [
        made_run(0),
        made_run(1, {"data.tokens": 9000, "data.source": "synthetic"}, fingerprint="e" * 64),
    ]
    assert of(texts) == ["source=stdlib", "source=synthetic"]
    assert of([made_run(0), made_run(1, fingerprint="e" * 64)]) == ["data=ffffffff", "data=eeeeeeee"]
    assert of([made_run(0), made_run(1, {"model.context": 128}, fingerprint=None)]) == ["", ""]  # not begun


def made(root: Path, seeds: int = 2) -> None:
    """BERT ends at 3, GPT-2 and LLaMA about 4, both with and without biases; at 0.1 half is lost."""
    cells = expand(["model=gpt2,llama,bert", TINY, "model.bias=none,all", "optim.lr=0.01,0.1"]).cells
    for number, cell in enumerate(cells):
        for seed in range(seeds):
            low = 3.0 if cell.model.preset == "bert" else 4.0 + 0.2 * (cell.model.preset == "llama")
            final = low + 0.05 * bool(cell.model.bias) + 0.01 * seed + (1.2 if cell.optim.lr > 0.05 else 0)
            record(
                root, 100 * number + seed, to_dict(cell)["model"], lr=cell.optim.lr, seed=seed, final=final
            )


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Results:
    root = tmp_path_factory.mktemp("made")
    made(root)
    return study_results(root, "s")


def test_impaired_is_judged_within_the_task(study: Results) -> None:
    """4.2 at BERT's high rate is half way from 3 to 5; GPT-2 at 4 is not, although BERT is at 3."""
    lost = {r.run_id for r in study.runs if r.lr == 0.1}
    assert study.impaired == lost == study.study.impaired
    assert Together.of(study.runs).impaired == lost
    assert study.study.best == {
        "objective=next": pytest.approx(4.005),
        "objective=masked": pytest.approx(3.005),
    }


def test_no_contrast_and_no_sentence_mixes_tasks(study: Results) -> None:
    analysis = Analysis.of(study)
    names = [row.contrast.name for row in analysis.of_response(Response.best_loss)]
    assert names == [
        "bias: all − none (objective=masked)", "bias: all − none (objective=next)",
        "preset: llama − gpt2 (objective=next)",
        "preset: llama − gpt2 × bias: all − none (objective=next)",
    ]  # fmt: skip
    headline = "bias all instead of none, averaged over 2 models (gpt2, llama), changes LR½ by"
    assert headline in answer(study, analysis, "more")[1]
    assert any("2 tasks" in note and "objective=masked: 2 arms" in note for note in reading_notes(study))
    assert "of the same model to the unigram" in reading_notes(study)[-1]


def test_the_page_says_over_which_models_an_effect_is_taken(study: Results) -> None:
    page = report_page(study, Analysis.of(study), "s", "more")
    assert "gpt2, llama" in page
    assert "2 tasks" in page
    assert ", objective masked" in page


def test_panels_of_a_task_have_axes_and_neighbours_of_their_own(study: Results) -> None:
    panels = {panel.title: panel.figure for panel in rate_plate(study).panels}
    gpt2, bert = panels["preset=gpt2 bias=none"], panels["preset=bert bias=none"]
    assert gpt2["layout"]["yaxis"]["range"] == panels["preset=llama bias=all"]["layout"]["yaxis"]["range"]
    assert gpt2["layout"]["yaxis"]["range"] != bert["layout"]["yaxis"]["range"]
    others = [y for y in bert["data"][0]["y"] if y is not None]
    assert others == pytest.approx([3.055, 4.255])


def test_the_models_stand_in_the_order_of_their_publication(study: Results) -> None:
    assert study.study.factors["preset"] == ("bert", "gpt2", "llama")
    later = Results.of(runs("model=llama,qwen,gpt2,transformer", TINY))
    assert later.study.factors["preset"] == ("transformer", "gpt2", "llama/qwen")


def test_many_contrasts_are_drawn_without_their_interactions(
    monkeypatch: pytest.MonkeyPatch, study: Results
) -> None:
    whole = effect_plate(Analysis.of(study))
    monkeypatch.setattr("ablate.view.figures.forest.MANY", 2)
    short = effect_plate(Analysis.of(study))
    assert whole is not None and short is not None  # noqa: PT018
    rows = [len(plate.panels[-1].figure["layout"]["yaxis"]["ticktext"]) for plate in (whole, short)]
    assert rows == [4, 3]
    assert "Interactions" in short.caption
    assert "Interactions" not in whole.caption


def test_a_map_begins_with_the_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = ("b00_q", "e01_q", "b00_cross_q", "e00_q", "head", "b01_cross_q", "e00_down", "b00_down")
    monkeypatch.setattr(view_studies, "LINEARS", shown)
    record(tmp_path, 0, lr=0.01)
    record(tmp_path, 1, lr=0.1, growth=2.0, final=4.5)
    entries, _ = growth_maps(study_results(tmp_path, "s"))
    assert entries[0]["linears"] == [
        "e00_down", "b00_down", "e00_q", "e01_q", "b00_q", "b00_cross_q", "b01_cross_q", "head",
    ]  # fmt: skip
    curves = next(iter(study_results(tmp_path, "s").curves.values()))
    assert set(curves.sites) == {"q", "cross_q", "down", "head"}


@pytest.mark.parametrize("width", [80, 120, 200])
def test_a_plan_names_its_arms_in_full_in_any_terminal(
    width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    the_plan = plan(["model=transformer,bert,llama,qwen", TINY, "model.bias=own,none,all",
                     f"run.root={tmp_path}"])  # fmt: skip
    arms = planned_arms(the_plan)
    text = "\n".join(drawn(arms_table(the_plan, arms, describe_models([a.config for a in arms], print)),
                           width, monkeypatch))  # fmt: skip
    assert "…" not in text
    assert all(word in text for arm in arms for word in arm.label.split())
    assert max(map(len, text.splitlines())) <= width
    assert "cross_o:64" in text


def placebos(root: Path, *models: dict[str, object]) -> tuple[tuple[str, str], ...]:
    """What is taken for a placebo among models that differ in these biases."""
    for number, (model, seed) in enumerate((model, seed) for model in models for seed in range(2)):
        record(root, number, model, seed=seed)
    return Analysis.of(study_results(root, "s")).placebos


def test_a_key_bias_of_cross_attention_is_a_placebo_where_keys_are_not_normed(tmp_path: Path) -> None:
    plain = {"stack": "encoder_decoder", "position": "rope", "bias": ["q"]}
    crossed = {**plain, "bias": ["q", "cross_k"]}
    assert placebos(tmp_path / "a", plain, crossed) == (("bias=[q,cross_k]", "bias=[q]"),)
    own = {**plain, "bias": ["q", "k"]}
    assert placebos(tmp_path / "b", plain, own) == ()  # rotary positions give it a meaning
    normed = [{**model, "qk_norm": True} for model in (plain, crossed)]
    assert placebos(tmp_path / "c", *normed) == ()


def test_a_study_recorded_before_and_after_a_setting_was_added_is_one(tmp_path: Path) -> None:
    for seed in range(2):
        folder = record(tmp_path, seed, seed=seed)
    meta = json.loads(folder.meta.read_text())
    for key in ("model.preset", "model.rope_share", "data.objective"):
        del meta["config"][key]
    folder.meta.write_text(json.dumps(meta))
    assert [arm.name for arm in study_results(tmp_path, "s").arms] == ["-"]


def test_the_noise_floor_of_a_task_is_no_other_tasks(tmp_path: Path) -> None:
    """GPT-2 has a placebo, BERT none: only GPT-2's contrasts have a floor."""
    cells = [*expand(["model=gpt2", TINY, "model.bias=none,[k],all"]).cells,
             *expand(["model=bert", TINY, "model.bias=none,all"]).cells]  # fmt: skip
    for number, cell in enumerate(cells):
        for seed in range(5):
            final = 4.0 + 0.01 * number * (1 + seed % 2)
            record(tmp_path, 10 * number + seed, to_dict(cell)["model"], seed=seed, final=final)
    analysis = Analysis.of(study_results(tmp_path, "s"))
    rows = {row.contrast.name: row.floor for row in analysis.of_response(Response.best_loss)}
    assert rows["bias: all − none (objective=masked)"] is None
    assert rows["bias: all − none (objective=next)"] == pytest.approx(
        analysis.floors[Response.best_loss].main["objective=next"].band(5)
    )


@pytest.mark.parametrize("preset", ["transformer", "bert", "gpt3", "palm", "qwen2", "olmo2", "gpt_neox"])
def test_the_command_that_trains_a_scaled_preset_afresh_asks_for_the_same_run(preset: str) -> None:
    (cell,) = expand([f"model={preset}", TINY, "model.bias=own"]).cells
    words = differing(cell)
    assert not any(word.startswith("model.scale=") for word in words)
    (again,) = expand(words).cells
    assert run_id(again, "data") == run_id(cell, "data")


def test_more_models_than_colours_leave_the_colours_to_the_biases() -> None:
    names = "transformer,bert,gpt2,gpt3,gpt_neox,palm,llama,llama2,llama3"
    many = Results.of(runs(f"model={names}", TINY, "model.bias=none,all"))
    styles, key = arm_styles(many.arms)
    assert {entry.label for entry in key} == {"bias=none", "bias=all"}
    assert len({look.colour for look in styles.values()}) == 2
    few, key = arm_styles(Results.of(runs("model=gpt2,palm", TINY, "model.bias=none,all")).arms)
    assert "preset=palm" in {entry.label for entry in key}
    assert len({(look.colour, look.symbol) for look in few.values()}) == 4
