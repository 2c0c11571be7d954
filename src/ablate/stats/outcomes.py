"""What the statistics read of a study: one record for each run, and the study that holds them.

Everything else in this room is a pure function of these. Losses are in nats per token.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ablate.stats.sensitivity import Ending, best_rate, capped
from ablate.stats.twins import impaired
from ablate.verdict import Kind

UNSTABLE = (Kind.diverged, Kind.collapsed)
UNLEARNED = (Kind.collapsed, Kind.undertrained)


@dataclass(frozen=True)
class Outcome:
    """What became of one run (arm × learning rate × seed).

    `arm` is any label that tells arms apart; `levels` is the arm's level of every factor but learning rate
    and seed. `kind` is None while there is no verdict (queued, running, failed, killed). `final` is the
    held-out loss at the end, None or not finite where the run broke; `start` that at step 0, `unigram` is u.
    `task` names what is predicted from which data, in any words: losses of different tasks are not
    comparable. `model` names the whole model (a preset) where a study compares several: each is measured
    against the best of its own arms. All runs of an arm have the same of both.
    """

    run_id: str
    arm: str
    lr: float
    seed: str
    kind: Kind | None
    final: float | None
    start: float | None
    unigram: float | None
    levels: Mapping[str, str] = field(default_factory=dict)
    task: str = ""
    model: str = ""

    @property
    def unknown(self) -> str:
        """Why this run's end is not known, in words; empty if it is.

        A run that broke (diverged, no finite loss) is known: its loss counts as the loss at step 0. A healthy
        verdict without a final loss is not.
        """
        if self.kind is None:
            return "not finished"
        if self.kind is Kind.censored:
            return "stopped early (censored)"
        if self.start is None or not math.isfinite(self.start):
            return "no held-out loss at step 0"
        if self.kind is not Kind.diverged and (self.final is None or not math.isfinite(self.final)):
            return "no held-out loss at the end"
        return ""

    @property
    def loss(self) -> float:
        """min(final, start), the start where the run broke; only of a run whose end is known."""
        assert self.start is not None, "ask `unknown` first"
        return capped(math.nan if self.final is None else self.final, self.start)

    @property
    def is_capped(self) -> bool:
        """Does the loss at step 0 stand in for the final loss (not finite, or above it)?"""
        assert self.start is not None, "ask `unknown` first"
        return self.final is None or not self.final <= self.start

    @property
    def unstable(self) -> bool:
        """Diverged or collapsed."""
        return self.kind in UNSTABLE


@dataclass(frozen=True)
class Study:
    """The runs of one study, in an order that depends on nothing but what they are.

    `rates` is the declared grid, the same for all arms, upwards. Runs at other rates (edge search) are kept
    and serve the edges, never what is averaged over the grid. `factors` maps each factor to its levels; the
    first level is the reference of the contrasts. Make one with `Study.of`.
    """

    outcomes: tuple[Outcome, ...]
    rates: tuple[float, ...]
    factors: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(
        cls,
        outcomes: Iterable[Outcome],
        rates: Iterable[float] | None = None,
        factors: Mapping[str, Sequence[str]] | None = None,
    ) -> "Study":
        """A study from its runs, in any order.

        `rates`: the declared grid (all rates found, if not given). `factors`: factors and levels in the order
        of declaration (those found, sorted by name, if not given); levels not listed come last.
        """
        runs = list(outcomes)
        assert len({(o.arm, o.lr, o.seed) for o in runs}) == len(runs), "one run for arm, rate and seed"
        names = list(factors) if factors is not None else sorted({name for o in runs for name in o.levels})
        assert all(name in o.levels for o in runs for name in names), "every arm has a level of every factor"
        assert len({(o.arm, o.task) for o in runs}) == len({o.arm for o in runs}), "one task an arm"
        assert len({(o.arm, o.model) for o in runs}) == len({o.arm for o in runs}), "one model an arm"
        ordered = {name: _levels(name, runs, (factors or {}).get(name, ())) for name in names}
        place = {name: {level: i for i, level in enumerate(levels)} for name, levels in ordered.items()}

        def order(o: Outcome) -> tuple[tuple[int, ...], str, float, tuple[float, str]]:
            return tuple(place[name][o.levels[name]] for name in names), o.arm, o.lr, seed_order(o.seed)

        grid = {o.lr for o in runs} if rates is None else set(rates)
        return cls(tuple(sorted(runs, key=order)), tuple(sorted(grid)), ordered)

    @cached_property
    def arms(self) -> tuple[str, ...]:
        """The arms' labels, in the order of their factors' levels."""
        return tuple(dict.fromkeys(o.arm for o in self.outcomes))

    @cached_property
    def seeds(self) -> tuple[str, ...]:
        """Every seed that any arm has: numbers upwards, then names."""
        return tuple(sorted({o.seed for o in self.outcomes}, key=seed_order))

    @cached_property
    def levels(self) -> Mapping[str, Mapping[str, str]]:
        """Each arm's level of every factor."""
        return {o.arm: {name: o.levels[name] for name in self.factors} for o in self.outcomes}

    @cached_property
    def ladders(self) -> Mapping[tuple[str, str], Mapping[float, Outcome]]:
        """The runs of each (arm, seed) by rate, upwards; edge-search runs included."""
        found: dict[tuple[str, str], dict[float, Outcome]] = {}
        for o in self.outcomes:
            found.setdefault((o.arm, o.seed), {})[o.lr] = o
        return {key: dict(sorted(ladder.items())) for key, ladder in found.items()}

    @cached_property
    def best_rates(self) -> Mapping[str, float | None]:
        """Each arm's best rate of the grid: lowest mean capped loss over the seeds whose end is known there.

        None where no rate ends below the loss at step 0 on average, or nothing is known yet.
        """
        endings: dict[str, list[Ending]] = {arm: [] for arm in self.arms}
        for o in self.outcomes:
            if o.lr in self.rates and not o.unknown:
                assert o.start is not None, "known"
                endings[o.arm].append(Ending(o.lr, o.loss, o.start))
        return {arm: best_rate(found) for arm, found in endings.items()}

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """The tasks of the arms, in the arms' order; mostly one."""
        return tuple(dict.fromkeys(o.task for o in self.outcomes))

    @cached_property
    def task_of(self) -> Mapping[str, str]:
        """The task of each arm."""
        return {o.arm: o.task for o in self.outcomes}

    @cached_property
    def by_task(self) -> Mapping[str, "Study"]:
        """The runs of each task as a study of their own, with the levels that they have; mostly this one."""
        if len(self.tasks) < 2:
            return dict.fromkeys(self.tasks, self)
        return {task: self.part([o for o in self.outcomes if o.task == task]) for task in self.tasks}

    def part(self, runs: Sequence[Outcome]) -> "Study":
        """Some of the runs as a study of their own, with the levels that they have."""
        levels = {
            name: [level for level in known if any(o.levels[name] == level for o in runs)]
            for name, known in self.factors.items()
        }
        return Study.of(runs, self.rates, levels)

    @cached_property
    def best(self) -> Mapping[str, float]:
        """ℓ* of each task: the lowest seed-mean held-out loss at the end, over its arms and the grid's rates.

        A mean over the seeds whose end is known, capped losses included. Without a task of which nothing is
        known yet.
        """
        found: dict[str, float] = {}
        for (task, _), best in self.best_of.items():
            found[task] = min(best, found.get(task, best))
        return found

    @cached_property
    def best_of(self) -> Mapping[tuple[str, str], float]:
        """ℓ* of each (task, model): as `best`, over the model's own arms. Without named models: `best`."""
        by_point: dict[tuple[str, str, str, float], list[float]] = {}
        for o in self.outcomes:
            if o.lr in self.rates and not o.unknown:
                by_point.setdefault((o.task, o.model, o.arm, o.lr), []).append(o.loss)
        found: dict[tuple[str, str], float] = {}
        for (task, model, _, _), losses in by_point.items():
            mean = math.fsum(losses) / len(losses)
            found[task, model] = min(mean, found.get((task, model), mean))
        return found

    @cached_property
    def unlearned(self) -> tuple[str, ...]:
        """The arms of which most runs got no further than the unigram even at the best rate.

        That is, collapsed or undertrained; at all rates of the grid, where none is best. They need more steps
        (or other rates): where they break says nothing about what breaks a model that learns.
        """
        found: dict[str, list[bool]] = {}
        for o in self.outcomes:
            best = self.best_rates[o.arm]
            if o.kind not in (None, Kind.censored) and (
                o.lr == best if best is not None else o.lr in self.rates
            ):
                found.setdefault(o.arm, []).append(o.kind in UNLEARNED)
        return tuple(arm for arm in self.arms if 2 * sum(found.get(arm, ())) > len(found.get(arm, ())))

    def half_way(self, outcome: Outcome) -> float | None:
        """ℓ* + ½(u − ℓ*) with its model's ℓ* and its own u: half of what there was to learn is lost above it.

        None where ℓ* or u is not known, ℓ* is not below u (no arm learned more than the unigram), or the
        run's start is not above the level (a broken run would not be beyond it).
        """
        u, best = outcome.unigram, self.best_of.get((outcome.task, outcome.model))
        if best is None or u is None or not best < u:
            return None
        half = best + 0.5 * (u - best)
        return half if outcome.start is not None and outcome.start > half else None

    @cached_property
    def impaired(self) -> frozenset[str]:
        """The runs (ids) that look healthy and lose more than half of what there was to learn."""
        return frozenset(
            o.run_id
            for o in self.outcomes
            if not o.unknown and o.kind is not None and o.unigram is not None and o.final is not None
            if (best := self.best_of.get((o.task, o.model))) is not None
            and impaired(o.kind, o.final, best, o.unigram)
        )

    @cached_property
    def twins(self) -> Mapping[str, str]:
        """The stable twin of each run that has one: same arm and seed, the arm's best rate, stable. Ids."""
        found = {}
        for (arm, _), ladder in self.ladders.items():
            rate = self.best_rates[arm]
            twin = ladder.get(rate) if rate is not None else None
            if twin is not None and twin.kind is Kind.stable:
                found.update({o.run_id: twin.run_id for o in ladder.values() if o is not twin})
        return found


def seed_order(seed: str) -> tuple[float, str]:
    """Sorts seeds: numbers by their value, then names."""
    try:
        return float(seed), seed
    except ValueError:
        return math.inf, seed


def _levels(name: str, runs: Sequence[Outcome], declared: Sequence[str]) -> tuple[str, ...]:
    found = {o.levels[name] for o in runs}
    return (*(level for level in declared if level in found), *sorted(found - set(declared)))
