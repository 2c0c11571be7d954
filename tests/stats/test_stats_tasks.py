"""Studies of several tasks: every number of an arm is what it would be with its own task's arms alone."""

import dataclasses
import math

import pytest

from ablate.stats import Outcome, Response, Study, factorial, lr_half, responses
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
