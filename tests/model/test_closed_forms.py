"""Built models of every stack against formulas: counts, operations, and the bound on memory."""

from dataclasses import replace

import torch
from hypothesis import example, given, settings
from tests.model.closed_forms import configs, counted, embeddings, norms, site_order
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from ablate.config import Config, ProbeConfig, Stack, compose
from ablate.model import Description, Transformer, build, describe
from ablate.sweep import cost
from ablate.sweep.activations import Lengths
from ablate.sweep.cost import forward_flops
from ablate.sweep.fit import at_most

some = settings(max_examples=60, deadline=None)


@some
@given(configs())
def test_counts_are_those_of_the_formulas(config: Config) -> None:
    m, vocab = config.model, config.data.vocab_size
    description = describe(m, vocab)
    weights, biases = counted(m, vocab)
    assert description.by_site == weights
    assert description.biases == site_order(biases)
    assert description.parameters == sum(weights.values()) + sum(biases.values())
    assert description.norm_biases == biases.get("norm", 0) + biases.get("qk_norm", 0)
    assert description.linear_biases == sum(biases.values()) - description.norm_biases
    head = 0 if m.tie_embeddings else vocab * m.width
    assert description.non_embedding == description.parameters - sum(embeddings(m, vocab).values()) - head
    assert sorted(norm.width for norm in description.norms) == sorted(width for _, width in norms(m))


def run_once(model: Transformer, length: Lengths) -> None:
    inputs_BT = torch.zeros(1, length.inputs, dtype=torch.long)
    source_BS = torch.zeros(1, length.source, dtype=torch.long) if length.source else None
    some = length.predicted != length.inputs
    positions_BM = torch.arange(length.predicted)[None] if some else None
    model(inputs_BT, source_BS, positions_BM)


@settings(max_examples=30, deadline=None)
@given(configs(windows=False))
def test_operations_are_those_that_torch_counts(config: Config) -> None:
    """Exactly, with attention as two matrix products, which is what the formula counts."""
    model = build(config.model, config.data.vocab_size, 0, ProbeConfig(outputs=False))
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter, sdpa_kernel(SDPBackend.MATH):
        run_once(model, Lengths.of(config))
    assert forward_flops(config, Description.of(model).to_dict()) == counter.get_total_flops()


def longest(tokens: int, window: int, causal: bool) -> int:
    """The most tokens that any token attends to."""
    return max(
        sum(abs(t - s) < window and (s <= t or not causal) for s in range(tokens)) for t in range(tokens)
    )


@some
@given(configs())
def test_a_window_takes_away_what_is_not_attended_to(config: Config) -> None:
    m, length = config.model, Lengths.of(config)
    description = describe(m, config.data.vocab_size).to_dict()
    whole = replace(config, model=replace(m, window=None, window_every=1))
    spared = 0
    for block in range(m.layers) if m.window is not None else ():
        if (block + 1) % m.window_every == 0:
            for tokens, causal in ((length.source, False), (length.inputs, m.stack is not Stack.encoder)):
                spared += tokens * (tokens - longest(tokens, m.window, causal)) if tokens else 0
    flops = forward_flops(whole, description) - 4 * m.heads * m.head_dim * spared
    assert forward_flops(config, description) == flops


@some
@given(configs())
@example(compose(["model=gpt2_xl", "model.context=2", "optim.batch=1"]))  # parameters alone
@example(compose(["model=transformer_big", "model.context=2", "optim.batch=1"]))
@example(compose(["model=llama", "model.context=2", "optim.batch=1", "optim.precision=bf16"]))
def test_no_run_needs_more_than_the_bound(config: Config) -> None:
    description = describe(config.model, config.data.vocab_size).to_dict()
    needed = cost(config, description).memory.total
    assert needed <= at_most(config) <= 12 * needed
