"""The memory estimate against what autograd really keeps, for every kind of block and stack."""

import pytest
import torch
from torch import Tensor

from ablate.config import Config, Precision, ProbeConfig, compose
from ablate.model import Description, Transformer, build
from ablate.sweep import cost
from ablate.sweep.activations import Lengths
from ablate.train.loss import token_loss

BASE = (
    "model.layers=3", "model.width=64", "model.heads=4", "model.context=64", "data.vocab_size=300",
    "optim.batch=4",
)  # fmt: skip
KINDS = {
    "pre": (),
    "none": ("model.norm=none",),
    "rmsnorm": ("model.norm=rmsnorm",),
    "post": ("model.placement=post",),
    "peri": ("model.placement=peri",),
    "sublayer": ("model.placement=sublayer", "model.norm=rmsnorm", "model.qk_norm=true"),
    "relu": ("model.activation=relu",),
    "swiglu": ("model.activation=swiglu", "model.position=rope", "model.kv_heads=1"),
    "window": ("model.window=8",),
    "banded": ("model.window=8", "model.window_every=3"),
    "parallel": ("model.parallel=true",),
    "neox": ("model.parallel=true", "model.shared_norm=false", "model.position=rope"),
    "narrow heads": ("model.head_dim=8",),
    "encoder": ("model.stack=encoder", "model.placement=post", "model.embed_norm=true"),
    "bert": ("model.stack=encoder", "model.placement=post", "model.segments=2", "model.head_transform=true"),
    "encoder window": ("model.stack=encoder", "model.window=8"),
    "prefix": ("model.stack=encoder_decoder", "model.placement=post"),
    "span": (
        "model.stack=encoder_decoder",
        "data.objective=span",
        "data.mask_rate=0.4",
        "model.norm=rmsnorm",
    ),
}


def kept_bytes(config: Config) -> tuple[int, Description]:
    """Bytes of all tensors that autograd keeps after the forward pass, parameters and buffers left out."""
    model = build(config.model, config.data.vocab_size, 0, ProbeConfig(outputs=False))
    model.set_compute_dtype(None if config.optim.precision is Precision.fp32 else torch.bfloat16)
    own = {t.untyped_storage().data_ptr() for t in (*model.parameters(), *model.buffers())}
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        address = tensor.untyped_storage().data_ptr()
        if address not in own:
            kept[address] = tensor  # holds the memory, so that no address comes twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        forward(config, model)
    return sum(t.untyped_storage().nbytes() for t in kept.values()), Description.of(model)


def forward(config: Config, model: Transformer) -> Tensor:
    length, batch = Lengths.of(config), config.optim.batch
    inputs_BT = torch.zeros(batch, length.inputs, dtype=torch.long)
    targets_BM = torch.zeros(batch, length.predicted, dtype=torch.long)
    source_BS = torch.zeros(batch, length.source, dtype=torch.long) if length.source else None
    some = length.predicted != length.inputs
    positions_BM = torch.arange(length.predicted).expand(batch, -1) if some else None
    logits_BMV = model(inputs_BT, source_BS, positions_BM)
    return token_loss(logits_BMV, targets_BM, 0.0).objective


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_estimate_is_what_autograd_keeps(kind: str, precision: str) -> None:
    config = compose([*BASE, *KINDS[kind], f"optim.precision={precision}"])
    kept, description = kept_bytes(config)
    estimated = cost(config, description.to_dict()).memory.activations
    logits = 4 * config.data.vocab_size * Lengths.of(config).predicted * config.optim.batch
    # Two more of each logit are alive for a moment; autograd keeps the log-probabilities alone.
    assert 0.93 <= (estimated - 2 * logits) / kept <= 1.1
