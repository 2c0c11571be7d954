"""Small models for the tests of the probes; makes the helper module beside it importable."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ablate.config import (
    Activation,
    Init,
    ModelConfig,
    Norm,
    Placement,
    Position,
    ProbeConfig,
    QkNormOver,
    Stack,
)
from ablate.model import Transformer, build

sys.path.insert(0, str(Path(__file__).parent))

VOCAB = 23


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def tiny_config(**changes: Any) -> ModelConfig:
    """A resolved configuration of a tiny model; words stand for enums."""
    words = {
        "norm": Norm,
        "placement": Placement,
        "activation": Activation,
        "position": Position,
        "init": Init,
        "stack": Stack,
        "qk_norm_over": QkNormOver,
    }
    fields: dict[str, Any] = {
        "layers": 2,
        "width": 16,
        "heads": 4,
        "context": 8,
        "bias": ("q", "k", "v", "o", "up", "gate", "down", "norm"),
        **{key: words[key](value) if key in words else value for key, value in changes.items()},
    }
    fields.setdefault("kv_heads", fields["heads"])
    fields.setdefault("head_dim", fields["width"] // fields["heads"])
    fields.setdefault("ffn", 2 * fields["width"])
    fields.setdefault("final_norm", fields.get("placement", Placement.pre) is not Placement.post)
    return ModelConfig(**fields)


@pytest.fixture
def make() -> Callable[..., Transformer]:
    """make(seed=0, queries=3, outputs=True, **changes): an initialised tiny model."""

    def make_model(seed: int = 0, queries: int = 3, outputs: bool = True, **changes: Any) -> Transformer:
        return build(tiny_config(**changes), VOCAB, seed, ProbeConfig(queries=queries, outputs=outputs))

    return make_model


@pytest.fixture
def scrambled(make: Callable[..., Transformer]) -> Callable[..., Transformer]:
    """A tiny float64 model whose every parameter, biases and gains too, is far from its initial value."""

    def make_model(**changes: Any) -> Transformer:
        model = make(**changes).double()
        generator = torch.Generator().manual_seed(7)
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            scale = parameter.shape[-1] ** -0.5 if parameter.dim() == 2 else 0.3
            parameter.data.add_(noise * scale)
        return model

    return make_model


@pytest.fixture
def tokens() -> torch.Tensor:
    return torch.randint(0, VOCAB, (3, 8), generator=torch.Generator().manual_seed(1))
