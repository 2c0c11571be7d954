"""The study's tables: arm × learning rate over the seeds, and each arm's sensitivity to the rate."""

import shlex
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from ablate.config import UserError
from ablate.record import read_json, site_of
from ablate.verdict import Kind
from ablate.view.afresh import sweep_of
from ablate.view.facts import RunFacts
from ablate.view.results import MODEL, ArmResult, Point, Results
from ablate.view.table import Table, table
from ablate.view.text import loss, number, plural, rate, rate_span

LISTED_RUNS = 8  # runs named in a note
LISTED_SEEDS = 3  # up to so many, verdicts that differ are listed seed by seed
ANSWER = "seed=range(0,8)"
REPEAT = "repeat the runs with other seeds, each with its own settings, until there are eight"


def study_table(runs: Sequence[RunFacts], title: str | None = None) -> Table:
    """`results_table` of these runs."""
    return results_table(Results.of(runs), title)


def results_table(results: Results, title: str | None = None) -> Table:
    """Arm × learning rate: median final val loss, n, verdicts, departing site, linear grown most.

    Where no run of a point has a stable twin, the fastest-growing linear stands in, as a rate.
    """
    span = min((rate_span(r.flat.get("optim.steps")) for r in results.runs if r.flat), default=100)
    rows = []
    for point in (p for arm in results.arms for p in arm.points):
        finished = sum(r.verdict is not None for r in point.runs)
        rows.append(
            (
                point.arm,
                number(point.lr, 6),
                loss(point.median_val()),
                f"{finished}/{len(point.runs)}" if finished < len(point.runs) else str(finished),
                verdict_words(point, results),
                departing_words(point, results),
                growth_words(point, results, span),
            )
        )
    return table(
        ("arm", "lr", "final val", "n", "verdict", "departs first", "grown most"),
        rows,
        title=title,
        right=("lr", "final val", "n"),
    )


def sensitivity_table(results: Results) -> Table:
    """One row an arm: best rate, loss there, and the LR sensitivity (mean over seeds) in its two parts."""
    rows = [(arm.name, *_sensitivity(arm, results)) for arm in results.arms]
    return table(
        ("arm", "best lr", "val there", "LR sensitivity", "below best", "above best", "n"),
        rows,
        title=f"LR sensitivity over {', '.join(number(lr, 6) for lr in results.rates)}",
        right=("best lr", "val there", "LR sensitivity", "below best", "above best", "n"),
    )


def reading_notes(results: Results) -> list[str]:
    """How to read these numbers, in sentences."""
    notes = []
    if results.left_out:
        reasons = ", ".join(dict.fromkeys(why for _, why in results.left_out))
        notes.append(f"{plural(len(results.left_out), 'run')} left out: {reasons}.")
    if results.unreadable:
        named = [f"{r.folder.name} ({why})" for r, why in results.unreadable[:LISTED_RUNS]]
        more = len(results.unreadable) - len(named)
        notes.append(
            f"The rows of {plural(len(results.unreadable), 'run')} cannot be read, so no curve and no growth "
            f"is shown of: {', '.join(named)}{f' and {more} more' if more else ''}."
        )
    notes += [*unlearned_notes(results), *task_notes(results), *model_notes(results)]
    if len(results.rates) > 1 and not results.even_grid:
        notes.append(
            "The rates are not evenly spaced on a log scale: the LR sensitivity weighs crowded ones more."
        )
    if results.against:
        notes.append(
            "Stable twin: the run of the same arm and seed at the arm's best rate; the rows of that rate say "
            "so. Departs first: the site whose output is the first to rise above twice its twin's for good, "
            "and the step at which it does so (several seeds: the median; n of m: in n of m seeds)."
        )
    if results.impaired:
        notes.append(
            "Impaired: stable or spiked, but final val above ℓ* + ½(u − ℓ*), halfway from the study's best "
            f"{_whose_best(results)}to the unigram."
        )
    return notes


def _whose_best(results: Results) -> str:
    if MODEL in results.study.factors:
        return "of the same model "
    return "of the same task " if len(results.study.tasks) > 1 else ""


def unlearned_notes(results: Results) -> list[str]:
    """Which arms never left the unigram, and which runs learned nothing without being called unstable."""
    study = results.study
    notes = []
    if study.unlearned:
        groups = _by_model(study.unlearned, results)
        listed = ", ".join(groups[:LISTED_RUNS]) + (", …" if len(groups) > LISTED_RUNS else "")
        notes.append(
            f"In {len(study.unlearned)} of {plural(len(study.arms), 'arm')} most runs get no further than "
            f"the unigram even at the best rate (collapsed or undertrained): {listed}. They never learned: "
            "they need more steps, or rates that were not tried, and the differences between them say "
            "nothing."
        )
    idle = [o for o in study.outcomes if o.kind is Kind.undertrained]
    if idle:
        groups = _by_model(dict.fromkeys(o.arm for o in idle), results)
        listed = ", ".join(groups[:LISTED_RUNS]) + (", …" if len(groups) > LISTED_RUNS else "")
        notes.append(
            f"{plural(len(idle), 'run')} learned nothing without breaking (undertrained) and "
            f"{'is' if len(idle) == 1 else 'are'} not counted as unstable, which flatters the share unstable "
            f"of {listed}."
        )
    return notes


