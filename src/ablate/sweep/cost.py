"""What a run costs by arithmetic: floating-point operations, and bytes of memory by part.

Counts of parameters come from the description of the built model; what they cost, from the configuration.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ablate.config import Config, ModelConfig, Site, Stack
from ablate.sweep.activations import FLOAT, Lengths, activation_bytes

_BLOCK = (Site.q, Site.k, Site.v, Site.o, Site.up, Site.gate, Site.down)  # of every block, on each side
_CROSS_READ = (Site.cross_q, Site.cross_o)
_CROSS_SOURCE = (Site.cross_k, Site.cross_v)


@dataclass(frozen=True)
class Memory:
    """Bytes that training takes, by part, beside what the process itself takes (torch: ~0.3 GB)."""

    weights: int
    gradients: int
    optimiser: int
    activations: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimiser + self.activations

    def __add__(self, other: "Memory") -> "Memory":
        return Memory(
            self.weights + other.weights,
            self.gradients + other.gradients,
            self.optimiser + other.optimiser,
            self.activations + other.activations,
        )


@dataclass(frozen=True)
class Cost:
    """`forward`: FLOPs of one example's forward pass; `flops`: of the whole run; `memory` while it trains."""

    forward: int
    flops: float
    memory: Memory


def cost(config: Config, description: Mapping[str, Any]) -> Cost:
    """FLOPs and memory of one run (see `forward_flops` and `activation_bytes`).

    Training takes three forward passes' worth, so a decoder takes 6·N + 12·blocks·heads·head_dim·span FLOPs
    a token. Evaluations and probes are left out. Memory: 4 bytes a parameter for its value, 4 for its
    gradient and 8 for its two moments, all fp32 whatever the precision, and the activations.
    """
    o, parameters = config.optim, description["parameters"]
    forward = forward_flops(config, description)
    memory = Memory(
        weights=FLOAT * parameters,
        gradients=FLOAT * parameters,
        optimiser=2 * FLOAT * parameters,
        activations=activation_bytes(config, description),
    )
    return Cost(forward, float(3 * forward) * o.batch * o.steps, memory)


def forward_flops(config: Config, description: Mapping[str, Any]) -> int:
    """FLOPs of one example's forward pass (Chowdhery et al. 2022, appendix B).

    2 for each weight of a linear and each token that passes it, a tied head's too, but none for embeddings,
    biases, gains and norms; and 4·heads·head_dim·span for each block and token of attention, where the span
    is the number of tokens attended to as if none were masked out: the context, a window of it (in an encoder
    to both sides), or the source of cross-attention. The head counts the tokens predicted.
    """
    m, length = config.model, Lengths.of(config)
    by_site: Mapping[str, int] = description["by_site"]
    block = sum(by_site.get(site, 0) for site in _BLOCK)
    head = config.data.vocab_size * m.width + by_site.get(Site.transform, 0)
    products = head * length.predicted
    attended = _attended(m, length.inputs, decoder=m.stack is not Stack.encoder)
    if m.stack is Stack.encoder_decoder:
        products += block // 2 * (length.source + length.inputs)
        products += sum(by_site.get(site, 0) for site in _CROSS_READ) * length.inputs
        products += sum(by_site.get(site, 0) for site in _CROSS_SOURCE) * length.source
        attended += _attended(m, length.source, decoder=False)
        attended += m.layers * length.inputs * length.source
    else:
        products += block * length.inputs
    return 2 * products + 4 * m.heads * m.head_dim * attended


def _attended(m: ModelConfig, tokens: int, *, decoder: bool) -> int:
    """Pairs of a token and one that it attends to, over all blocks of one side."""
    if m.window is None:
        return m.layers * tokens * tokens
    span = min(tokens, m.window if decoder else 2 * m.window - 1)
    windowed = m.layers // m.window_every
    return tokens * (windowed * span + (m.layers - windowed) * tokens)
