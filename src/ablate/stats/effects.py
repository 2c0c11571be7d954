"""Effects with the seed as the unit: one number a seed, its mean, interval, tests, and what is not in it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ablate.stats.edge import Bound
from ablate.stats.exact import ROUNDING, PValue, flip_test, mean_sd, sign_test, t_test
from ablate.stats.intervals import (
    BOOTSTRAP_SEEDS,
    INFERENCE_SEEDS,
    Interval,
    flip_interval,
    mean_interval,
    minimum_detectable,
)
from ablate.stats.outcomes import seed_order
from ablate.stats.responses import Value, Values

Term = tuple[float, Values]  # a coefficient, and what it multiplies


@dataclass(frozen=True)
class Estimate:
    """The mean of one number a seed.

    `per_seed`: the number of each of the `n` seeds that have one, in the order of `seeds`. `n_capped`: seeds
    with a loss that entered as the loss at step 0; `n_censored`: seeds with an edge beyond the rates tried;
    `n_missing`: seeds left out. `reasons` names all of these. `bound`: whether the true mean lies `above` or
    `below` the one given because of censored edges, or on either side (`open`). `interval` is None for fewer
    than 5 seeds or numbers that do not vary; where there is a bound, it is that of the restricted mean.
    """

    seeds: tuple[str, ...]
    per_seed: tuple[float, ...]
    mean: float
    sd: float
    interval: Interval | None
    bound: Bound
    n_capped: int
    n_censored: int
    n_missing: int
    reasons: tuple[str, ...]

    @property
    def n(self) -> int:
        return len(self.per_seed)


@dataclass(frozen=True)
class Effect:
    """A difference between arms, paired by seed: its estimate, and tests of "no difference".

    The tests and the MDE are None for fewer than 5 pairs. `p` is that of the paired t test for 5 to 15 pairs,
    of the sign-flip test from 16 (and where all differences are equal): the one for the family's correction.
    """

    estimate: Estimate
    flip_interval: Interval | None
    t: PValue | None
    flip: PValue | None
    sign: PValue | None
    mde: float | None

    @property
    def p(self) -> float | None:
        if self.t is None or self.flip is None:
            return None
        by_t = self.estimate.n < BOOTSTRAP_SEEDS and not math.isnan(self.t.p)
        return self.t.p if by_t else self.flip.p


def estimate(values: Values) -> Estimate:
    """The mean of a response over the seeds of one arm."""
    return _estimate([(1.0, values)])


def paired_effect(reference: Values, arm: Values) -> Effect:
    """Arm − reference, paired by seed."""
    return contrast([(-1.0, reference), (1.0, arm)])


def contrast(terms: Sequence[Term]) -> Effect:
    """The effect Σ coefficient · value, one number a seed.

    A seed with a missing value is left out and named. A censored edge enters at its limit, and every edge is
    cut at the highest rate up to which all were looked for: what is compared is the edge *within the rates
    tried* (as a restricted mean survival time is; Royston & Parmar 2013). Equal arms are treated equally, so
    the tests hold; `Estimate.bound` says to which side the unrestricted effect may lie.
    """
    found = _estimate(terms)
    d = found.per_seed
    if found.n < INFERENCE_SEEDS:
        return Effect(found, None, None, None, None, None)
    return Effect(
        estimate=found,
        flip_interval=flip_interval(d) if found.sd > 0 and found.n < BOOTSTRAP_SEEDS else None,
        t=t_test(d),
        flip=flip_test(d),
        sign=sign_test(d),
        mde=minimum_detectable(found.sd, found.n),
    )


def _estimate(terms: Sequence[Term]) -> Estimate:
    terms = _restricted(terms)
    seeds = sorted({seed for _, values in terms for seed in values}, key=seed_order)
    none = Value(math.nan, Bound.missing, note="no run")
    by_seed = {seed: [(c, values.get(seed, none)) for c, values in terms] for seed in seeds}
    gone = {
        seed: sorted({v.note for _, v in parts if v.bound is Bound.missing})
        for seed, parts in by_seed.items()
    }
    kept = [seed for seed in seeds if not gone[seed]]
    parts = [by_seed[seed] for seed in kept]
    per_seed = tuple(_weighted(p) for p in parts)
    capped = [s for s, p in zip(kept, parts, strict=True) if any(v.capped for _, v in p)]
    beyond = [s for s, p in zip(kept, parts, strict=True) if any(v.bound is not Bound.exact for _, v in p)]
    mean, sd = mean_sd(per_seed)
    return Estimate(
        seeds=tuple(kept),
        per_seed=per_seed,
        mean=mean,
        sd=sd,
        interval=mean_interval(per_seed),
        bound=_lean([part for p in parts for part in p]),
        n_capped=len(capped),
        n_censored=len(beyond),
        n_missing=len(seeds) - len(kept),
        reasons=(
            *(f"seed {seed} left out: {'; '.join(why)}" for seed, why in gone.items() if why),
            *_named("the loss at step 0 stands in for a higher or non-finite final loss", capped),
            *_named("the edge lies beyond the rates tried", beyond),
        ),
    )


def _restricted(terms: Sequence[Term]) -> list[tuple[float, dict[str, Value]]]:
    """Every value cut at the highest rate up to which all edges were looked for, and censored there."""
    everything = [v for _, values in terms for v in values.values()]
    high = min((v.value for v in everything if v.bound is Bound.above), default=math.inf)

    def cut(v: Value) -> Value:
        beyond = v.bound is not Bound.missing and v.value > high
        return Value(high, Bound.above, v.capped, v.note) if beyond else v

    return [(c, {seed: cut(v) for seed, v in values.items()}) for c, values in terms]


def _weighted(parts: Sequence[tuple[float, Value]]) -> float:
    """Σ c·v; a sum below rounding is 0, so that ties stay ties."""
    products = [c * v.value for c, v in parts]
    total = math.fsum(products)
    return total if abs(total) > ROUNDING * math.fsum(abs(x) for x in products) else 0.0


def _lean(parts: Sequence[tuple[float, Value]]) -> Bound:
    sides = {(v.bound is Bound.above) == (c > 0) for c, v in parts if v.bound is not Bound.exact and c != 0}
    if not sides:
        return Bound.exact
    return Bound.open if len(sides) == 2 else Bound.above if sides.pop() else Bound.below


def _named(what: str, seeds: Sequence[str]) -> tuple[str, ...]:
    if not seeds:
        return ()
    return (f"{what}: {'seed' if len(seeds) == 1 else 'seeds'} {', '.join(seeds)}",)
