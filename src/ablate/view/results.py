"""A study's runs taken together: arms, their best rates, twins, courses and sensitivities.

Made once from the runs' facts; tables, page and exported files all read from it. Legend: R rows.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ablate.stats import Ending, Outcome, Sensitivity, Study, impaired, log_uniform, sensitivities
from ablate.verdict import Kind
from ablate.view.arms import AXES, BIAS, DATA, Factor, arm_rank, readable, short_names
from ablate.view.comparable import apart, tasks
from ablate.view.curves import (
    LINE_POINTS,
    Against,
    Curves,
    Floats,
    against,
    curves,
    read_biases,
    read_outputs,
)
from ablate.view.facts import SHORT, Arms, RunFacts
from ablate.view.text import as_float, value

MODEL = "preset"  # the factor that names whole models
FIGURE_POINTS, LEAST_POINTS = 24_000, 40  # of all lines of one panel together; of one line at least
GROWTH = "growth/"  # summary keys: growth rate of each linear's output over the last window


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
    levels: Mapping[str, str]  # factor (short name) to level, as one would type it
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

    runs: tuple[RunFacts, ...]  # those that are compared
    left_out: tuple[tuple[RunFacts, str], ...]  # those that must not be, with the reason
    factors: tuple[Factor, ...]  # what varies, learning rate and seed too
    arms: tuple[ArmResult, ...]
    rates: tuple[float, ...]  # every rate that any arm has
    seeds: tuple[str, ...]
    study: Study  # the same runs for the statistics; its rates are the grid that all arms share
    impaired: frozenset[str]
    twins: Mapping[str, RunFacts]  # the stable twin of every run that has one and is not one
    curves: Mapping[str, Curves]  # of every run of an arm
    against: Mapping[str, Against]  # of runs with a twin whose rows both have outputs
    unreadable: tuple[tuple[RunFacts, str], ...] = ()  # runs without readable rows: verdict and losses stand

    @classmethod
    def of(cls, runs: Sequence[RunFacts]) -> "Results":
        """Read the rows of every run that has begun, and compare those that may be compared."""
        kept, left_out = apart(runs)
        arms = Arms.of(kept)
        by_arm = _by_arm(points(kept, arms))
        levels = _levels(kept, arms)
        study = _study(by_arm, levels, _order(arms.factors), _tasks(by_arm))
        sensitive = sensitivities(study)
        found = [
            ArmResult(
                name=name,
                levels=levels[pts[0].runs[0].run_id],
                points=tuple(pts),
                best_lr=study.best_rates.get(name),
                sensitivities=sensitive.get(name, {}),
            )
            for name, pts in by_arm.items()
        ]
        by_id = {r.run_id: r for r in kept}
        twins = {run: by_id[twin] for run, twin in study.twins.items()}
        lines = sum(len(pts) for pts in by_arm.values())
        courses, compared, unreadable = _courses(
            [r for arm in found for p in arm.points for r in p.runs],
            twins,
            max(LEAST_POINTS, min(LINE_POINTS, FIGURE_POINTS // max(1, lines))),
        )
        return cls(
            runs=tuple(kept),
            left_out=tuple(left_out),
            factors=arms.factors,
            arms=tuple(found),
            rates=tuple(sorted({r.lr for r in kept if r.lr is not None})),
            seeds=tuple(dict.fromkeys(seed_of(r) for r in sorted(kept, key=_seed_rank))),
            study=study,
            impaired=impaired_runs(kept, study),
            twins=twins,
            curves=courses,
            against=compared,
            unreadable=unreadable,
        )

    @property
    def even_grid(self) -> bool:
        """Are the rates evenly spaced on a log scale?"""
        return log_uniform(self.study.rates)

    @property
    def least_seeds(self) -> int:
        """Seeds of the arm that has fewest."""
        return min((len({seed_of(r) for p in arm.points for r in p.runs}) for arm in self.arms), default=0)

    def word(self, run: RunFacts) -> str:
        """The run's verdict, with a note if it is impaired; its state while there is none."""
        if run.verdict is None:
            return run.state
        return f"{run.verdict} (impaired)" if run.run_id in self.impaired else run.verdict

    def is_twin(self, run: RunFacts) -> bool:
        """Is this run the twin of others?"""
        return run.run_id in self._twin_ids

    @cached_property
    def _twin_ids(self) -> frozenset[str]:
        return frozenset(twin.run_id for twin in self.twins.values())


def study_of(runs: Sequence[RunFacts]) -> Study:
    """The runs that may be compared as the statistics take them: `Results.study`, without reading rows."""
    kept, _ = apart(runs)
    arms = Arms.of(kept)
    by_arm = _by_arm(points(kept, arms))
    return _study(by_arm, _levels(kept, arms), _order(arms.factors), _tasks(by_arm))


