"""Compiled blocks record what eager ones do, from a few graphs that all blocks share."""

import pytest
import torch
from torch._dynamo.utils import counters
from torch.nn.functional import cross_entropy

from ablate.model import compile_blocks


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes", [{}, {"position": "rope", "qk_norm": True, "norm": "rmsnorm", "window": 3, "kv_heads": 2}]
)
def test_compiled_blocks(make, tokens, changes):
    torch._dynamo.reset()
    counters.clear()
    eager, compiled = make(layers=9, init="fan_in", **changes), make(layers=9, init="fan_in", **changes)
    compile_blocks(compiled)
    assert list(compiled.state_dict()) == list(eager.state_dict())
    graphs = set()
    for step in range(6):
        seen = []
        for model in (eager, compiled):
            model.zero_grad()
            model.board.begin(sample=step % 2 == 1)
            for part in (tokens, tokens.roll(step + 1, 1)):
                cross_entropy(model(part).flatten(0, 1), part.roll(-1, 1).flatten()).backward()
            with torch.no_grad(), model.board.paused():
                model(tokens)
            values = [model.board.values()] + ([model.board.sample_values()] if step % 2 else [])
            seen.append([*values, *(p.grad for p in model.parameters())])
        for one, other in zip(*seen, strict=True):
            torch.testing.assert_close(one, other, rtol=2e-4, atol=2e-5)
        graphs.add(counters["stats"]["unique_graphs"])
    assert max(graphs) == 3, "one for training, one for cadence steps, one for evaluation"
    assert not counters["graph_break"]
