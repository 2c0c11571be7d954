"""Initialisation: every parameter from a generator of its own, keyed by (seed, parameter name).

So two models share every common parameter bit for bit, whatever else they have. Drawn on the CPU in fp32.

| kind | gpt2 | normal | fan_in | palm | xavier |
| --- | --- | --- | --- | --- | --- |
| matrices | N(0, 0.02²) | N(0, 0.02²) | N(0, 1/fan_in) | N(0, 1/fan_in) | uniform ±√(6/(fan_in + fan_out)) |
| o, cross_o and down | N(0, 0.02²/n) | as matrices | as matrices | as matrices | as matrices |
| embeddings, positions, segments | N(0, 0.02²) | N(0, 0.02²) | N(0, 1/width) | N(0, 1) | N(0, 1/width) |

In all of them gains are 1, norm biases 0 and linear biases 0, or with bias_init=torch uniform ±1/√fan_in.
A tied head is the embedding; n counts the sublayers of a stack, each of which adds to the stream once.

- gpt2: Radford et al. 2019, section 2.3.
- normal: Devlin et al. 2018 (google-research/bert, there cut off at two standard deviations).
- fan_in: embeddings as in Wortsman et al. 2023, section 2.1.
- palm: Chowdhery et al. 2022, section 5.
- xavier: Glorot and Bengio 2010, eq. 16; embeddings as in tensor2tensor, the code of Vaswani et al. 2017.
"""

import hashlib
import math

import torch
from torch import Tensor, nn

from ablate.config import BiasInit, Init, ModelConfig, Site, Stack
from ablate.probe import ParameterFact, ParameterKind
from ablate.probe.parameters import owned_parameters

GPT2_STD = 0.02
RESIDUAL_OUTPUTS = frozenset({Site.o, Site.cross_o, Site.down})
NORM_SITES = frozenset({Site.norm, Site.qk_norm})


def generator_for(seed: int, name: str) -> torch.Generator:
    """A CPU generator that depends on nothing but the seed and the parameter's name."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big"))


@torch.no_grad()
def initialise(module: nn.Module, config: ModelConfig, seed: int) -> None:
    """Fill every parameter of `module` in place (see the table above)."""
    fan_in = {fact.label: fact.shape[-1] for fact, p in owned_parameters(module) if p.dim() == 2}
    fan_in.setdefault("head", config.width)
    for fact, parameter in owned_parameters(module):
        parameter.copy_(draw(fact, config, fan_in.get(fact.label, 0), generator_for(seed, fact.name)))


def draw(fact: ParameterFact, config: ModelConfig, fan_in: int, generator: torch.Generator) -> Tensor:
    """The initial value of one parameter, fp32; `fan_in`: columns of its linear's matrix."""
    if fact.kind is ParameterKind.gain:
        return torch.ones(fact.shape)
    if fact.kind is ParameterKind.bias:
        if fact.site in NORM_SITES or config.bias_init is BiasInit.zeros:
            return torch.zeros(fact.shape)
        return torch.empty(fact.shape).uniform_(-(fan_in**-0.5), fan_in**-0.5, generator=generator)
    std = weight_std(fact, config)
    if config.init is Init.xavier and fact.kind is ParameterKind.matrix:
        bound = math.sqrt(3) * std
        return torch.empty(fact.shape).uniform_(-bound, bound, generator=generator)
    return torch.empty(fact.shape).normal_(0.0, std, generator=generator)


def weight_std(fact: ParameterFact, config: ModelConfig) -> float:
    """Standard deviation of a matrix or embedding."""
    rows, columns = fact.shape
    embedding = fact.kind is ParameterKind.embedding
    match config.init:
        case Init.gpt2 if fact.site in RESIDUAL_OUTPUTS:
            return GPT2_STD / math.sqrt(sublayers(fact, config))
        case Init.gpt2 | Init.normal:
            return GPT2_STD
        case Init.palm if embedding:
            return 1.0
        case Init.xavier if not embedding:
            return math.sqrt(2 / (rows + columns))
        case Init.fan_in | Init.palm | Init.xavier:
            return float(columns**-0.5)


def sublayers(fact: ParameterFact, config: ModelConfig) -> int:
    """How many sublayers the stack that a parameter belongs to has."""
    crosses = config.stack is Stack.encoder_decoder and not fact.name.startswith("encoder.")
    return (3 if crosses else 2) * config.layers
