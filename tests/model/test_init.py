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


def test_normal(make):
    model = make(width=128, heads=4, init="normal", tie_embeddings=False, context=64, stack="encoder_decoder")
    block = model.blocks[0]
    parts = (block.attention.q, block.attention.o, block.cross.o, block.mlp.down, model.encoder[0].mlp.down)
    for part in (*parts, model.embed, model.head, model.position):
        assert std(part.weight) == pytest.approx(0.02, rel=0.05)


def test_gpt2_counts_the_sublayers_of_each_side(make):
    """Each block of the decoder adds to its stream three times, each of the encoder's twice."""
    model = make(width=128, heads=4, layers=2, stack="encoder_decoder")
    for block, additions in ((model.encoder[1], 4), (model.blocks[1], 6)):
        outputs = [block.attention.o, block.mlp.down, *([block.cross.o] if block.cross else [])]
        for part in outputs:
            assert std(part.weight) == pytest.approx(0.02 * additions**-0.5, rel=0.05)
        assert std(block.attention.v.weight) == pytest.approx(0.02, rel=0.05)
    assert std(model.blocks[0].cross.k.weight) == pytest.approx(0.02, rel=0.05)


def test_palm(make):
    model = make(width=128, heads=4, init="palm", ffn=512, context=64, kv_heads=1, parallel=True)
    block = model.blocks[1]
    for part in (block.attention.q, block.attention.k, block.attention.o, block.mlp.up):
        assert std(part.weight) == pytest.approx(128**-0.5, rel=0.05)
    assert std(block.mlp.down.weight) == pytest.approx(512**-0.5, rel=0.05)
    for table in (model.embed, model.position):
        assert std(table.weight) == pytest.approx(1, rel=0.05)
    untied = make(width=128, heads=4, init="palm", tie_embeddings=False)
    assert std(untied.head.weight) == pytest.approx(128**-0.5, rel=0.05)


def test_xavier(make):
    model = make(width=128, heads=4, init="xavier", ffn=512, context=64, stack="encoder_decoder", kv_heads=1)
    block = model.blocks[1]
    for part, ends in (
        (block.attention.q, 128 + 128),
        (block.cross.o, 128 + 128),
        (block.cross.k, 128 + 32),
        (block.mlp.up, 128 + 512),
        (model.encoder[0].mlp.down, 128 + 512),
    ):
        bound = (6 / ends) ** 0.5
        assert 0.99 * bound < part.weight.abs().max().item() <= bound
        assert std(part.weight) == pytest.approx((2 / ends) ** 0.5, rel=0.05)
    for table in (model.embed, model.position):
        assert std(table.weight) == pytest.approx(128**-0.5, rel=0.05)


def test_the_head_transform_and_segments_start_like_the_rest(make):
    changes = {"width": 128, "heads": 4, "stack": "encoder", "segments": 8, "head_transform": True}
    for init, matrix, table in (
        ("normal", 0.02, 0.02),
        ("palm", 128**-0.5, 1),
        ("fan_in", 128**-0.5, 128**-0.5),
    ):
        model = make(init=init, **changes)
        assert std(model.transform.weight) == pytest.approx(matrix, rel=0.05)
        assert std(model.segment.weight) == pytest.approx(table, rel=0.1)
        assert (model.transform_norm.weight == 1).all()


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
    both = make(bias_init=BiasInit.torch, stack="encoder_decoder", width=64, bias=("q", "cross_v"))
    for part in (both.encoder[1].attention.q, both.blocks[1].cross.v):
        assert 0.8 * 64**-0.5 < part.bias.abs().max().item() <= 64**-0.5
    assert torch.equal(block.mlp.up.weight, make(width=64, heads=4, ffn=256).blocks[0].mlp.up.weight)
