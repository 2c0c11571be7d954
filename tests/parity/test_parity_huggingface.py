"""Logits and gradients of the presets against Hugging Face's models, through `ablate.exchange` both ways."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tests.parity.conftest import Close
from tests.parity.parity_models import VOCAB, backward, check_gradients, randomise, randomised, tiny, tokens
from torch import Tensor, nn

from ablate.config import Config, compose
from ablate.exchange import check_folder, family_of, load_weights, save_folder
from ablate.model import Transformer, build, describe

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
    "gpt_neox with two pairs turned": ("model=gpt_neox", "model.heads=2"),  # one has no order
    "gpt_neox, one after the other": (
        "model=gpt_neox", "model.parallel=false", "model.shared_norm=true", "model.bias=norm",
        "model.rope_share=0.5", "model.rope_theta=500",
    ),
}  # fmt: skip
CASES = {**PRESETS, **OTHERS}
IN_THEIR_CLASS = {"embed_out.weight": "lm_head.weight"}  # it renames what it loads and saves


def examples(config: Config) -> dict[str, Tensor]:
    """Token ids, segments, predicted positions and targets."""
    shape = (3, config.model.context)
    drawn = {"inputs": tokens(*shape, seed=2), "targets": tokens(*shape, seed=3)}
    if config.model.stack == "encoder":
        order_BT = torch.rand(shape, generator=torch.Generator().manual_seed(4)).argsort(1)
        drawn["positions"] = order_BT[:, :5].sort(1).values
        drawn["targets"] = drawn["targets"][:, :5]
    if config.model.segments:
        drawn["segments"] = tokens(*shape, seed=5) % config.model.segments
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


def built_by_them(config: Config) -> Any:
    """Their class from its own configuration: of ours they get nothing but the values of config.json.

    No token pads: its embedding would get no gradient.
    """
    family = family_of(config.model, VOCAB)
    said = {**family.config(config.model, VOCAB), "pad_token_id": None}
    settings = transformers.AutoConfig.for_model(**said)
    auto = getattr(transformers, family.auto)
    return auto.from_config(settings, attn_implementation="eager").eval()


def reference_of(folder: Path, config: Config) -> Any:
    auto = getattr(transformers, family_of(config.model, VOCAB).auto)
    return auto.from_pretrained(folder, attn_implementation="eager").eval()


def check(module: Transformer, reference: Any, config: Config, close: Close) -> None:
    """Equal logits; and equal gradients of all that both have."""
    batch = examples(config)
    ours, theirs = ours_of(module, batch), theirs_of(reference, batch)
    close("logits", ours, theirs)
    for logits in (ours, theirs):
        backward(logits, batch["targets"])
    named = dict(reference.named_parameters())
    gradients: dict[str, Any] = {}
    for tensor in family_of(config.model, VOCAB).tensors(config.model, VOCAB):
        gradients |= tensor.split(named[IN_THEIR_CLASS.get(tensor.name, tensor.name)].grad.numpy())
    check_gradients(module, {n: torch.from_numpy(g) for n, g in gradients.items()}, config, close)


@pytest.mark.parametrize("name", CASES)
def test_exported_model_computes_the_same(name: str, tmp_path: Path, close: Close) -> None:
    config = tiny(*CASES[name])
    module = randomised(config)
    exported = save_folder(tmp_path / "out", config.model, VOCAB, numpy_of(module), None)
    assert exported.family.name == FAMILY.get(name, name.split()[0].strip(","))
    check(module, reference_of(tmp_path / "out", config), config, close)


def tied_or_not(name: str) -> tuple[str, ...]:
    """The overrides of `preset tied` or `preset untied`."""
    preset, _, word = name.partition(" ")
    return (f"model={preset}", f"model.tie_embeddings={str(word == 'tied').lower()}")


TIES = [
    f"{preset} {word}"
    for preset in sorted({*PRESETS} - {*FAMILY})
    for word in ("tied", "untied")
    if (preset, word) != ("bert", "untied")
]


@pytest.mark.parametrize("name", [*CASES, *TIES])
def test_their_model_computes_the_same_here(name: str, tmp_path: Path, close: Close) -> None:
    """A model that transformers built and saved, loaded by us."""
    config = tiny(*(tied_or_not(name) if name in TIES else CASES[name]))
    reference = built_by_them(config)
    randomise(reference, 2)
    zero_what_we_lack(reference, config)
    reference.save_pretrained(tmp_path / "theirs", max_shard_size="20KB" if name in TIES else "1GB")
    check_folder(tmp_path / "theirs", config.model, VOCAB)
    module = build(config.model, VOCAB, 0, config.probe)
    loaded = load_weights(tmp_path / "theirs", config.model, VOCAB, print)
    parameters = dict(module.named_parameters())
    assert loaded.keys() == parameters.keys()
    with torch.no_grad():
        for parameter_name, parameter in parameters.items():
            parameter.copy_(torch.from_numpy(loaded[parameter_name]))
    check(module, reference, config, close)


@torch.no_grad()
def zero_what_we_lack(reference: Any, config: Config) -> None:
    """Biases and tables that their class has and our model has not."""
    named = dict(reference.named_parameters())
    for tensor in family_of(config.model, VOCAB).tensors(config.model, VOCAB):
        theirs = named[IN_THEIR_CLASS.get(tensor.name, tensor.name)]
        places = tensor.split(np.arange(theirs.numel()).reshape(theirs.shape))
        for part in tensor.parts:
            if not part.present:
                theirs.view(-1)[torch.from_numpy(places[part.name].ravel())] = 0.0


FULL = (
    "gpt2", "gpt2_medium", "gpt2_large", "gpt2_xl", "bert", "bert_large", "llama", "llama2", "llama3",
    "mistral", "qwen", "qwen2", "qwen3", "olmo2", "gpt_neox",
)  # fmt: skip


@pytest.mark.parametrize("preset", FULL)
def test_the_published_size_has_as_many_parameters_there(preset: str) -> None:
    """From the config.json that we write, built without memory."""
    config = compose([f"model={preset}"])
    model, vocab = config.model, config.data.vocab_size
    family = family_of(model, vocab)
    assert family.additions(model, vocab) == {}
    settings = transformers.AutoConfig.for_model(**family.config(model, vocab))
    with torch.device("meta"):
        reference = getattr(transformers, family.auto).from_config(settings)
    assert type(reference).__name__ == family.architecture
    assert sum(p.numel() for p in reference.parameters()) == describe(model, vocab).parameters
