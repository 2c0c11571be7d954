"""Small models for the tests of the model."""

from collections.abc import Callable
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
def config() -> Callable[..., ModelConfig]:
    return tiny_config


@pytest.fixture
def make() -> Callable[..., Transformer]:
    """make(seed=0, **changes): an initialised tiny model."""

    def make_model(seed: int = 0, **changes: Any) -> Transformer:
        return build(tiny_config(**changes), VOCAB, seed, ProbeConfig())

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
def forward() -> Callable[..., torch.Tensor]:
    """forward(model, tokens, **more): logits; an encoder_decoder reads a shorter source made of them."""

    def run(model: Transformer, tokens: torch.Tensor, **more: Any) -> torch.Tensor:
        if model.encoder is not None:
            more.setdefault("source_BS", (tokens.flip(1)[:, :6] + 5) % VOCAB)
        logits: torch.Tensor = model(tokens, **more)
        return logits

    return run


@pytest.fixture
def tokens() -> torch.Tensor:
    return torch.randint(0, VOCAB, (3, 8), generator=torch.Generator().manual_seed(1))
