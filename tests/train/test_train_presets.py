"""Every published architecture trains at a study size."""

from pathlib import Path

import numpy as np
import pytest

from ablate.config import compose, conf_dir
from ablate.data import prepare
from ablate.model import build
from ablate.train import Stepper, evaluate

STEPS = 20
PRESETS = sorted(path.stem for path in (Path(conf_dir()) / "model").glob("*.yaml"))
# Of each line of presets that differ in size alone, one; the others take their time in make test-all.
LARGER = {
    "bert_large", "gpt2_medium", "gpt2_large", "gpt2_xl", "gpt3_175b", "palm_62b", "palm_540b",
    "transformer_big",
}  # fmt: skip


@pytest.mark.parametrize(
    "preset", [pytest.param(p, marks=pytest.mark.slow) if p in LARGER else p for p in PRESETS]
)
def test_a_preset_at_a_tiny_scale_learns(preset: str) -> None:
    settings = (f"optim.steps={STEPS}", "optim.batch=8", "data.max_bytes=300000", "data.val_tokens=1024")
    config = compose([f"model={preset}", "model.scale=tiny", *settings])
    data = prepare(config.data, config.model.context)
    made = Stepper(build(config.model, data.facts.vocab_size, 0, config.probe), config)
    before, batches = evaluate(made.module, data.val, 8), data.batches(8, 0)
    found = [float(made.step(step, batches.examples(step)).dense_C[0]) for step in range(STEPS)]
    assert np.isfinite(found).all()
    assert np.mean(found[-3:]) < np.mean(found[:3]) - 0.15
    assert evaluate(made.module, data.val, 8) < before - 0.15


def test_all_presets_are_tried() -> None:
    assert {"bert", "transformer", "gpt2", "palm", "qwen3"} <= set(PRESETS)
    assert set(PRESETS) >= LARGER
