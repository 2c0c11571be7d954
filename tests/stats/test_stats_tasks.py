"""Studies of several tasks: every number of an arm is what it would be with its own task's arms alone."""

import dataclasses
import math

import pytest

from ablate.stats import Outcome, Response, Study, factorial, lr_half, responses, simple
from ablate.verdict import Kind

RATES = (1e-3, 1e-2, 1e-1)
FINALS = {("a", "none"): (4.0, 4.4, 5.4), ("a", "all"): (4.1, 4.7, 5.2), ("b", "none"): (4.2, 4.3, 5.5),
          ("b", "all"): (4.3, 4.9, 5.6)}  # fmt: skip


def runs(task: str, shift: float = 0.0, models: str = "ab") -> list[Outcome]:
    """Two models with and without biases, three seeds; losses and levels moved by `shift`."""
    return [
        Outcome(f"{task}{model}{bias}{lr}{seed}", f"{task}{model}{bias}", lr, str(seed), Kind.stable,
                final + shift + 0.01 * seed, 6.0 + shift, 5.0 + shift,
                {"preset": task + model, "bias": bias}, task)
        for (model, bias), finals in FINALS.items() if model in models
        for lr, final in zip(RATES, finals, strict=True) for seed in range(3)
    ]  # fmt: skip


BOTH = Study.of([*runs("next"), *runs("masked", -3.0)])
ALONE = {"next": Study.of(runs("next")), "masked": Study.of(runs("masked", -3.0))}


def test_the_best_loss_is_each_tasks_own() -> None:
    assert BOTH.best == {"next": 4.01, "masked": pytest.approx(1.01)}
    assert BOTH.impaired == ALONE["next"].impaired | ALONE["masked"].impaired != frozenset()


@pytest.mark.parametrize("response", Response)
def test_every_response_is_that_of_the_task_alone(response: Response) -> None:
    for study in ALONE.values():
        for arm, values in responses(study, response).items():
            assert responses(BOTH, response)[arm] == values
    assert lr_half(BOTH, "maskedanone", "0") == lr_half(ALONE["masked"], "maskedanone", "0")


@pytest.mark.parametrize("response", Response)
def test_contrasts_are_those_of_each_task_and_none_across(response: Response) -> None:
    found = factorial(BOTH, response)
    for task, study in ALONE.items():
        own = [dataclasses.replace(c, task="") for c in found if c.task == task]
        assert own == [dataclasses.replace(c, task="") for c in factorial(study, response)]
    assert {c.task for c in found} == {"next", "masked"}
    assert [len(c.of) for c in found] == [1, 1, 1, 1, 2, 2]
    for contrast in found:
        presets = {level for part in (contrast.of, contrast.against, *contrast.blocks)
                   for name, level in part if name == "preset"}  # fmt: skip
        assert all(preset.startswith(contrast.task) for preset in presets)
    assert found[0].name.endswith(f"({found[0].task})")


def test_a_task_with_one_model_has_its_bias_effect_and_no_interaction() -> None:
    study = Study.of([*runs("next"), *runs("masked", -3.0, "a")])
    own = [c for c in factorial(study, Response.best_loss) if c.task == "masked"]
    assert [c.name for c in own] == ["bias: none − all (masked)"]
    assert math.isclose(own[0].effect.estimate.mean, -0.1)


def test_one_task_is_named_nowhere() -> None:
    plain = Study.of([dataclasses.replace(o, task="") for o in runs("next")])
    for response in Response:
        named = factorial(ALONE["next"], response)
        assert [dataclasses.replace(c, task="") for c in named] == list(factorial(plain, response))
        assert all("(" not in c.name for c in factorial(plain, response))


def test_an_arm_has_one_task() -> None:
    other = dataclasses.replace(runs("next")[0], run_id="x", seed="9", task="masked")
    with pytest.raises(AssertionError, match="one task an arm"):
        Study.of([*runs("next"), other])


def test_simple_effects_are_those_of_each_level_alone() -> None:
    for response in Response:
        found = simple(ALONE["next"], response, "preset")
        assert [c.name for c in found] == ["bias: none − all in nexta", "bias: none − all in nextb"]
        for c, model in zip(found, "ab", strict=True):
            own = [o for o in ALONE["next"].outcomes if o.levels["preset"] == f"next{model}"]
            assert c.effect == factorial(ALONE["next"].part(own), response)[0].effect
    assert simple(Study.of(runs("next", models="a")), Response.edge, "preset") == ()
    assert simple(ALONE["next"], Response.edge, "norm") == ()


def test_named_models_have_levels_of_their_own() -> None:
    """Half way is measured from a model's own best loss; without names from the task's."""
    named = Study.of([dataclasses.replace(o, model=o.levels["preset"]) for o in runs("next")])
    assert named.best == ALONE["next"].best
    assert named.best_of == {("next", "nexta"): pytest.approx(4.01), ("next", "nextb"): pytest.approx(4.21)}
    for model, half in (("a", 4.505), ("b", 4.605)):
        run = next(o for o in named.outcomes if o.model == f"next{model}")
        assert named.half_way(run) == pytest.approx(half)
        assert ALONE["next"].half_way(dataclasses.replace(run, model="")) == pytest.approx(4.505)
    two = [dataclasses.replace(runs("next")[0], run_id="x", seed="9", model="other"), *runs("next")]
    with pytest.raises(AssertionError, match="one model an arm"):
        Study.of(two)


@pytest.mark.parametrize(
    ("kinds", "never"),
    [
        ((Kind.collapsed, Kind.collapsed, Kind.stable), True),
        ((Kind.undertrained, Kind.collapsed, None), True),
        ((Kind.collapsed, Kind.stable, None), False),
        ((Kind.diverged, Kind.diverged, Kind.diverged), False),
        ((Kind.censored, Kind.censored, Kind.collapsed), True),
        ((None, None, None), True),  # the best rate that is known is the other
    ],
)
def test_an_arm_never_learned_if_most_runs_at_its_best_rate_end_at_the_unigram(
    kinds: tuple[Kind | None, ...], never: bool
) -> None:
    best = [Outcome(f"{i}", "a", 1e-3, str(i), kind, 4.9, 6.0, 5.0) for i, kind in enumerate(kinds)]
    beyond = [Outcome(f"x{i}", "a", 1e-2, str(i), Kind.collapsed, 5.1, 6.0, 5.0) for i in range(2)]
    found = Study.of([*best, *beyond])
    assert found.unlearned == (("a",) if never else ())
