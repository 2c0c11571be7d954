"""Every parameter learns, except where an identity says that it cannot."""

import itertools

import pytest
from torch.nn.functional import cross_entropy

CASES = list(
    itertools.product(["pre", "post", "peri", "sublayer"], ["layernorm", "rmsnorm", "none"], [False, True])
)


@pytest.mark.parametrize(("placement", "norm", "parallel"), CASES)
@pytest.mark.parametrize(
    "changes",
    [
        {"activation": "swiglu", "position": "rope", "kv_heads": 2},
        {"activation": "relu", "qk_norm": True, "tie_embeddings": False, "embed_norm": True},
        {"activation": "gelu_tanh", "window": 3, "position": "sinusoidal"},
        {"qk_norm": True, "position": "rope", "kv_heads": 1},
    ],
)
def test_every_parameter_has_a_gradient(scrambled, tokens, placement, norm, parallel, changes):
    sites = ("q", "k", "v", "o", "up", "gate", "down", "head", "norm", "qk_norm")
    model = scrambled(placement=placement, norm=norm, parallel=parallel, bias=sites, **changes)
    cross_entropy(model(tokens).flatten(0, 1), tokens.roll(-1, 1).flatten()).backward()
    # softmax cancels what is added to every key alike; rotation or a norm in between makes it differ by key
    null = {"attention.k_norm.bias" if changes.get("qk_norm") else "attention.k.bias"}
    null = set() if changes.get("position") == "rope" else null
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
