"""Every parameter learns, except where an identity says that it cannot."""

import itertools

import pytest
from torch.nn.functional import cross_entropy

PLACEMENTS = ["pre", "post", "peri", "sublayer"]
STACKS = [
    ("decoder", False),
    ("decoder", True),
    ("encoder", False),
    ("encoder", True),
    ("encoder_decoder", False),
]
SITES = ("q", "k", "v", "o", "up", "gate", "down", "transform", "head", "norm", "qk_norm")
CROSS = ("cross_q", "cross_k", "cross_v", "cross_o")


def null_biases(changes):
    """Biases of keys that the softmax cancels: what is added to every key alike.

    Rotation, which cross-attention has none of, or a norm in between makes it differ by key.
    """
    name = "k_norm.bias" if changes.get("qk_norm") else "k.bias"
    return {f"cross.{name}"} | (set() if changes.get("position") == "rope" else {f"attention.{name}"})


@pytest.mark.parametrize(("stack", "parallel"), STACKS)
@pytest.mark.parametrize(
    ("placement", "norm"), list(itertools.product(PLACEMENTS, ["layernorm", "rmsnorm", "none"]))
)
@pytest.mark.parametrize(
    "changes",
    [
        {"activation": "swiglu", "position": "rope", "kv_heads": 2, "rope_share": 0.5, "scale_logits": True},
        {"activation": "relu", "qk_norm": True, "tie_embeddings": False, "embed_norm": True},
        {"activation": "gelu_tanh", "window": 3, "position": "sinusoidal", "window_every": 2},
        {"qk_norm": True, "position": "rope", "kv_heads": 1, "qk_norm_over": "all"},
    ],
)
def test_every_parameter_has_a_gradient(
    scrambled, forward, tokens, stack, parallel, placement, norm, changes
):
    extra = {
        "head_transform": norm != "none" and "window" in changes,
        "segments": 2 if stack == "encoder" else 0,
        "shared_norm": "window" not in changes,
    }
    sites = (*SITES, *CROSS) if stack == "encoder_decoder" else SITES
    model = scrambled(
        stack=stack, placement=placement, norm=norm, parallel=parallel, bias=sites, **changes, **extra
    )
    cross_entropy(forward(model, tokens).flatten(0, 1), tokens.roll(-1, 1).flatten()).backward()
    null = null_biases(changes)
    for name, parameter in model.named_parameters():
        size = parameter.grad.norm().item()
        if name.partition(".")[2].partition(".")[2] in null:
            assert size < 1e-12, name
        else:
            assert size > 1e-6, name


@pytest.mark.parametrize("placement", ["pre", "post", "peri", "sublayer"])
def test_the_mean_direction_of_a_cancelled_bias_has_no_gradient(scrambled, tokens, placement):
    for norm in ("layernorm", "rmsnorm"):
        model = scrambled(placement=placement, norm=norm)
        cross_entropy(model(tokens).flatten(0, 1), tokens.roll(-1, 1).flatten()).backward()
        block = model.blocks[0]
        for part in (block.attention.o, block.mlp.down):
            mean = part.bias.grad.mean().abs().item()
            assert mean < 1e-14 if norm == "layernorm" else mean > 1e-6
