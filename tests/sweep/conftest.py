"""Tiny runs: 12 steps of a two-layer model on a synthetic source."""

from pathlib import Path

import pytest


@pytest.fixture
def tiny(tmp_path: Path) -> list[str]:
    """Overrides of a run that takes a fraction of a second, under a root of the test's own."""
    return [
        "model=tiny", "model.context=16", "data=synthetic", "data.tokens=4000", "data.vocab_size=32",
        "data.val_tokens=256", "optim.batch=4", "optim.steps=12", "study=t", f"run.root={tmp_path / 'runs'}",
    ]  # fmt: skip
