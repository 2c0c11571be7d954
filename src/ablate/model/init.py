"""Initialisation: every parameter from a generator of its own, keyed by (seed, parameter name).

So two models share every common parameter bit for bit, whatever else they have. Drawn on the CPU in fp32.

| kind | gpt2 | fan_in |
| --- | --- | --- |
| matrices | N(0, 0.02²) (Radford et al. 2019) | N(0, 1/fan_in) |
| o and down | N(0, 0.02²/(2·layers)) | N(0, 1/fan_in) |
| embeddings, learned positions | N(0, 0.02²) | N(0, 1/width) (Wortsman et al. 2023, section 2.1) |
| gains | 1 | 1 |
| linear biases | 0, or with bias_init=torch uniform ±1/√fan_in | the same |
| norm biases | 0 | 0 |
"""

import hashlib
import math

import torch
from torch import Tensor, nn

from ablate.config import BiasInit, Init, ModelConfig, Site
from ablate.probe import ParameterFact, ParameterKind
from ablate.probe.parameters import owned_parameters

GPT2_STD = 0.02
RESIDUAL_OUTPUTS = frozenset({Site.o, Site.down})
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
    return torch.empty(fact.shape).normal_(0.0, weight_std(fact, config), generator=generator)


def weight_std(fact: ParameterFact, config: ModelConfig) -> float:
    """Standard deviation of a matrix or embedding."""
    if config.init is Init.fan_in:
        return float(fact.shape[-1] ** -0.5)
    if fact.site in RESIDUAL_OUTPUTS:
        return GPT2_STD / math.sqrt(2 * config.layers)
    return GPT2_STD
