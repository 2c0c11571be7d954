"""What a bias can and cannot do: exact identities, in float64."""

from functools import partial

import pytest
import torch

EXACT = 1e-12
VISIBLE = 1e-3


def shift(model, module, vector, tokens):
    """Largest change of the log-probabilities when `vector` is added to a part's bias."""
    before = model(tokens).log_softmax(-1)
    with torch.no_grad():
        module.bias.add_(vector)
    change = (model(tokens).log_softmax(-1) - before).abs().max().item()
    with torch.no_grad():
        module.bias.sub_(vector)
    return change


def noise(module):
    return torch.randn(module.bias.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("position", ["learned", "sinusoidal", "none"])
@pytest.mark.parametrize("window", [None, 3])
def test_key_bias_has_no_effect_under_softmax(scrambled, tokens, position, window):
    model = scrambled(position=position, window=window, kv_heads=2)
    attention = model.blocks[0].attention
    assert shift(model, attention.k, noise(attention.k), tokens) < EXACT
    assert shift(model, attention.q, noise(attention.q), tokens) > VISIBLE


@pytest.mark.parametrize(
    "changes", [{"position": "rope"}, {"qk_norm": True}, {"position": "rope", "qk_norm": True}]
)
def test_key_bias_is_a_real_parameter_with_rope_or_qk_norm(scrambled, tokens, changes):
    model = scrambled(**changes)
    assert shift(model, model.blocks[0].attention.k, noise(model.blocks[0].attention.k), tokens) > VISIBLE


CROSS = ("cross_q", "cross_k", "cross_v", "cross_o")


@pytest.mark.parametrize("position", ["learned", "sinusoidal", "rope", "none"])
@pytest.mark.parametrize("placement", ["pre", "post", "peri", "sublayer"])
def test_key_bias_has_no_effect_in_cross_attention(scrambled, forward, tokens, position, placement):
    """Even with rope, which turns nothing there."""
    model = scrambled(stack="encoder_decoder", position=position, placement=placement, bias=CROSS, kv_heads=2)
    cross = model.blocks[1].cross
    assert shift(partial(forward, model), cross.k, noise(cross.k), tokens) < EXACT
    for part in (cross.q, cross.v, cross.o):
        assert shift(partial(forward, model), part, noise(part), tokens) > VISIBLE


def test_key_bias_is_a_real_parameter_in_cross_attention_with_qk_norm(scrambled, forward, tokens):
    for over in ("head", "all"):
        model = scrambled(stack="encoder_decoder", bias=CROSS, qk_norm=True, qk_norm_over=over)
        cross = model.blocks[0].cross
        assert shift(partial(forward, model), cross.k, noise(cross.k), tokens) > VISIBLE


def test_cross_attentions_value_bias_equals_its_output_bias(scrambled, forward, tokens):
    model = scrambled(stack="encoder_decoder", bias=CROSS)
    cross = model.blocks[0].cross
    before = forward(model, tokens)
    with torch.no_grad():
        cross.o.bias.add_(cross.o.weight @ cross.v.bias)
        assert (forward(model, tokens) - before).abs().max() > VISIBLE
        cross.v.bias.zero_()
    torch.testing.assert_close(forward(model, tokens), before, rtol=0, atol=EXACT)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_a_key_bias_counts_only_in_the_channels_that_rope_turns(scrambled, tokens, share):
    model = scrambled(position="rope", rope_share=share)
    key = model.blocks[0].attention.k
    turned = torch.zeros(4, 4, dtype=torch.float64)
    turned[:, : int(4 * share)] = 1
    assert shift(model, key, turned.flatten(), tokens) > VISIBLE
    kept = (1 - turned).flatten()
    assert shift(model, key, kept, tokens) < EXACT


@pytest.mark.parametrize(
    ("stack", "changes"), [("encoder", {}), ("encoder", {"parallel": True}), ("encoder_decoder", {})]
)
def test_layernorm_cancels_the_mean_of_o_and_down_biases_in_every_stack(
    scrambled, forward, tokens, stack, changes
):
    model = scrambled(stack=stack, bias=("o", "down", *CROSS), **changes)
    block = (model.encoder or model.blocks)[0]
    for part in (
        block.attention.o,
        block.mlp.down,
        *([] if model.encoder is None else [model.blocks[0].cross.o]),
    ):
        constant = torch.full_like(part.bias, 0.7)
        assert shift(partial(forward, model), part, constant, tokens) < EXACT
        assert shift(partial(forward, model), part, noise(part), tokens) > VISIBLE


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize("position", ["learned", "rope"])
def test_value_bias_equals_an_output_bias(scrambled, tokens, kv_heads, position):
    model = scrambled(kv_heads=kv_heads, position=position)
    attention = model.blocks[0].attention
    before = model(tokens)
    with torch.no_grad():
        per_head = attention.v.bias.view(kv_heads, -1).repeat_interleave(4 // kv_heads, dim=0)
        attention.o.bias.add_(attention.o.weight @ per_head.flatten())
        assert (model(tokens) - before).abs().max() > VISIBLE
        attention.v.bias.zero_()
    torch.testing.assert_close(model(tokens), before, rtol=0, atol=EXACT)


@pytest.mark.parametrize("norm", ["layernorm", "rmsnorm"])
@pytest.mark.parametrize("activation", ["gelu", "swiglu"])
def test_norm_beta_folds_into_the_next_linears_biases(scrambled, tokens, norm, activation):
    sites = ("q", "k", "v", "o", "up", "gate", "down", "head", "norm")
    model = scrambled(norm=norm, activation=activation, bias=sites)
    before = model(tokens)
    block = model.blocks[1]
    mlp = [block.mlp.up] + ([block.mlp.gate] if activation == "swiglu" else [])
    readers = {
        block.norm1: [block.attention.q, block.attention.k, block.attention.v],
        block.norm2: mlp,
        model.final_norm: [model.head],
    }
    with torch.no_grad():
        for part, linears in readers.items():
            beta = part.bias.clone()
            part.bias.zero_()
            assert (model(tokens) - before).abs().max() > VISIBLE
            for linear in linears:
                linear.bias.add_(linear.weight @ beta)
            torch.testing.assert_close(model(tokens), before, rtol=0, atol=EXACT)


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("placement", ["pre", "post", "peri", "sublayer"])
@pytest.mark.parametrize("norm", ["layernorm", "rmsnorm"])
def test_layernorm_cancels_the_mean_of_o_and_down_biases_alone(scrambled, tokens, norm, placement, parallel):
    """In `sublayer` the norm follows f directly, so o and down are cancelled there too, by that norm."""
    model = scrambled(norm=norm, placement=placement, parallel=parallel, position="rope")
    block = model.blocks[0]
    for part in (block.attention.o, block.mlp.down):
        constant = shift(model, part, torch.full_like(part.bias, 0.7), tokens)
        assert constant < EXACT if norm == "layernorm" else constant > VISIBLE
        assert shift(model, part, noise(part), tokens) > VISIBLE
    for part in (block.attention.q, block.attention.k, block.attention.v, block.mlp.up):
        assert shift(model, part, torch.full_like(part.bias, 0.7), tokens) > VISIBLE


def test_a_constant_head_bias_cancels_in_the_softmax(scrambled, tokens):
    model = scrambled(bias=("head",))
    assert shift(model, model.head, torch.full_like(model.head.bias, 2.5), tokens) < EXACT
    assert shift(model, model.head, noise(model.head), tokens) > VISIBLE


def test_a_constant_in_the_stream_is_cancelled_only_where_every_read_is_normed(scrambled, tokens):
    """β of the norm behind the sublayer puts its mean straight into the stream."""
    peri = scrambled(placement="peri")
    part = peri.blocks[0].out_norm1
    assert shift(peri, part, torch.full_like(part.bias, 0.7), tokens) < EXACT
    sublayer = scrambled(placement="sublayer")
    part = sublayer.blocks[0].norm1
    assert shift(sublayer, part, torch.full_like(part.bias, 0.7), tokens) > VISIBLE
