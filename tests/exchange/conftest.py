"""Folders of exported models with random weights."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from ablate.config import ModelConfig, compose
from ablate.exchange import family_of, load_weights, save_folder

VOCAB = 11


@cache
def tiny(*overrides: str) -> ModelConfig:
    """The model that overrides say, at the smallest size."""
    return compose([*overrides, "model.scale=tiny"]).model


@dataclass
class Folder:
    """A folder of a Hugging Face model, to be changed; `ours`: what went into it."""

    path: Path
    model: ModelConfig
    ours: dict[str, Any]

    @property
    def config(self) -> dict[str, Any]:
        return dict(json.loads((self.path / "config.json").read_text()))

    @config.setter
    def config(self, raw: dict[str, Any]) -> None:
        (self.path / "config.json").write_text(json.dumps(raw))

    @property
    def tensors(self) -> dict[str, Any]:
        return dict(load_file(self.path / "model.safetensors"))

    @tensors.setter
    def tensors(self, tensors: dict[str, Any]) -> None:
        save_file(tensors, self.path / "model.safetensors")

    def load(
        self, model: ModelConfig | None = None, announce: Callable[[str], None] = print
    ) -> dict[str, Any]:
        return load_weights(self.path, model or self.model, VOCAB, announce)

    def loads_the_same(self) -> bool:
        loaded = self.load()
        same = all(np.array_equal(loaded[name], array) for name, array in self.ours.items())
        return same and loaded.keys() == self.ours.keys()


MakeFolder = Callable[..., Folder]


@pytest.fixture
def folder(tmp_path: Path) -> MakeFolder:
    """Export a preset with changes: `folder("model=gpt2", "model.bias=none")`."""

    def make(*overrides: str) -> Folder:
        model = tiny(*overrides)
        random = np.random.default_rng(0)
        parts = [p for t in family_of(model, VOCAB).tensors(model, VOCAB) for p in t.parts if p.present]
        ours = {part.name: random.normal(size=part.shape).astype(np.float32) for part in parts}
        save_folder(tmp_path / "hf", model, VOCAB, ours, None)
        return Folder(tmp_path / "hf", model, ours)

    return make
