"""What a built model really has: exact counts, biases, norms. Read from its modules, not its config."""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import torch

from ablate.config import ModelConfig, Site
from ablate.model.parts import NormPart
from ablate.model.transformer import Transformer
from ablate.probe import Board, ParameterFact, ParameterKind, parameter_facts


@dataclass(frozen=True)
class NormFact:
    """One norm: label, kind, width, epsilon, and whether it has a β."""

    label: str
    kind: str
    width: int
    eps: float
    bias: bool


@dataclass(frozen=True)
class Description:
    """Exact counts of a built model, in parameters.

    `non_embedding` leaves out the token embedding, learned positions, segments and an untied head's matrix.
    `by_site`: weights and gains per site, and `embed`, `position`, `segment`; `biases`: per site, in the
    order of `Site`, only sites that have one; the two together add up to `parameters`. `linear_biases` counts
    those of linears, `norm_biases` those of norms. `by_kind`: parameters per kind, what decay groups are made
    of.
    """

    parameters: int
    non_embedding: int
    by_site: dict[str, int]
    biases: dict[str, int]
    linear_biases: int
    norm_biases: int
    by_kind: dict[str, int]
    norms: tuple[NormFact, ...]
    tied: bool

    @property
    def bias_sites(self) -> tuple[str, ...]:
        """The realised bias sites, in the order of `Site`."""
        return tuple(self.biases)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "bias_sites": list(self.bias_sites)}

    @classmethod
    def of(cls, model: Transformer) -> "Description":
        """The description of a built model, on any device (meta too)."""
        facts = parameter_facts(model)
        biases = [fact for fact in facts if fact.kind is ParameterKind.bias]
        per_bias = _count(biases, lambda fact: str(fact.site))
        norm_biases = sum(per_bias.get(site, 0) for site in (Site.norm, Site.qk_norm))
        weights = [fact for fact in facts if fact.kind is not ParameterKind.bias]
        outer = [f for f in weights if f.kind is ParameterKind.embedding or f.site is Site.head]
        total = sum(map(_size, facts))
        return cls(
            parameters=total,
            non_embedding=total - sum(map(_size, outer)),
            by_site=_count(weights, lambda fact: fact.label if fact.site is None else str(fact.site)),
            biases={str(site): per_bias[site] for site in Site if site in per_bias},
            linear_biases=sum(map(_size, biases)) - norm_biases,
            norm_biases=norm_biases,
            by_kind=_count(facts, lambda fact: str(fact.kind)),
            norms=tuple(map(_norm_fact, (m for m in model.modules() if isinstance(m, NormPart)))),
            tied=model.head.weight is model.embed.weight,
        )


def describe(config: ModelConfig, vocab_size: int) -> Description:
    """What the model of a resolved config will have; builds it without memory (meta device)."""
    with torch.device("meta"):
        return Description.of(Transformer(config, vocab_size, Board(outputs=True, queries=1)))


def _size(fact: ParameterFact) -> int:
    return math.prod(fact.shape)


def _count(facts: Iterable[ParameterFact], key: Callable[[ParameterFact], str]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for fact in facts:
        counts[key(fact)] += _size(fact)
    return dict(counts)


def _norm_fact(part: NormPart) -> NormFact:
    return NormFact(part.label, str(part.norm), part.weight.numel(), part.eps, part.bias is not None)
