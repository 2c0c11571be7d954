"""A study's runs taken together: arms, their best rates, the twins, departures and sensitivities.

Made once from the runs' facts; the table and the page both read from it.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ablate.config import UserError
from ablate.record import Run, RunFolder
from ablate.stats import (
    Departure,
    Ending,
    Sensitivity,
    best_rate,
    first_departure,
    impaired,
    log_uniform,
    lr_sensitivity,
    most_grown,
)
from ablate.stats.twins import Floats
from ablate.verdict import Kind
from ablate.view.facts import Arms, RunFacts
from ablate.view.text import as_float

GROWTH = "growth/"  # summary keys: growth rate of each linear's output over the last window
OUT = "out/"


@dataclass(frozen=True)
class Point:
    """One arm at one learning rate; `runs` are its seeds, in order."""

    arm: str
    lr: float | None
    runs: tuple[RunFacts, ...]

    def median_val(self) -> float | None:
        """Median final validation loss over the finished seeds; one that is not finite counts as infinite."""
        finals = [r.val for r in self.runs if r.verdict is not None and r.val is not None]
        return statistics.median([x if math.isfinite(x) else math.inf for x in finals]) if finals else None

    def fastest(self) -> tuple[str, float] | None:
        """The linear whose output grows fastest, over the seeds."""
        found = [f for r in self.runs if (f := fastest_growing(r.summary)) is not None]
        return max(found, key=lambda f: f[1]) if found else None


@dataclass(frozen=True)
class ArmResult:
    """One arm: its points (rates upwards), best rate, sensitivity of each seed that ran the whole grid."""

    name: str
    points: tuple[Point, ...]
    best_lr: float | None
    sensitivities: Mapping[str, Sensitivity]  # by seed

    @property
    def title(self) -> str:
        """The arm's name for a page; where only learning rate and seed vary there is nothing to name."""
        return "all runs" if self.name == "-" else self.name


@dataclass(frozen=True)
class Results:
    """What a study shows. Runs are named by their id."""

    runs: tuple[RunFacts, ...]
    arms: tuple[ArmResult, ...]
    rates: tuple[float, ...]  # the grid: every rate that any arm has
    seeds: tuple[str, ...]
    best: float | None  # ℓ*: lowest seed-mean final loss over all arms
    impaired: frozenset[str]
    twins: Mapping[str, RunFacts]  # the stable twin of every run that has one and is not one
    departures: Mapping[str, Departure | None]  # of runs with a twin whose rows both have outputs
    grown: Mapping[
        str, tuple[str, float] | None
    ]  # of the same runs: what is furthest above its twin at the end
    outputs: Mapping[str, Mapping[str, Floats]]  # output L2 by linear, of every run

    @classmethod
    def of(cls, runs: Sequence[RunFacts]) -> "Results":
        """Read the rows of every run that has begun, and compare."""
        rates = tuple(sorted({r.lr for r in runs if r.lr is not None}))
        found = [_arm(name, pts, rates) for name, pts in _by_arm(points(runs, Arms.of(runs))).items()]
        best = _best(found)
        twins = {run: twin for arm in found for run, twin in _twins(arm).items()}
        outputs = {r.run_id: read_outputs(r.folder) for r in runs}
        pairs = {
            run: (outputs[run], outputs[twin.run_id])
            for run, twin in twins.items()
            if outputs[run] and outputs[twin.run_id]
        }
        return cls(
            runs=tuple(runs),
            arms=tuple(found),
            rates=rates,
            seeds=tuple(dict.fromkeys(_seed(r) for r in sorted(runs, key=_seed_rank))),
            best=best,
            impaired=frozenset(r.run_id for r in runs if _impaired(r, best)),
            twins=twins,
            departures={run: first_departure(*pair) for run, pair in pairs.items()},
            grown={run: most_grown(*pair) for run, pair in pairs.items()},
            outputs=outputs,
        )

    @property
    def even_grid(self) -> bool:
        """Are the rates evenly spaced on a log scale?"""
        return log_uniform(self.rates)

    @property
    def least_seeds(self) -> int:
        """Seeds of the arm that has fewest."""
        return min((len({_seed(r) for p in arm.points for r in p.runs}) for arm in self.arms), default=0)

    def word(self, run: RunFacts) -> str:
        """The run's verdict, with a note if it is impaired; its state while there is none."""
        if run.verdict is None:
            return run.state
        return f"{run.verdict} (impaired)" if run.run_id in self.impaired else run.verdict

    def is_twin(self, run: RunFacts) -> bool:
        """Is this run the twin of others?"""
        return any(twin.run_id == run.run_id for twin in self.twins.values())


