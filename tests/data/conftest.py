"""Small corpora, and no network: `datasets` reads local files only."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ablate.config import DataConfig, Objective, Source

os.environ["HF_HUB_OFFLINE"] = "1"
_HF_HOME = tempfile.TemporaryDirectory(prefix="ablate-hf-")  # removed when the process ends
os.environ["HF_HOME"] = _HF_HOME.name

Make = Callable[..., DataConfig]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A resolved data configuration with a cache of its own."""

    def make(**settings: Any) -> DataConfig:
        defaults: dict[str, Any] = {
            "source": Source.text,
            "data_seed": 0,
            "objective": Objective.next,
            "vocab_size": 270,
            "val_fraction": 0.2,
            "cache": str(tmp_path / "cache"),
        }
        return DataConfig(**{**defaults, **settings})

    return make


def poem(number: int) -> str:
    """A document unlike every other, with enough repetition for a small BPE."""
    return "".join(f"line {line} of poem {number}: the rain in spain\n" for line in range(12))


@pytest.fixture
def poems(tmp_path: Path) -> Path:
    """A folder of 20 text files."""
    folder = tmp_path / "poems"
    folder.mkdir()
    for number in range(20):
        (folder / f"poem{number:02d}.txt").write_text(poem(number))
    return folder
