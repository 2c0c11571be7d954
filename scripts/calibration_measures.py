"""What is counted over simulated studies: false positives, coverage, power; every share with its interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ablate.stats import (
    BOOTSTRAP_SEEDS,
    Effect,
    Interval,
    Response,
    flip_test,
    minimum_detectable,
    paired_floor,
    t_interval,
    t_test,
)
from calibration import ALPHA, Null, Pool, percentile_interval, proportion_interval, simulate

POWER = 0.8
SHIFTS = (0.5, 1.0, 1.5, 2.0)  # planted effects, in units of the smallest detectable one


@dataclass(frozen=True)
class Share:
    """One row of the results: how often something was so, of how many studies.

    `low` and `high` are the ends of Clopper and Pearson's interval.

    `nominal` is what the share should be, None where there is no promise. `effect`: the true effect.
    """

    pool: str
    null: Null
    n: int
    response: str
    measure: str
    hits: int
    of: int
    nominal: float | None
    effect: float = 0.0

    @property
    def share(self) -> float:
        return self.hits / self.of if self.of else math.nan

    @property
    def low(self) -> float:
        return proportion_interval(self.hits, self.of)[0]

    @property
    def high(self) -> float:
        return proportion_interval(self.hits, self.of)[1]


def calibrate(pool: Pool, null: Null, n: int, studies: int) -> list[Share]:
    """Everything that is counted of one kind of study."""
    found = list(simulate(pool, null, n, studies))
    rows = []
    for response in Response:
        effects = [study.effects[response] for study in found]
        if null is Null.planted:
            rows += _planted(pool, n, response, effects)
        else:
            rows += _equal(pool, null, n, response, effects)
    if null is not Null.planted:
        for measure, response, flags in (
            ("warning: pooled McNemar", Response.unstable, [study.pooled < ALPHA for study in found]),
            ("warning: pooled t", Response.sensitivity, [study.pooled_losses < ALPHA for study in found]),
        ):
            rows.append(Share(pool.name, null, n, response, measure, sum(flags), len(flags), ALPHA))
    return rows


def _equal(pool: Pool, null: Null, n: int, response: Response, effects: Sequence[Effect]) -> list[Share]:
    def row(measure: str, flags: Sequence[bool], nominal: float | None, effect: float = 0.0) -> Share:
        return Share(pool.name, null, n, response, measure, sum(flags), len(flags), nominal, effect)

    shown = [e.estimate.interval for e in effects]
    rows = [
        row("false positives: interval excludes 0", [excludes(i, 0.0) for i in shown], ALPHA),
        row("false positives: p < 0.05", [_significant(e) for e in effects], ALPHA),
        row(
            "false positives: sign-flip test",
            [e.flip is not None and e.flip.p < ALPHA for e in effects],
            ALPHA,
        ),
        row("false positives: sign test", [e.sign is not None and e.sign.p < ALPHA for e in effects], ALPHA),
        row("coverage: interval", [not excludes(i, 0.0) for i in shown if i is not None], 1 - ALPHA),
        row("no interval (differences do not vary)", [i is None for i in shown], None),
    ]
    flips = [e.flip_interval for e in effects if e.flip_interval is not None]
    if flips:
        rows.append(row("coverage: sign-flip interval", [not excludes(i, 0.0) for i in flips], 1 - ALPHA))
    bands = [
        abs(e.estimate.mean) <= (paired_floor([other]).band(e.estimate.n) or 0.0)
        for e, other in zip(effects[1:], effects[:-1], strict=True)
    ]
    rows.append(row("inside another study's noise-floor band", bands, 1 - ALPHA))
    varied = [e.estimate.per_seed for e in effects if e.estimate.interval is not None]
    if n >= BOOTSTRAP_SEEDS:
        by_t = [not excludes(t_interval(d), 0.0) for d in varied]
        rows.append(row("coverage: t alone", by_t, 1 - ALPHA))
    naive = [percentile_interval(d, place) for place, d in enumerate(varied)]
    covered = [low <= 0 <= high for low, high in naive]
    rows.append(row("warning: coverage of the percentile bootstrap", covered, 1 - ALPHA))
    for times, shift in _sizes(effects, n):
        found = [_significant(_shifted(e, shift)) for e in effects]
        rows.append(row(f"power at {times:g} × MDE", found, POWER if times == 1 else None, shift))
    return rows


def _sizes(effects: Sequence[Effect], n: int) -> list[tuple[float, float]]:
    """Effects to plant: multiples of the MDE at the true spread, the root mean square of null differences."""
    squares = [d * d for e in effects for d in e.estimate.per_seed]
    mde = minimum_detectable(math.sqrt(math.fsum(squares) / len(squares)), n)
    return [(times, times * mde) for times in SHIFTS] if mde is not None else []


def _shifted(effect: Effect, shift: float) -> Effect:
    """The effect's tests if every seed's difference were larger by `shift`."""
    d = tuple(x + shift for x in effect.estimate.per_seed)
    estimate = replace(effect.estimate, per_seed=d)
    return replace(effect, estimate=estimate, t=t_test(d), flip=flip_test(d))


def _planted(pool: Pool, n: int, response: Response, effects: Sequence[Effect]) -> list[Share]:
    """Power against one step of the grid, and coverage of the effect it has on average."""
    truth = math.fsum(e.estimate.mean for e in effects) / len(effects)
    shown = [e.estimate.interval for e in effects if e.estimate.interval is not None]
    found = [_significant(e) for e in effects]
    covered = [not excludes(i, truth) for i in shown]
    return [
        Share(pool.name, Null.planted, n, response, measure, sum(flags), len(flags), nominal, truth)
        for measure, flags, nominal in (
            ("power: one step of the grid", found, None),
            ("coverage: interval", covered, 1 - ALPHA),
        )
    ]


def _significant(effect: Effect) -> bool:
    return effect.p is not None and effect.p < ALPHA


def excludes(interval: Interval | None, truth: float) -> bool:
    """Does the interval exclude the truth? One that is not there excludes nothing."""
    return interval is not None and not interval.low <= truth <= interval.high