def points(runs: Sequence[RunFacts], arms: Arms) -> list[Point]:
    """The runs by arm and learning rate: arms in the order in which their values appear, rates upwards."""
    cells: dict[tuple[str, float | None], list[RunFacts]] = {}
    for run in runs:
        if run.flat:
            cells.setdefault((arms.label(run), run.lr), []).append(run)
    names = list(dict.fromkeys(arm for arm, _ in cells))
    order = sorted(cells, key=lambda c: (names.index(c[0]), -math.inf if c[1] is None else c[1]))
    return [Point(arm, lr, tuple(sorted(cells[arm, lr], key=_seed_rank))) for arm, lr in order]


def growth_rates(summary: Mapping[str, object]) -> list[tuple[str, float]]:
    """(linear, growth rate per step) from a summary, fastest first; rates that are not finite left out."""
    rates = [(k.removeprefix(GROWTH), as_float(v)) for k, v in summary.items() if k.startswith(GROWTH)]
    known = [(name, r) for name, r in rates if r is not None and math.isfinite(r)]
    return sorted(known, key=lambda pair: -pair[1])


def fastest_growing(summary: Mapping[str, object]) -> tuple[str, float] | None:
    """The fastest-growing linear of a summary, None when no growth was recorded."""
    rates = growth_rates(summary)
    return rates[0] if rates else None


def read_outputs(folder: RunFolder) -> dict[str, Floats]:
    """Output L2 of every linear, row t = step t; nothing if rows are absent, unreadable or have gaps."""
    try:
        series = Run(folder).series()
    except (OSError, UserError):
        return {}
    steps = series.steps
    if not steps.size or steps[0] != 0 or steps[-1] != steps.size - 1:
        return {}
    return {name.removeprefix(OUT): series.column(name) for name in series.columns if name.startswith(OUT)}


def ending(run: RunFacts) -> Ending | None:
    """Where a finished run ended; None for one that was stopped early or lacks its first evaluation."""
    start = as_float(run.summary.get("measures/l0"))
    if run.verdict in (None, Kind.censored) or run.lr is None or run.val is None or start is None:
        return None
    return Ending(run.lr, run.val, start)


def _by_arm(found: Sequence[Point]) -> dict[str, list[Point]]:
    arms: dict[str, list[Point]] = {}
    for point in found:
        arms.setdefault(point.arm, []).append(point)
    return arms


def _arm(name: str, found: Sequence[Point], rates: Sequence[float]) -> ArmResult:
    by_seed: dict[str, list[Ending]] = {}
    for run in (r for p in found for r in p.runs):
        if (end := ending(run)) is not None:
            by_seed.setdefault(_seed(run), []).append(end)
    whole = {seed: ends for seed, ends in by_seed.items() if sorted(e.lr for e in ends) == list(rates)}
    return ArmResult(
        name=name,
        points=tuple(found),
        best_lr=best_rate([end for ends in by_seed.values() for end in ends]),
        sensitivities={seed: lr_sensitivity(ends) for seed, ends in whole.items()},
    )


def _best(arms: Sequence[ArmResult]) -> float | None:
    means = []
    for point in (p for arm in arms for p in arm.points):
        finals = [r.val for r in point.runs if r.verdict is not None and r.val is not None]
        if finals and all(math.isfinite(x) for x in finals):
            means.append(statistics.fmean(finals))
    return min(means, default=None)


def _twins(arm: ArmResult) -> dict[str, RunFacts]:
    at_best = [r for p in arm.points if p.lr == arm.best_lr and p.lr is not None for r in p.runs]
    twin = {_seed(r): r for r in at_best if r.verdict == Kind.stable}
    others = [r for p in arm.points if p.lr != arm.best_lr for r in p.runs]
    return {r.run_id: twin[_seed(r)] for r in others if _seed(r) in twin}


def _impaired(run: RunFacts, best: float | None) -> bool:
    unigram = as_float(run.summary.get("measures/u"))
    if best is None or unigram is None or run.val is None or run.verdict not in set(Kind):
        return False
    return impaired(Kind(str(run.verdict)), run.val, best, unigram)


def _seed(run: RunFacts) -> str:
    return str(run.seed)


def _seed_rank(run: RunFacts) -> tuple[float, str]:
    known = as_float(run.seed)
    return (math.inf if known is None else known, str(run.seed))
