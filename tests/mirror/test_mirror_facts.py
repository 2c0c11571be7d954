"""What a W&B run is called, what it says of itself, and what its summary holds."""

import json
import math
import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.mirror.mirror_studies import Made, study

from ablate.config import compose, run_id, science
from ablate.mirror import run_facts, run_summary, wandb_id
from ablate.mirror.facts import Facts
from ablate.record import Run, State
from ablate.view import Arms, read_facts


def facts_of(made: list[Made]) -> list[Facts]:
    seen = [read_facts(one.folder) for one in made]
    arms = Arms.of(seen)
    return [run_facts(Run(facts.folder), facts, arms) for facts in seen]


def test_runs_are_grouped_by_arm_and_told_apart_by_axes(tmp_path: Path) -> None:
    found = facts_of(study(tmp_path))
    assert [facts.group for facts in found] == ["bias=none", "bias=none", "bias=all", "bias=all"]
    assert len({facts.name for facts in found}) == 4
    assert found[0].name == "bias=none lr=0.01 seed=0"
    assert {facts.project for facts in found} == {"s"}
    assert [facts.config["axis_lr"] for facts in found] == [0.01, 0.1, 0.01, 0.1]
    assert found[2].config["axis_bias"] == "all"
    assert found[0].config["optim"]["lr"] == 0.01
    assert "bias=none" in found[0].tags
    json.dumps([facts.plain() for facts in found], allow_nan=False)


def test_configuration_keys_are_what_the_service_can_filter(tmp_path: Path) -> None:
    (facts,) = facts_of([Made.queued(tmp_path, 1).whole()])

    def keys(tree: object) -> list[str]:
        if not isinstance(tree, dict):
            return []
        return [*tree, *(key for part in tree.values() for key in keys(part))]

    assert not [key for key in keys(dict(facts.config)) if "." in key or not isinstance(key, str)]
    assert facts.group == "all runs"


def test_the_command_in_the_notes_is_the_experiment(tmp_path: Path) -> None:
    made = Made.queued(tmp_path, 1, bias="all", lr=0.3, notes="why not").whole()
    (facts,) = facts_of([made])
    assert facts.notes.startswith("why not\n\n")
    words = shlex.split(facts.notes.splitlines()[-1].partition(": ")[2])
    assert words[:2] == ["ablate", "train"]
    config = Run(made.folder).config
    assert science(compose(words[2:])) == science(config)
    assert run_id(compose(words[2:]), "f") == run_id(config, "f")


@given(st.text(alphabet="abz=_.+-0/é", max_size=90))
def test_an_id_is_readable_unique_and_allowed(slug: str) -> None:
    found = wandb_id(f"{slug}-0123456789ab")
    assert found.endswith("-0123456789ab")
    assert len(found) <= 64
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", found)


def test_what_tells_runs_apart_stands_first_in_an_id() -> None:
    name = "bias=none_placement=post_layers=2_width=32_heads=2_context=32_qk_norm=true_lr=0.01_seed=3"
    assert wandb_id(f"{name}-0123456789ab").startswith("bias-none_placement-post_lr-0.01_seed-3_layers-2")


def test_a_finite_summary_of_a_run_that_broke(tmp_path: Path) -> None:
    made = Made.queued(tmp_path, 1, lr=1.0).begin().write(12, bad=math.inf).end()
    found = run_summary(Run(made.folder), read_facts(made.folder))
    json.dumps(found, allow_nan=False)
    assert found["verdict"] == "diverged"
    assert found["diverged"] is True
    assert found["diverged_step"] == 11
    assert "final/val/loss" not in found
    assert found["final/loss_capped"] == pytest.approx(found["measures/l0"])
    assert "max/train/loss" in str(found["nonfinite"])
    assert "max/train/loss" not in found


def test_a_run_that_failed_says_why(tmp_path: Path) -> None:
    made = Made.queued(tmp_path, 1).begin().write(3).end(State.failed, "out of memory")
    found = run_summary(Run(made.folder), read_facts(made.folder))
    assert found["state"] == "failed"
    assert found["reason"] == "out of memory"
    assert found["verdict"] == "none"
    assert found["steps"] == 3
