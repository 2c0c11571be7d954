"""Initial values follow the declared distributions."""

import pytest
import torch

from ablate.config import BiasInit


def std(tensor):
    return tensor.detach().double().std().item()


def test_gpt2(make):
    model = make(width=128, heads=4, layers=2, tie_embeddings=False, context=64)
    block = model.blocks[0]
    for part in (block.attention.q, block.attention.k, block.attention.v, block.mlp.up, model.embed):
        assert std(part.weight) == pytest.approx(0.02, rel=0.05)
    assert std(model.head.weight) == pytest.approx(0.02, rel=0.05)
    assert std(model.position.weight) == pytest.approx(0.02, rel=0.05)
    for part in (block.attention.o, block.mlp.down):
        assert std(part.weight) == pytest.approx(0.02 / 2, rel=0.05)


def test_fan_in(make):
    model = make(width=128, heads=4, layers=2, init="fan_in", tie_embeddings=False, ffn=512)
    block = model.blocks[1]
    for part in (block.attention.q, block.attention.o, block.mlp.up, model.head, model.embed, model.position):
        assert std(part.weight) == pytest.approx(128**-0.5, rel=0.05)
    assert std(block.mlp.down.weight) == pytest.approx(512**-0.5, rel=0.05)


def test_biases_start_at_zero_and_gains_at_one(make):
    model = make(qk_norm=True, bias=("q", "down", "head", "norm", "qk_norm"), embed_norm=True)
    for name, parameter in model.named_parameters():
        if name.endswith(".bias"):
            assert not parameter.any(), name
        if "norm" in name and name.endswith(".weight"):
            assert (parameter == 1).all(), name


def test_bias_init_torch_fills_linear_biases_within_their_bound(make):
    model = make(bias_init=BiasInit.torch, width=64, heads=4, ffn=256, bias=("up", "down", "head", "norm"))
    block = model.blocks[0]
    for part, fan_in in ((block.mlp.up, 64), (block.mlp.down, 256), (model.head, 64)):
        largest = part.bias.abs().max().item()
        assert 0.8 * fan_in**-0.5 < largest <= fan_in**-0.5
    assert not block.norm1.bias.any()
    assert not model.final_norm.bias.any()
    assert torch.equal(block.mlp.up.weight, make(width=64, heads=4, ffn=256).blocks[0].mlp.up.weight)
