"""A study over presets: what follows from the model is no confound, what does not still is one."""

from pathlib import Path

import pytest

from ablate.config import expand, run_id
from ablate.sweep import check_confounds, describe_models, plan
from ablate.sweep.guard import FINGERPRINT, confounds, declared_keys
from ablate.sweep.realised import differences

PRESETS = "transformer,bert,gpt2,llama,qwen,olmo2,gpt_neox"


def found(*overrides: str, prints: tuple[str, ...] = ("a",)) -> list[str]:
    grid = expand(list(overrides))
    return [c.key for c in confounds(grid.cells, prints, declared_keys(grid.axes, grid.allow))]


def test_objective_and_vocabulary_follow_from_the_model() -> None:
    assert found(f"model={PRESETS}", "model.scale=tiny", "model.bias=own,none,all") == []
    assert found(f"model={PRESETS}") == []  # at their own sizes: every vocabulary is another
    assert found(f"model={PRESETS}", prints=("a", "b")) == []  # synthetic data differ with the vocabulary


def test_data_that_do_not_follow_from_the_model_are_a_confound() -> None:
    assert found(f"model={PRESETS}", "model.scale=tiny", prints=("a", "b")) == [FINGERPRINT]


def test_presets_of_several_experiments_are_not_declared_by_the_study() -> None:
    grid = expand(["model=bert,gpt2", "model.scale=tiny"])
    assert "data.objective" not in {c.key for c in confounds(grid.cells, ("a",), frozenset())}
    assert {"model.stack", "model.placement"} <= {
        c.key for c in confounds(grid.cells, ("a",), frozenset({"model.bias"}))
    }


@pytest.fixture(scope="module")
def the_plan(tmp_path_factory: pytest.TempPathFactory) -> object:
    root = tmp_path_factory.mktemp("runs")
    return plan(["experiment=architectures", f"run.root={root}", "optim.lr=1e-2", "seed=0"])


def test_the_study_of_architectures_passes_the_guard_with_built_models(the_plan, tmp_path: Path) -> None:
    configs = [cell.config for cell in the_plan.cells]
    descriptions = describe_models(configs, lambda _: None)
    check_confounds(the_plan, descriptions)
    assert (len(the_plan.cells), the_plan.duplicates) == (30, 12)
    own = {c.model.preset: descriptions[c.model, 512]["biases"] for c in configs if len(c.model.bias) == 3}
    assert {name: set(sites) for name, sites in own.items()} == {
        "transformer": {"up", "down", "norm"}, "qwen": {"q", "k", "v"}, "qwen2": {"q", "k", "v"},
    }  # fmt: skip


def test_a_built_model_whose_bias_changes_its_weights_is_refused(the_plan) -> None:
    """As with `own`, `none` and `all` of one preset, where a bias brought a norm along."""
    descriptions = describe_models([cell.config for cell in the_plan.cells], lambda _: None)
    assert differences(descriptions, {}) == []
    model = next(m for m in descriptions if m[0].preset == "bert" and not m[0].bias)
    broken = {**descriptions[model], "by_site": {**descriptions[model]["by_site"], "transform": 1}}
    assert "model.bias changes the weights of the built model" in differences(
        {**descriptions, model: broken}, {}
    )


def test_presets_that_are_one_model_ask_for_one_run() -> None:
    grid = expand(["model=llama,qwen", "model.scale=tiny", "model.bias=none"])
    assert len({run_id(cell, "data") for cell in grid.cells}) == 1
    assert len(grid.cells) == 2


def test_the_same_presets_may_not_differ_in_more_in_a_later_sweep(tmp_path: Path) -> None:
    words = ["model=bert,gpt2", "model.scale=tiny", "optim.lr=1e-2"]
    first, second = (expand([*words, f"optim.steps={steps}"]) for steps in (20, 30))
    declared = declared_keys(first.axes, ())
    assert [c.key for c in confounds([*first.cells, *second.cells], ("a",), declared)] == ["optim.steps"]
