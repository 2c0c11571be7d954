"""Which tokens each position sees, in every stack."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ablate.model.position import Mask

LAYERS, WINDOW, TOKENS, SOURCE = 2, 3, 8, 6
PLACEMENTS = ["pre", "post", "peri", "sublayer"]


def changed(before, after):
    """Which positions' logits differ at all."""
    return (before != after).any(-1).any(0).tolist()


def at(tokens, position):
    """The tokens with another one at a position."""
    other = tokens.clone()
    other[:, position] = (tokens[:, position] + 1) % 23
    return other


@pytest.fixture
def source(tokens):
    return (tokens.flip(1)[:, :SOURCE] + 5) % 23


@pytest.mark.parametrize("window", [None, WINDOW])
@pytest.mark.parametrize("position", ["learned", "sinusoidal", "rope", "none"])
@pytest.mark.parametrize("placement", PLACEMENTS)
@torch.no_grad()
def test_an_encoder_sees_both_ways(make, tokens, placement, position, window):
    model = make(stack="encoder", placement=placement, position=position, window=window, init="fan_in")
    reach = TOKENS if window is None else LAYERS * (WINDOW - 1)
    before = model(tokens)
    for here in (0, 2, 7):
        seen_by = changed(before, model(at(tokens, here)))
        assert seen_by == [abs(query - here) <= reach for query in range(TOKENS)]


@pytest.mark.parametrize("window", [None, WINDOW])
@pytest.mark.parametrize("position", ["learned", "sinusoidal", "rope", "none"])
@pytest.mark.parametrize("placement", PLACEMENTS)
@torch.no_grad()
def test_a_decoder_sees_its_own_past_and_the_whole_source(make, tokens, source, placement, position, window):
    model = make(
        stack="encoder_decoder", placement=placement, position=position, window=window, init="fan_in"
    )
    reach = TOKENS if window is None else LAYERS * (WINDOW - 1)
    before = model(tokens, source)
    for here in (0, 2, 7):
        seen_by = changed(before, model(at(tokens, here), source))
        assert seen_by == [here <= query <= here + reach for query in range(TOKENS)]
    for here in range(SOURCE):
        assert all(changed(before, model(tokens, at(source, here)))), here


@pytest.mark.parametrize("placement", PLACEMENTS)
@torch.no_grad()
def test_a_source_does_not_depend_on_the_decoder(make, tokens, source, placement):
    """Nor on its length: what the blocks of the decoder read is the same tensor, bit for bit."""
    model = make(stack="encoder_decoder", placement=placement, init="fan_in")
    read = []
    model.blocks[1].cross.register_forward_pre_hook(lambda module, inputs: read.append(inputs[1]))
    for inputs in (tokens, at(tokens, 0), tokens[:, :3]):
        model(inputs, source)
    assert read[0].shape == (3, SOURCE, 16)
    assert all(torch.equal(read[0], other) for other in read[1:])


@torch.no_grad()
def test_every_source_token_sees_every_other(make, tokens, source):
    model = make(stack="encoder_decoder", init="fan_in", window=WINDOW, layers=1)
    read = []
    model.blocks[0].cross.register_forward_pre_hook(lambda module, inputs: read.append(inputs[1]))
    for inputs in (source, at(source, 2)):
        model(tokens, inputs)
    assert changed(*read) == [abs(key - 2) < WINDOW for key in range(SOURCE)]


@pytest.mark.parametrize("stack", ["decoder", "encoder"])
@pytest.mark.parametrize(
    ("layers", "every", "banded"), [(1, 1, 1), (2, 2, 1), (3, 2, 1), (2, 3, 0), (4, 2, 2)]
)
@torch.no_grad()
def test_the_window_holds_in_every_nth_block(make, tokens, stack, layers, every, banded):
    """A dense block passes on to a banded one what lies beyond its window."""
    model = make(stack=stack, layers=layers, window=2, window_every=every, init="fan_in")
    reach = banded if banded == layers else TOKENS
    seen_by = changed(model(tokens), model(at(tokens, 0)))
    assert seen_by == [query <= reach for query in range(TOKENS)]
    windows = [block.attention.mask.window for block in model.blocks]
    assert windows == [2 if (index + 1) % every == 0 else None for index in range(layers)]


@torch.no_grad()
def test_shorter_windows_see_the_same_source(make, tokens, source):
    for changes in ({"window": 3}, {"position": "rope"}, {"position": "sinusoidal"}):
        model = make(stack="encoder_decoder", init="fan_in", **changes).double()
        whole = model(tokens, source)
        torch.testing.assert_close(model(tokens[:, :5], source), whole[:, :5], rtol=0, atol=1e-12)


def test_a_source_is_for_an_encoder_decoder_alone(make, tokens, source):
    with pytest.raises(AssertionError):
        make(stack="encoder_decoder")(tokens)
    for stack in ("decoder", "encoder"):
        with pytest.raises(AssertionError):
            make(stack=stack)(tokens, source)


@given(st.booleans(), st.none() | st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_a_mask_is_what_its_words_say(causal, window, queries, keys):
    mask = Mask(causal, window)
    expected = [
        [(not causal or s <= t) and (window is None or abs(t - s) < window) for s in range(keys)]
        for t in range(queries)
    ]
    assert mask.allowed(torch.arange(queries), keys).tolist() == expected
    matrix = mask.matrix(keys, torch.device("cpu"))
    square = mask.allowed(torch.arange(keys), keys)
    if matrix is None:
        assert torch.equal(square, Mask(causal).allowed(torch.arange(keys), keys))
    else:
        assert torch.equal(matrix, square)
