"""LR½: the learning rate above which one arm and seed loses half of what there was to learn."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ablate.stats.outcomes import Outcome, Study


class Bound(StrEnum):
    """How a value is known: `exact`; the true one lies `above` or `below` it; `open`: either; `missing`."""

    exact = "exact"
    above = "above"
    below = "below"
    open = "open"
    missing = "missing"


@dataclass(frozen=True)
class Edge:
    """LR½ of one arm and seed.

    `lr`: interpolated where `exact`; the highest rate tried where the edge lies `above` it (right-censored);
    where no rate trains half way and the edge lies `below` (left-censored), the rate with the lowest loss
    among the arm's best and those below it; NaN where `missing`. `bracket`: the two rates between
    which it was interpolated. `monotone`: False if a rate beyond the edge trains again. `capped`: losses that
    entered the interpolation as the loss at step 0. `note` says what is unusual, or why it is missing.
    """

    lr: float
    bound: Bound
    bracket: tuple[float, float] | None = None
    monotone: bool = True
    capped: int = 0
    note: str = ""


def lr_half(study: Study, arm: str, seed: str) -> Edge:
    """The first rate above the arm's best at which this seed's loss crosses ℓ* + ½(u − ℓ*).

    ℓ* is its model's within its task (`Study.best_of`, as for `impaired`), the arm's best rate is that of its
    mean over seeds. The loss is min(final, start) (a run that broke counts as its start), interpolated
    linearly in ln lr. A seed that is beyond half way already at the arm's best rate is followed downwards
    instead, to the first rate that trains. A run whose end is not known, between the best rate and the edge,
    makes it missing.
    """
    ladder = study.ladders.get((arm, seed), {})
    if not ladder:
        return _missing("no run")
    tried = {lr: ladder.get(lr) for lr in sorted({*study.rates, *ladder})}
    start = study.best_rates[arm]
    if start is None:
        start = min(tried)
    excess = {lr: _excess(study, o) for lr, o in tried.items()}
    here = excess[start]
    if isinstance(here, str):
        return _missing(f"lr {start:g}: {here}")
    return _upwards(tried, excess, start) if here <= 0 else _downwards(tried, excess, start)


Excess = Mapping[float, float | str]  # loss above half way, or why it is not known


def _upwards(tried: Mapping[float, Outcome | None], excess: Excess, start: float) -> Edge:
    rates = [lr for lr in tried if lr >= start]
    for low, high in itertools.pairwise(rates):
        at_high = excess[high]
        if isinstance(at_high, str):
            return _missing(f"lr {high:g}: {at_high}")
        if at_high > 0:
            back = [lr for lr in rates if lr > high and _within(excess[lr])]
            note = f"trains again at lr {back[0]:g}" if back else ""
            return _between(tried, excess, low, high, not back, note)
    return Edge(rates[-1], Bound.above, note=f"no edge up to lr {rates[-1]:g}")


def _downwards(tried: Mapping[float, Outcome | None], excess: Excess, start: float) -> Edge:
    if start == max(tried) and len(tried) > 1:
        return _missing(f"the arm's best rate is the highest (lr {start:g}), and still not half way there")
    back = [lr for lr in tried if lr > start and _within(excess[lr])]
    note = f"beyond half way at the arm's best rate (lr {start:g})"
    note += f", trains again at lr {back[0]:g}" if back else ""
    rates = [lr for lr in tried if lr <= start][::-1]
    for high, low in itertools.pairwise(rates):
        at_low = excess[low]
        if isinstance(at_low, str):
            return _missing(f"lr {low:g}: {at_low}")
        if at_low <= 0:
            return _between(tried, excess, low, high, not back, note)
    least = min((x, lr) for lr in rates if not isinstance(x := excess[lr], str))[1]
    return Edge(least, Bound.below, monotone=not back, note=f"{note} and at every rate below")


def _between(
    tried: Mapping[float, Outcome | None],
    excess: Excess,
    low: float,
    high: float,
    monotone: bool,
    note: str,
) -> Edge:
    below, above, lost = excess[low], excess[high], tried[high]
    assert isinstance(below, float), "known"
    assert isinstance(above, float), "known"
    assert lost is not None, "known"
    part = -below / (above - below)
    lr = math.exp(math.log(low) + part * (math.log(high) - math.log(low)))
    return Edge(lr, Bound.exact, (low, high), monotone, int(lost.is_capped), note)


def _excess(study: Study, outcome: Outcome | None) -> float | str:
    if outcome is None:
        return "no run"
    if outcome.unknown:
        return outcome.unknown
    half = study.half_way(outcome)
    return (
        outcome.loss - half
        if half is not None
        else "half way is not defined (needs ℓ* < u, both known, and half way below the loss at step 0)"
    )


def _within(excess: float | str) -> bool:
    return not isinstance(excess, str) and excess <= 0


def _missing(why: str) -> Edge:
    return Edge(math.nan, Bound.missing, note=why)
