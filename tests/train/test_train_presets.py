"""Every published architecture trains at a study size."""

import os
import signal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ablate.config import Config, compose, conf_dir, replace
from ablate.data import prepare
from ablate.model import build
from ablate.train import Ending, Stepper, evaluate

STEPS = 20
SETTINGS = {
    "optim.steps": STEPS, "optim.batch": 8, "data.max_bytes": 300_000, "data.val_tokens": 1024,
}  # fmt: skip
PRESETS = sorted(path.stem for path in (Path(conf_dir()) / "model").glob("*.yaml"))
# Of each line of presets that differ in size alone, one; the others take their time in make test-all.
LARGER = {
    "bert_large", "gpt2_medium", "gpt2_large", "gpt2_xl", "gpt3_175b", "palm_62b", "palm_540b",
    "transformer_big",
}  # fmt: skip


RESUMED = {"bert", "transformer", "gpt3", "gpt_neox", "palm", "qwen3"}  # by default; between them, every part
each_preset = pytest.mark.parametrize(
    "preset", [pytest.param(p, marks=pytest.mark.slow) if p in LARGER else p for p in PRESETS]
)


@cache
def tiny(preset: str) -> Config:
    return compose([f"model={preset}", "model.scale=tiny"])


@each_preset
def test_a_preset_at_a_tiny_scale_learns(preset: str) -> None:
    config = replace(tiny(preset), SETTINGS)
    data = prepare(config.data, config.model.context)
    made = Stepper(build(config.model, data.facts.vocab_size, 0, config.probe), config)
    before, batches = evaluate(made.module, data.val, 8), data.batches(8, 0)
    found = [float(made.step(step, batches.examples(step)).dense_C[0]) for step in range(STEPS)]
    assert np.isfinite(found).all()
    assert np.mean(found[-3:]) < np.mean(found[:3]) - 0.15
    assert evaluate(made.module, data.val, 8) < before - 0.15


@pytest.mark.parametrize(
    "preset", [p if p in RESUMED else pytest.param(p, marks=pytest.mark.slow) for p in PRESETS]
)
def test_a_preset_resumes_exactly(bench: Any, same_rows: Any, preset: str) -> None:
    """Asked to stop in step 3 of 6, where no checkpoint was due."""
    changes = {"optim.steps": 6, "optim.batch": 4, "eval.every": 3, "probe.every": 2, "run.device": "cpu"}
    config = replace(tiny(preset), {**SETTINGS, **changes})

    def stop_at_3(text: str) -> None:
        if text.startswith("step 3:"):
            os.kill(os.getpid(), signal.SIGTERM)

    whole, _ = bench.train(config, study="whole")
    folder, outcome = bench.train(config, announce=stop_at_3)
    assert outcome.ending is Ending.preempted
    _, outcome = bench.train(config)
    assert outcome.ending is Ending.complete
    assert same_rows(folder, whole)


def test_all_presets_are_tried() -> None:
    assert {"bert", "transformer", "gpt2", "palm", "qwen3"} <= set(PRESETS)
    assert set(PRESETS) >= LARGER