def impaired_runs(runs: Sequence[RunFacts], study: Study) -> frozenset[str]:
    """The runs (ids) that look healthy and lost half of what their model could learn in its task."""
    of = {o.run_id: (o.task, o.model) for o in study.outcomes}
    return frozenset(r.run_id for r in runs if _impaired(r, study.best_of.get(of.get(r.run_id, ("", "")))))


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


def _tasks(by_arm: Mapping[str, Sequence[Point]]) -> dict[str, str]:
    return tasks({name: [r for p in pts for r in p.runs] for name, pts in by_arm.items()})


def _study(
    by_arm: Mapping[str, Sequence[Point]],
    levels: Mapping[str, Mapping[str, str]],
    order: Mapping[str, Sequence[str]],
    task: Mapping[str, str],
) -> Study:
    """The runs as the statistics take them. The grid: rates that every arm has, or all if few."""
    outcomes = [
        _outcome(run, name, point.lr, levels[run.run_id], task[name])
        for name, pts in by_arm.items()
        for point in pts
        if point.lr is not None
        for run in point.runs
    ]
    per_arm = [{p.lr for p in pts if p.lr is not None} for pts in by_arm.values()]
    shared = set.intersection(*per_arm) if per_arm else set()
    return Study.of(outcomes, shared if len(shared) > 1 else None, order)


def _order(varied: Sequence[Factor]) -> dict[str, list[str]]:
    """Each factor's levels, words in the order of their definition, numbers by size."""
    names = short_names([f.key for f in varied if f.key not in AXES])
    return {
        names[f.key]: [value(x) for x in sorted(f.values, key=lambda x: arm_rank({f.key: x}, (f,)))]
        for f in varied
        if f.key in names
    }


def _outcome(run: RunFacts, arm: str, lr: float, levels: Mapping[str, str], task: str) -> Outcome:
    return Outcome(
        run_id=run.run_id,
        arm=arm,
        lr=lr,
        seed=seed_of(run),
        kind=Kind(run.verdict) if run.verdict in set(Kind) else None,
        final=run.val,
        start=as_float(run.summary.get("measures/l0")),
        unigram=as_float(run.summary.get("measures/u")),
        levels=levels,
        task=task,
        model=levels.get(MODEL, ""),
    )


def _impaired(run: RunFacts, best: float | None) -> bool:
    unigram = as_float(run.summary.get("measures/u"))
    if best is None or unigram is None or run.val is None or run.verdict not in set(Kind):
        return False
    return impaired(Kind(str(run.verdict)), run.val, best, unigram)


def seed_of(run: RunFacts) -> str:
    """The seed as text."""
    return str(run.seed)


def _seed_rank(run: RunFacts) -> tuple[float, str]:
    known = as_float(run.seed)
    return (math.inf if known is None else known, str(run.seed))


def _levels(runs: Sequence[RunFacts], arms: Arms) -> dict[str, dict[str, str]]:
    """Each run's level of every factor but learning rate and seed."""
    whole = [r for r in runs if r.flat]
    names = short_names([f.key for f in arms.factors if f.key not in AXES])
    flats = readable([r.flat for r in whole])
    return {
        run.run_id: {
            name: str(run.fingerprint)[:SHORT] if key == DATA else value(flat.get(key))
            for key, name in names.items()
        }
        for run, flat in zip(whole, flats, strict=True)
    }


def _courses(
    runs: Sequence[RunFacts], twins: Mapping[str, RunFacts], points: int
) -> tuple[dict[str, Curves], dict[str, Against], tuple[tuple[RunFacts, str], ...]]:
    """Read every run once, each twin before those that it is compared with; only thinned courses are kept."""
    groups: dict[str, list[RunFacts]] = {}
    for run in runs:
        groups.setdefault(twins[run.run_id].run_id if run.run_id in twins else run.run_id, []).append(run)
    found: dict[str, Curves] = {}
    compared: dict[str, Against] = {}
    unreadable = []
    for twin_id, members in groups.items():
        twin: Mapping[str, Floats] = {}
        for run in sorted(members, key=lambda r: r.run_id != twin_id):
            outputs, trouble = read_outputs(run.folder, ended=run.verdict is not None)
            if trouble:
                unreadable.append((run, trouble))
            planned = as_float(run.flat.get("optim.steps")) or 0
            biases = read_biases(run.folder) if run.flat.get(BIAS) else {}
            found[run.run_id] = curves(outputs, int(planned), biases, points)
            if run.run_id == twin_id:
                twin = outputs
            elif outputs and twin:
                compared[run.run_id] = against(outputs, twin)
    return found, compared, tuple(unreadable)