def _by_model(arms: Iterable[str], results: Results) -> list[str]:
    """`bert (3 of 3 arms)` where whole models are compared, else the arms."""
    levels = results.study.levels
    if MODEL not in results.study.factors:
        return ["all runs" if arm == "-" else arm for arm in arms]
    counts = Counter(levels[arm][MODEL] for arm in arms)
    whole = Counter(of[MODEL] for of in levels.values())
    return [f"{model} ({n} of {plural(whole[model], 'arm')})" for model, n in counts.items()]


def model_notes(results: Results) -> list[str]:
    """How to read differences between whole models; nothing for a study of one."""
    if MODEL not in results.study.factors:
        return []
    return [
        "LR½ and impaired are measured within each model, against the best loss of its own arms: the "
        "question is which rates a model survives, not how much another one learns in as many steps. Models "
        "differ in many things at once, foremost in how fast they learn, so differences between presets name "
        "no cause."
    ]


def task_notes(results: Results) -> list[str]:
    """Which arms are never compared, in a sentence; nothing for a study of one task."""
    found = results.study.by_task
    if len(found) < 2:
        return []
    listed = "; ".join(f"{task}: {plural(len(study.arms), 'arm')}" for task, study in found.items())
    return [
        f"There are {len(found)} tasks ({listed}), and losses of different tasks are not comparable: ℓ*, "
        "impaired, LR½ and every contrast are taken within one. Differences between arms of different tasks "
        "are left out."
    ]


def answer_command(home: Path, study: str, runs: Sequence[RunFacts] = ()) -> str:
    """The study's newest request, asking for eight seeds; without one, the sweep over the runs' own settings.

    `REPEAT`, words and no command, where no sweep asks for just these runs.
    """
    try:
        newest = max((home / "requests").glob("*.json"), key=lambda path: path.name)
        argv = [str(word) for word in read_json(newest)["argv"]]
    except (ValueError, OSError, KeyError, TypeError, UserError):
        return sweep_of(runs, study, ANSWER) or REPEAT
    kept = [word for word in argv if not word.startswith(("seed=", "sweep.redo=", "sweep.jobs="))]
    return shlex.join([*kept, ANSWER])


def verdict_words(point: Point, results: Results) -> str:
    """`2 stable`; `stable / diverged` in the order of up to three seeds; counts beyond."""
    words = [results.word(r) for r in point.runs]
    if len(words) == 1:
        return words[0]
    counts = Counter(words)
    if len(counts) == 1 or len(words) > LISTED_SEEDS:
        kinds = sorted(counts, key=lambda w: (-counts[w], w))
        return ", ".join(f"{counts[k]} {k}" for k in kinds)
    return " / ".join(words)


def departing_words(point: Point, results: Results) -> str:
    """`o from step 2`: the site that leaves the stable twin first, in most seeds; the median step."""
    known = [results.against[r.run_id].departure for r in point.runs if r.run_id in results.against]
    if not known:
        return "stable twin" if any(results.is_twin(r) for r in point.runs) else "-"
    steps: dict[str, list[int]] = {}
    for departure in known:
        if departure is not None:
            steps.setdefault(site_of(departure.linear), []).append(departure.step)
    if not steps:
        return "none"
    first = min(steps, key=lambda site: (-len(steps[site]), min(steps[site]), site))
    words = f"{first} from step {number(statistics.median(steps[first]), 6)}"
    return words if len(steps[first]) == len(known) else f"{words} ({len(steps[first])} of {len(known)})"


def growth_words(point: Point, results: Results, span: int) -> str:
    """`b03_down ×12`: against the twin at the end; or a growth rate, `b03_down ×1.80/100 steps`."""
    known = [results.against[r.run_id].grown for r in point.runs if r.run_id in results.against]
    grown = [g for g in known if g is not None]
    if grown:
        linear, factor = max(grown, key=lambda g: g[1])
        return f"{linear} ×{number(factor, 3)}"
    fastest = point.fastest()
    return "-" if fastest is None else f"{fastest[0]} {rate(fastest[1], span)}"


def _sensitivity(arm: ArmResult, results: Results) -> tuple[str, ...]:
    at_best = next((p for p in arm.points if p.lr == arm.best_lr and p.lr is not None), None)
    best = (number(arm.best_lr, 6), loss(None if at_best is None else at_best.median_val()))
    found = list(arm.sensitivities.values())
    if not found:
        return (*best, "-", "-", "-", "0")
    if arm.best_lr is None:
        return (*best, "no rate trains", "-", "-", str(len(found)))
    parts = [statistics.fmean(getattr(s, part) for s in found) for part in ("total", "below", "above")]
    return (*best, *(loss(part) for part in parts), str(len(found)))
