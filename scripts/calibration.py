"""Simulated studies drawn from recorded runs, analysed with the functions that the report uses.

A pool holds the ladders (one run for each rate) of two arms that are equal by construction, for many seeds. A
simulated study draws its seeds from the pool with replacement, so the population is known exactly: the pool.

- `placebo`: the two arms share each seed, as in a real study, and swap their labels within a seed by the
  toss of a coin. What is left between them is rounding, amplified by training; the true effect is 0.
- `reseeded`: equal arms with seeds of their own, so that nothing is paired. The true effect is 0.
- `planted`: as `placebo`, but every rate of the second arm acts as the next higher one of the pool would.

Legend: D differences by seed.
"""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import numpy as np

from ablate.stats import (
    INFERENCE_SEEDS,
    Effect,
    Outcome,
    Response,
    Study,
    paired_effect,
    responses,
    sign_test,
    t_test,
)
from ablate.verdict import Kind

ALPHA = 0.05
ARMS = ("a", "b")
PERCENTILE_RESAMPLES = 999

Ladder = tuple[Outcome, ...]  # one run for each rate, upwards


class Null(StrEnum):
    """How the two arms of a simulated study come about."""

    placebo = "placebo"
    reseeded = "reseeded"
    planted = "planted"


@dataclass(frozen=True)
class Pool:
    """Recorded ladders of two equal arms, by seed. `about` says what was trained, in words."""

    name: str
    about: str
    rates: tuple[float, ...]
    seeds: tuple[tuple[Ladder, Ladder], ...]


@dataclass(frozen=True)
class Simulated:
    """One simulated study: its effects by response, and p of two tests that pool its cells."""

    effects: Mapping[Response, Effect]
    pooled: float
    pooled_losses: float


def load_pools(path: Path) -> tuple[Pool, ...]:
    """The pools that `pack` wrote."""
    raw = json.loads(path.read_text())
    return tuple(_pool(name, entry) for name, entry in raw["pools"].items())


def simulate(pool: Pool, null: Null, n: int, studies: int, stream: int = 0) -> Iterator[Simulated]:
    """`studies` simulated studies of `n` seeds; the same ones for the same arguments."""
    random = np.random.default_rng([stream, list(Null).index(null), n, len(pool.seeds)])
    for _ in range(studies):
        yield analysed(_study(pool, null, n, random))


def analysed(study: Study) -> Simulated:
    """What the report would say of these two arms, response by response."""
    first, second = ARMS
    effects = {}
    for response in Response:
        values = responses(study, response)
        effects[response] = paired_effect(values[first], values[second])
    return Simulated(effects, pooled_mcnemar(study), pooled_t(study))


def pooled_mcnemar(study: Study) -> float:
    """A warning, not a method: p of an exact McNemar test that takes every (rate, seed) cell for a trial.

    Cells of one seed are not independent: where one rate is unstable the next ones tend to be.
    """
    return sign_test(_cells(study, [float(o.unstable) for o in study.outcomes])).p


def pooled_t(study: Study) -> float:
    """A warning, not a method: p of a paired t test of the losses of every (rate, seed) cell.

    A seed whose loss is high tends to be high at every rate.
    """
    return t_test(_cells(study, [o.loss for o in study.outcomes])).p


def _cells(study: Study, values: Sequence[float]) -> list[float]:
    """Second arm − first, of each (rate, seed) cell."""
    by_cell = {(o.arm, o.lr, o.seed): x for o, x in zip(study.outcomes, values, strict=True)}
    first, second = ARMS
    cells = [(lr, seed) for lr in study.rates for seed in study.seeds]
    return [by_cell[second, *c] - by_cell[first, *c] for c in cells]


def percentile_interval(differences: Sequence[float], stream: int) -> tuple[float, float]:
    """A warning, not a method: the percentile bootstrap, too narrow for few seeds."""
    d_D = np.asarray(differences)
    drawn = np.random.default_rng(stream).integers(0, d_D.size, (PERCENTILE_RESAMPLES, d_D.size))
    low, high = np.quantile(d_D[drawn].mean(axis=1), [ALPHA / 2, 1 - ALPHA / 2])
    return float(low), float(high)


def proportion_interval(hits: int, of: int) -> tuple[float, float]:
    """Clopper and Pearson's exact 95 % interval of a share (Biometrika 1934)."""
    from scipy.special import betaincinv

    low = float(betaincinv(hits, of - hits + 1, ALPHA / 2)) if hits else 0.0
    high = float(betaincinv(hits + 1, of - hits, 1 - ALPHA / 2)) if hits < of else 1.0
    return low, high


def _study(pool: Pool, null: Null, n: int, random: np.random.Generator) -> Study:
    drawn = random.integers(0, len(pool.seeds), (2, n)).tolist()
    coins = random.integers(0, 2, (2, n)).tolist()
    runs: list[Outcome] = []
    for place in range(n):
        if null is Null.reseeded:
            ladders = [pool.seeds[drawn[side][place]][coins[side][place]] for side in (0, 1)]
        else:
            pair, coin = pool.seeds[drawn[0][place]], coins[0][place]
            ladders = [pair[coin], pair[1 - coin]]
        if null is Null.planted:
            ladders = [ladders[0][:-1], _harsher(ladders[1])]
        for arm, ladder in zip(ARMS, ladders, strict=True):
            runs += [replace(o, arm=arm, seed=str(place)) for o in ladder]
    return Study.of(runs, factors={})


def _harsher(ladder: Ladder) -> Iterable[Outcome]:
    """What was recorded one rate higher, at each rate but the last."""
    return [replace(above, lr=here.lr) for here, above in itertools.pairwise(ladder)]


def _pool(name: str, entry: Mapping[str, object]) -> Pool:
    rows = entry["runs"]
    assert isinstance(rows, list)
    found: dict[str, dict[str, list[Outcome]]] = {}
    for arm, lr, seed, kind, final, start, unigram in rows:
        run = Outcome(
            "", str(arm), float(lr), str(seed), Kind(kind), float(final), float(start), float(unigram)
        )
        found.setdefault(run.seed, {}).setdefault(run.arm, []).append(run)
    rates = sorted({o.lr for arms in found.values() for ladder in arms.values() for o in ladder})
    pairs = []
    for arms in found.values():
        first, second = (tuple(sorted(ladder, key=lambda o: o.lr)) for ladder in arms.values())
        assert [o.lr for o in first] == [o.lr for o in second] == rates, f"{name}: whole ladders"
        assert not any(o.unknown for o in (*first, *second)), f"{name}: ended runs"
        pairs.append((first, second))
    assert len(pairs) >= INFERENCE_SEEDS, f"{name}: {len(pairs)} seeds"
    return Pool(name, str(entry["about"]), tuple(rates), tuple(pairs))
