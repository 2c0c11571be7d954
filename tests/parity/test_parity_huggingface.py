"""Logits and gradients of the presets against Hugging Face's models, through `ablate.exchange` both ways.

Legend: B windows, T tokens, M predicted tokens, V vocabulary.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tests.parity.conftest import Close
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ablate.config import Config, compose
from ablate.exchange import family_of, load_weights, save_folder
from ablate.model import Transformer, build

pytestmark = pytest.mark.parity

PRESETS: dict[str, tuple[str, ...]] = {
    "gpt2": ("model=gpt2",),
    "bert": ("model=bert",),
    "llama": ("model=llama",),
    "llama2": ("model=llama2",),
    "llama3": ("model=llama3",),
    "mistral": ("model=mistral",),
    "qwen": ("model=qwen",),
    "qwen2": ("model=qwen2",),
    "qwen3": ("model=qwen3",),
    "olmo2": ("model=olmo2",),
    "gpt_neox": ("model=gpt_neox",),
}
FAMILY = {
    "qwen": "qwen2",  # its class has biases on q, k and v alone; as many key heads as query heads
    "llama2": "llama",
    "llama3": "llama",
}
OTHERS: dict[str, tuple[str, ...]] = {
    "gpt2 without a bias": ("model=gpt2", "model.bias=none"),
    "gpt2 with two sites": ("model=gpt2", "model.bias=[k,down]"),
    "gpt2 untied, another activation": (
        "model=gpt2", "model.tie_embeddings=false", "model.activation=gelu", "model.ffn=40",
    ),
    "bert without segments": ("model=bert", "model.segments=0", "model.bias=[norm,q]"),
    "bert with three segments": ("model=bert", "model.segments=3", "model.activation=relu"),
    "llama with every linear bias": ("model=llama", "model.bias=linear", "model.tie_embeddings=true"),
    "llama with some": ("model=llama3", "model.bias=[k,up]"),
    "llama with wide heads": ("model=llama", "model.head_dim=12"),
    "mistral with wide heads": ("model=mistral", "model.head_dim=20"),
    "qwen2 with a window": ("model=qwen2", "model.window=9"),
    "qwen3 with biases, a window, other heads": (
        "model=qwen3", "model.bias=[q,o]", "model.window=5", "model.head_dim=24",
    ),
    "olmo2 with grouped heads": ("model=olmo2", "model.kv_heads=2", "model.bias=[q,k,v,o]"),
    "gpt_neox, one after the other": (
        "model=gpt_neox", "model.parallel=false", "model.shared_norm=true", "model.bias=norm",
        "model.rope_share=0.5", "model.rope_theta=500",
    ),
}  # fmt: skip
CASES = {**PRESETS, **OTHERS}


def tiny(overrides: tuple[str, ...]) -> Config:
    return compose([*overrides, "model.scale=tiny", "data.vocab_size=300"])


def randomised(config: Config) -> Transformer:
    """A model whose every parameter is random: gains around 1, biases far from 0."""
    module = build(config.model, config.data.vocab_size, 0, config.probe)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() == 1:
                parameter.add_(0.3 * noise)
            else:
                parameter.copy_(noise * (0.5 if parameter.shape[0] == 300 else 0.2))
    return module


def examples(config: Config) -> dict[str, Tensor]:
    """Token ids, segments, predicted positions and targets."""
    generator = torch.Generator().manual_seed(2)
    shape, vocab = (3, config.model.context), config.data.vocab_size
    drawn = {
        "inputs": torch.randint(vocab, shape, generator=generator),
        "targets": torch.randint(vocab, shape, generator=generator),
    }
    if config.model.stack == "encoder":
        order_BT = torch.rand(shape, generator=generator).argsort(1)
        drawn["positions"] = order_BT[:, :5].sort(1).values
        drawn["targets"] = drawn["targets"][:, :5]
    if config.model.segments:
        drawn["segments"] = torch.randint(config.model.segments, shape, generator=generator)
    return drawn


def ours_of(module: Transformer, batch: Mapping[str, Tensor]) -> Tensor:
    return module(batch["inputs"], positions_BM=batch.get("positions"), segments_BT=batch.get("segments"))


def theirs_of(reference: Any, batch: Mapping[str, Tensor]) -> Tensor:
    more = {"token_type_ids": batch["segments"]} if "segments" in batch else {}
    logits: Tensor = reference(batch["inputs"], **more).logits
    if "positions" in batch:
        logits = logits.gather(1, batch["positions"][..., None].expand(-1, -1, logits.shape[-1]))
    return logits


def numpy_of(module: nn.Module) -> dict[str, Any]:
    return {name: p.detach().numpy() for name, p in module.named_parameters()}


def reference_of(folder: Path, config: Config) -> Any:
    auto = getattr(transformers, family_of(config.model, config.data.vocab_size).auto)
    return auto.from_pretrained(folder, attn_implementation="eager").eval()


def check(module: Transformer, reference: Any, config: Config, close: Close) -> None:
    """Equal logits; and equal gradients of all that both have."""
    batch = examples(config)
    ours, theirs = ours_of(module, batch), theirs_of(reference, batch)
    close("logits", ours, theirs)
    for logits in (ours, theirs):
        cross_entropy(logits.flatten(0, 1), batch["targets"].flatten()).backward()
    named = dict(reference.named_parameters())
    gradients: dict[str, Any] = {}
    for tensor in family_of(config.model, config.data.vocab_size).tensors(config.model, 300):
        gradients |= tensor.split(named[tensor.name].grad.numpy())
    parameters = dict(module.named_parameters())
    assert parameters.keys() <= gradients.keys()
    redundant = config.model.position != "rope" and not config.model.qk_norm
    for name, parameter in parameters.items():
        assert parameter.grad is not None
        # Softmax takes no notice of a key bias without rope: its gradient is rounding beside the weights'.
        scale = None
        if redundant and name.endswith("k.bias"):
            scale = parameters[name.replace("bias", "weight")].grad
        close(name, parameter.grad, torch.from_numpy(gradients[name]), scale=scale)


@pytest.mark.parametrize("name", CASES)
def test_exported_model_computes_the_same(name: str, tmp_path: Path, close: Close) -> None:
    config = tiny(CASES[name])
    module = randomised(config)
    exported = save_folder(tmp_path / "out", config.model, 300, numpy_of(module), None)
    assert exported.family.name == FAMILY.get(name, name.split()[0].strip(","))
    check(module, reference_of(tmp_path / "out", config), config, close)


@pytest.mark.parametrize("name", PRESETS)
def test_their_model_computes_the_same_here(name: str, tmp_path: Path, close: Close) -> None:
    """Weights of their class, saved by transformers, loaded by us."""
    config = tiny(CASES[name])
    save_folder(tmp_path / "ours", config.model, 300, numpy_of(randomised(config)), None)
    reference = reference_of(tmp_path / "ours", config)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in reference.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator) + (parameter.dim() == 1))
    reference.save_pretrained(tmp_path / "theirs")
    module = build(config.model, 300, 0, config.probe)
    loaded = load_weights(tmp_path / "theirs", config.model, 300, print)
    parameters = dict(module.named_parameters())
    assert loaded.keys() == parameters.keys()
    with torch.no_grad():
        for parameter_name, parameter in parameters.items():
            parameter.copy_(torch.from_numpy(loaded[parameter_name]))
    check(module, reference, config, close)
