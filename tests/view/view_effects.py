"""Recorded studies with planted edges, for the tests of the report's numbers."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from view_studies import START, record

RATES = (0.001, 0.01, 0.1, 1.0)
BEST = 4.0
WOBBLE = (0.0, 0.03, -0.02, 0.05, -0.04, 0.01, 0.02, -0.03)  # of the edge, by seed: alike in all arms
NOISE = (0.0, 0.01, -0.01, 0.005, 0.008, -0.006, 0.002, -0.009)  # of the edge, by seed: of one arm


def ladder(edge: float) -> Callable[[float], float]:
    """A final loss that crosses half way (4.5) exactly at the rate `edge`: a line in ln lr, capped."""
    return lambda lr: max(BEST, min(START, 4.5 + 0.25 * (math.log(lr) - math.log(edge))))


def planted(
    root: Path,
    edges: Mapping[str, float],
    seeds: Sequence[int],
    rates: Sequence[float] = RATES,
    model: Mapping[str, object] | None = None,
    noise: Mapping[str, float] | None = None,
) -> None:
    """One arm for each bias word or site, whose LR½ is `edges` times what the seed adds.

    The best rate of every arm is the lowest (loss 4.0 everywhere, so ℓ* is 4.0 and half way 4.5). `noise`: by
    what an arm's own noise is multiplied.
    """
    number = 0
    for (place, (bias, edge)), seed in itertools.product(enumerate(edges.items()), seeds):
        own = NOISE[(seed * (place + 1)) % len(NOISE)] * (noise or {}).get(bias, 1.0)
        wobble = WOBBLE[seed] + own
        final = ladder(edge * math.exp(wobble))
        for lr in rates:
            loss = BEST if lr == min(rates) else final(lr)
            record(
                root, 1000 * place + number, {"bias": [bias] if len(bias) == 1 else bias, **(model or {})},
                lr=lr, seed=seed, final=loss, verdict="collapsed" if loss > 4.9 else "stable",
                growth=1.0 if lr == min(rates) else 1.2,
            )  # fmt: skip
            number += 1
