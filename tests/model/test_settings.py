"""What settings of the embedding and of the head do, in every stack: exact identities, in float64."""

import math
from functools import cache

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from ablate.config import parse
from ablate.model import build

STACKS = ["decoder", "encoder", "encoder_decoder"]
CHANGES = [{}, {"head_transform": True, "scale_logits": True, "bias": ("transform", "head", "norm")}]


@pytest.mark.parametrize("changes", CHANGES)
@pytest.mark.parametrize("stack", STACKS)
def test_logits_at_positions_are_those_of_the_whole(scrambled, forward, tokens, stack, changes):
    """And so are gradients: what is not asked for has none."""
    model = scrambled(stack=stack, **changes)
    positions_BM = torch.tensor([[0, 7, 3], [1, 2, 3], [6, 6, 0]])
    whole = forward(model, tokens)
    chosen = forward(model, tokens, positions_BM=positions_BM)
    assert chosen.shape == (3, 3, 23)
    rows = torch.arange(3)[:, None]
    torch.testing.assert_close(chosen, whole[rows, positions_BM], rtol=0, atol=1e-12)
    targets = tokens[:, :3].flatten()
    gradients = []
    for logits in (chosen, whole[rows, positions_BM]):
        model.zero_grad()
        cross_entropy(logits.flatten(0, 1), targets).backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@cache
def encoder():
    config = parse({"model": {"stack": "encoder", "layers": 1, "width": 16, "heads": 2, "context": 8}})
    return build(config.model, 23, 0, config.probe).double()


@given(st.lists(st.integers(0, 7), min_size=1, max_size=9))
def test_any_positions(positions):
    model, tokens = encoder(), torch.arange(16).view(2, 8)
    positions_BM = torch.tensor([positions, positions[::-1]])
    expected = model(tokens)[torch.arange(2)[:, None], positions_BM]
    torch.testing.assert_close(model(tokens, positions_BM=positions_BM), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("stack", STACKS)
def test_all_positions_in_order_are_the_default(scrambled, forward, tokens, stack):
    model = scrambled(stack=stack)
    positions_BM = torch.arange(8).expand(3, 8)
    assert torch.equal(forward(model, tokens, positions_BM=positions_BM), forward(model, tokens))


@pytest.mark.parametrize(
    ("segments", "parts"), [(2, [0, 0, 0, 0, 1, 1, 1, 1]), (3, [0, 0, 0, 1, 1, 1, 2, 2])]
)
def test_segments_cut_the_window_into_parts_in_order(scrambled, tokens, segments, parts):
    model = scrambled(stack="encoder", segments=segments)
    given_BT = torch.tensor(parts).expand(3, 8)
    assert torch.equal(model(tokens), model(tokens, segments_BT=given_BT))
    assert not torch.equal(model(tokens), model(tokens, segments_BT=1 - given_BT.clamp(max=1)))


def test_a_segment_is_added_to_the_embedding(scrambled, tokens):
    """With one for all tokens, as a vector added to every row of the embedding (untied)."""
    model = scrambled(stack="encoder", segments=2, tie_embeddings=False)
    ones_BT = torch.ones_like(tokens)
    expected = model(tokens, segments_BT=ones_BT)
    with torch.no_grad():
        model.embed.weight.add_(model.segment.weight[1])
        model.segment.weight.zero_()
    torch.testing.assert_close(model(tokens), expected, rtol=0, atol=1e-12)


def test_segments_are_for_a_model_that_has_them(make, tokens):
    with pytest.raises(AssertionError):
        make(stack="encoder")(tokens, segments_BT=torch.zeros_like(tokens))


@pytest.mark.parametrize("stack", STACKS)
def test_scaled_logits_are_divided_by_the_root_of_the_width(scrambled, forward, tokens, stack):
    plain, scaled = (scrambled(stack=stack, scale_logits=scale, bias=("head",)) for scale in (False, True))
    torch.testing.assert_close(forward(scaled, tokens), forward(plain, tokens) / math.sqrt(16))


def test_a_norm_of_all_heads_is_that_of_one_head_where_there_is_one(scrambled, tokens):
    models = [scrambled(heads=1, qk_norm=True, qk_norm_over=over) for over in ("head", "all")]
    assert torch.equal(*(model(tokens) for model in models))


def test_a_norm_of_all_heads_has_a_gain_for_each_channel(make):
    attention = make(qk_norm=True, qk_norm_over="all", kv_heads=2).blocks[0].attention
    assert (attention.q_norm.weight.numel(), attention.k_norm.weight.numel()) == (16, 8)


def test_unshared_norms_with_equal_weights_are_one_shared_norm(scrambled, tokens):
    for placement in ("pre", "peri"):
        shared, own = (
            scrambled(parallel=True, shared_norm=choice, placement=placement) for choice in (True, False)
        )
        state = shared.state_dict()
        second = [name for name in own.state_dict() if ".norm2" in name]
        assert len(second) == 4
        own.load_state_dict({**state, **{name: state[name.replace("norm2", "norm1")] for name in second}})
        torch.testing.assert_close(own(tokens), shared(tokens), rtol=0, atol=1e-12)


def test_both_sides_share_embedding_and_positions(scrambled, forward, tokens):
    """A change of the embedding of a token that only the source has changes all logits."""
    model = scrambled(stack="encoder_decoder", tie_embeddings=False)
    source = torch.full((3, 4), 22)
    inputs = tokens.clamp(max=21)
    before = forward(model, inputs, source_BS=source)
    with torch.no_grad():
        model.embed.weight[22] += 1
    assert (forward(model, inputs, source_BS=source) != before).any(-1).all()
