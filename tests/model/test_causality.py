"""No position sees the future, and a window sees only so far back."""

import pytest
import torch

LAYERS, WINDOW, TOKENS = 2, 3, 8


def changed_positions(model, tokens, position):
    """Which positions' logits change at all when the tokens from `position` on change; and at it alone."""
    from_here, here_alone = tokens.clone(), tokens.clone()
    from_here[:, position:] = (tokens[:, position:] + 1) % 23
    here_alone[:, position] = (tokens[:, position] + 1) % 23
    before = model(tokens)
    return [(model(other) != before).any(-1).any(0).tolist() for other in (from_here, here_alone)]


@pytest.mark.parametrize("window", [None, WINDOW])
@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("position", ["learned", "sinusoidal", "rope", "none"])
@pytest.mark.parametrize("placement", ["pre", "post", "peri", "sublayer"])
@torch.no_grad()
def test_reach(make, tokens, placement, position, parallel, window):
    model = make(
        placement=placement, position=position, parallel=parallel, window=window, init="fan_in", kv_heads=2
    )
    reach = TOKENS if window is None else LAYERS * (WINDOW - 1)
    for at in (0, 2, 5):
        from_here, here_alone = changed_positions(model, tokens, at)
        assert from_here == [query >= at for query in range(TOKENS)]
        assert here_alone == [at <= query <= at + reach for query in range(TOKENS)]


@torch.no_grad()
def test_shorter_inputs_see_the_same_past(make, tokens):
    for changes in ({"window": 3}, {"position": "rope"}, {"position": "sinusoidal"}, {}):
        model = make(init="fan_in", **changes).double()
        torch.testing.assert_close(model(tokens[:, :5]), model(tokens)[:, :5], rtol=0, atol=1e-12)
