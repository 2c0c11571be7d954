"""Numbers of short trainings in float64, kept in golden.json by SCIENCE_VERSION.

A change that trains the same configuration to other numbers must raise `SCIENCE_VERSION` in
`ablate.config.identity`: records of different versions are never compared. Then
`python tests/train/test_golden.py` adds the numbers of the new version; it never replaces old ones.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from ablate.config import SCIENCE_VERSION, parse
from ablate.data import prepare
from ablate.model import build
from ablate.train import Stepper, evaluate

FILE = Path(__file__).with_name("golden.json")
STEPS = 20
BASE: dict[str, dict[str, Any]] = {
    "model": {"layers": 2, "width": 32, "heads": 2, "context": 16},
    "data": {"source": "synthetic", "tokens": 20_000, "vocab_size": 64, "val_tokens": 512},
    "optim": {"steps": STEPS, "batch": 8},
}
CASES: dict[str, dict[str, dict[str, Any]]] = {
    "defaults": {},
    "others": {
        "model": {
            "norm": "rmsnorm",
            "placement": "peri",
            "position": "rope",
            "activation": "swiglu",
            "bias": ["v", "o", "norm"],
            "bias_init": "torch",
            "init": "fan_in",
            "kv_heads": 1,
            "qk_norm": True,
            "tie_embeddings": False,
            "window": 8,
        },
        "data": {"data_seed": 5},
        "optim": {
            "accumulation": 2,
            "z_loss": 1e-2,
            "clip_over": "common",
            "clip": 0.5,
            "decay": "independent",
            "weight_decay": 1e-2,
            "schedule": "wsd",
            "decay_embeddings": False,
        },
    },
    "post": {
        "model": {"placement": "post", "position": "sinusoidal", "activation": "relu", "parallel": True},
        "optim": {"decayed": "all", "schedule": "linear", "clip": 0, "warmup": 0, "lr": 1e-3},
    },
}


def numbers(case: str) -> dict[str, list[float]]:
    """Per column its values over the steps; and the held-out loss at the end."""
    changes = CASES[case]
    config = parse({name: {**BASE.get(name, {}), **changes.get(name, {})} for name in {*BASE, *changes}})
    data = prepare(config.data, config.model.context)
    module = build(config.model, data.facts.vocab_size, config.seed, config.probe).double()
    made = Stepper(module, config)
    batches = data.batches(config.optim.batch, config.data.data_seed)
    found: dict[str, list[float]] = {}
    for step in range(STEPS):
        measured = made.step(step, batches.examples(step))
        row = dict(zip(made.columns, measured.dense_C.tolist(), strict=True))
        for column in ("train/loss", "grad/norm", "grad/bias_share", "out/b01_down", "grad/b00_q"):
            found.setdefault(column, []).append(row[column])
    found["val/loss"] = [evaluate(module, data.val, config.optim.batch)]
    return found


@pytest.mark.parametrize("case", CASES)
def test_the_numbers_are_those_of_this_science_version(case: str) -> None:
    kept = json.loads(FILE.read_text()).get(str(SCIENCE_VERSION), {})
    assert case in kept, f"no numbers for SCIENCE_VERSION {SCIENCE_VERSION}: see the top of this file"
    for column, values in numbers(case).items():
        assert values == pytest.approx(kept[case][column], rel=1e-6), (
            f"{column} changed: raise SCIENCE_VERSION if that is meant (see the top of this file)"
        )


def _add_version() -> None:
    kept = json.loads(FILE.read_text()) if FILE.exists() else {}
    cases = kept.setdefault(str(SCIENCE_VERSION), {})
    for case in CASES.keys() - cases.keys():
        cases[case] = numbers(case)
    FILE.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    _add_version()
