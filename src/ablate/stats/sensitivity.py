"""How much an arm's loss depends on the learning rate (Wortsman et al. 2023, arXiv 2309.14322, section 2.2).

Legend: G rates of the declared grid. Losses are in nats per token.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

EVEN = 0.15  # relative deviation of the grid's log steps; 1e-3, 3e-3, 1e-2 deviates by 0.05 and is even


@dataclass(frozen=True)
class Ending:
    """Where one run ended: its learning rate, final held-out loss, and held-out loss at step 0."""

    lr: float
    final: float
    start: float


@dataclass(frozen=True)
class Sensitivity:
    """Mean over the grid of capped loss − best loss, of one arm and seed.

    `below` and `above` are the parts from rates below the best one (undertraining) and above it; they add
    up to `total`. `best_lr` is None where no rate ends below the loss at step 0: `total` is 0 then and says
    nothing (the measure is blind to the level of the loss: section 2.2, appendix B).
    """

    total: float
    below: float
    above: float
    best: float
    best_lr: float | None


def capped(final: float, start: float) -> float:
    """min(final, start); a final loss that is not finite counts as the start (section 2.2)."""
    return min(final, start) if math.isfinite(final) else start


def lr_sensitivity(endings: Sequence[Ending]) -> Sensitivity:
    """The sensitivity of one arm and seed, from one ending for each rate of a log-uniform grid.

    mean over the grid of min(final, start) − ℓ*, with ℓ* the lowest of them (section 2.2).
    """
    assert len({e.lr for e in endings}) == len(endings) > 0, "one ending for each rate"
    ordered = sorted(endings, key=lambda e: e.lr)
    lr_G = np.array([e.lr for e in ordered])
    loss_G = np.array([capped(e.final, e.start) for e in ordered])
    place = int(np.argmin(loss_G))
    part_G = (loss_G - loss_G[place]) / lr_G.size
    trained = loss_G[place] < ordered[place].start
    return Sensitivity(
        total=float(part_G.sum()),
        below=float(part_G[:place].sum()),
        above=float(part_G[place + 1 :].sum()),
        best=float(loss_G[place]),
        best_lr=float(lr_G[place]) if trained else None,
    )


def best_rate(endings: Iterable[Ending]) -> float | None:
    """The rate of an arm with the lowest mean capped loss over its seeds; the lower one of equals.

    None where no rate ends below the loss at step 0 on average.
    """
    by_rate: dict[float, list[Ending]] = {}
    for ending in endings:
        by_rate.setdefault(ending.lr, []).append(ending)
    level = {lr: float(np.mean([capped(e.final, e.start) for e in es])) for lr, es in by_rate.items()}
    trained = [lr for lr, es in by_rate.items() if level[lr] < np.mean([e.start for e in es])]
    return min(trained, key=lambda lr: (level[lr], lr), default=None)


def log_uniform(rates: Sequence[float]) -> bool:
    """Are the rates evenly spaced on a log scale, as the mean over them takes for granted?"""
    steps = np.diff(np.log(np.sort(np.asarray(rates, dtype=np.float64))))
    return steps.size < 2 or bool(np.max(np.abs(steps / steps.mean() - 1)) <= EVEN)
