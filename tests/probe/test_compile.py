"""Compiled blocks record what eager ones do, from a few graphs that all blocks share."""

import pytest
import torch
from torch._dynamo.utils import counters
from torch.nn.functional import cross_entropy

from ablate.model import compile_blocks

BOTH = {"stack": "encoder_decoder", "position": "rope", "qk_norm": True, "qk_norm_over": "all"}


def logits_of(model, tokens):
    return model(tokens) if model.encoder is None else model(tokens, tokens.flip(1)[:, :6])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({}, 1),
        ({"position": "rope", "qk_norm": True, "norm": "rmsnorm", "window": 3, "kv_heads": 2}, 1),
        ({"stack": "encoder", "placement": "post", "segments": 2, "head_transform": True}, 1),
        ({"position": "rope", "rope_share": 0.5, "parallel": True, "shared_norm": False}, 1),
        ({**BOTH, "placement": "peri", "window": 3, "window_every": 2}, 4),
    ],
    ids=["plain", "grouped", "encoder", "parallel", "both"],
)
def test_compiled_blocks(make, tokens, changes, kinds):
    """The last needs more graphs than the compiler allows by itself."""
    torch._dynamo.reset()
    counters.clear()
    layers = 9 if kinds == 1 else 3
    eager, compiled = (make(layers=layers, init="fan_in", **changes) for _ in range(2))
    compile_blocks(compiled)
    assert list(compiled.state_dict()) == list(eager.state_dict())
    graphs = set()
    for step in range(6):
        seen = []
        for model in (eager, compiled):
            model.zero_grad()
            model.board.begin(sample=step % 2 == 1)
            for part in (tokens, tokens.roll(step + 1, 1)):
                cross_entropy(logits_of(model, part).flatten(0, 1), part.roll(-1, 1).flatten()).backward()
            with torch.no_grad(), model.board.paused():
                logits_of(model, tokens)
            values = [model.board.values()] + ([model.board.sample_values()] if step % 2 else [])
            seen.append([*values, *(p.grad for p in model.parameters())])
        for one, other in zip(*seen, strict=True):
            torch.testing.assert_close(one, other, rtol=2e-4, atol=2e-5)
        graphs.add(counters["stats"]["unique_graphs"])
    assert max(graphs) == 3 * kinds, "one for training, one for cadence steps, one for evaluation"
    assert not counters["graph_break"]
