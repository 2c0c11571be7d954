"""The answer in three sentences, written from the numbers."""

from collections import Counter
from collections.abc import Sequence

from ablate.stats import INFERENCE_SEEDS, JOINED, Response
from ablate.verdict import Kind
from ablate.view.analysis import Analysis, Row
from ablate.view.results import MODEL, Results
from ablate.view.sentences import (
    LISTED,
    are,
    by_seed,
    claim,
    could,
    how,
    level_words,
    models_of,
    most,
    response_name,
    which,
)
from ablate.view.text import loss, number, plural
from ablate.view.words import SIGNS, amount, effect_words, size

UNSTABLE = (Kind.diverged, Kind.collapsed)


def answer(results: Results, analysis: Analysis, command: str) -> list[str]:
    """Three sentences: the headline factor, the largest difference, and how sure that is.

    The headline factor is the first one; its response is LR½ wherever that is known, the final loss where
    there is one rate. A single run has two sentences. `command` asks for seeds enough to infer.
    """
    finished = [r for r in results.runs if r.verdict is not None]
    if not finished:
        states = Counter(r.state for r in results.runs)
        return [
            "No run of this study has finished, so there is nothing to say yet.",
            f"Its {plural(len(results.runs), 'run')}: {_counted(states)}.",
            f"For an answer: {command}",
        ]
    if not analysis.infers:
        counts = [] if len(finished) == 1 else [_verdicts(results)]
        return [_description(len(finished), analysis, command), _seen(results, analysis), *counts]
    if not analysis.rows and analysis.placebos:
        return [*_null(analysis), _verdicts(results)]
    if not analysis.rows:
        return [_alone(results, analysis), _verdicts(results), "There is one arm, so nothing is compared."]
    return [_headline(analysis), _largest(analysis), _family(analysis)]


def _description(finished: int, analysis: Analysis, command: str) -> str:
    return (
        f"This describes {plural(finished, 'run')} with {plural(analysis.seeds, 'complete seed')} "
        f"and infers nothing: intervals and tests begin at {INFERENCE_SEEDS} seeds. For an answer: "
        f"{command}"
    )


def _seen(results: Results, analysis: Analysis) -> str:
    """What the first factor does in these runs and the largest difference, seed by seed, without a claim."""
    mains = _mains(analysis)
    rows = [r for r in mains if r.effect.estimate.n]
    if rows and analysis.within:
        return _seen_within(rows, analysis)
    if not rows:
        return _alone(results, analysis)
    name, factor = response_name(rows[0].contrast.response, analysis), _factor(mains)
    row = most(rows)
    largest = f"the largest difference in {name} is {which(row)}: {by_seed(row)}."
    if row.contrast.of[0][0] == factor:
        return f"In these runs {largest}"
    own = [r for r in rows if r.contrast.of[0][0] == factor]
    if not own:
        return f"In these runs no difference in {name} is known for {factor}; {largest}"
    headline = _widest(own)
    others = f" (the most of its {len(own)} contrasts)" if len(own) > 1 else ""
    return f"In these runs {which(headline)}{others} changes {name} by {by_seed(headline)}; {largest}"


def _seen_within(rows: Sequence[Row], analysis: Analysis) -> str:
    """Where whole models are compared: what the first factor does on average over most of them, and the most
    that it does in one. Differences between the models lead nowhere: they differ in many things at once.
    """
    response = rows[0].contrast.response
    mains = [r for r in rows if not _of_models(r) and not r.unlearned] or rows
    single = [r for r in analysis.within_of(response) if r.effect.estimate.n and not r.unlearned]
    row = _widest([r for r in mains if r.contrast.of[0][0] == _factor(mains)])
    averaged = f"In these runs {which(row)} changes {response_name(response, analysis)} by {by_seed(row)}"
    largest = most(single or rows)
    if not single or models_of(row) == models_of(largest):
        return f"{averaged}."
    return f"{averaged}; the largest effect within one model is that of {which(largest)}: {by_seed(largest)}."


def _of_models(row: Row) -> bool:
    """A difference between whole models."""
    return any(MODEL in factor.split(JOINED) for factor, _ in row.contrast.of)


def _headline(analysis: Analysis) -> str:
    """What the first factor does."""
    mains = _mains(analysis)
    factor, response = _factor(mains), mains[0].contrast.response
    rows = [r for r in mains if r.contrast.of[0][0] == factor]
    found = [r for r in rows if r.found]
    if found:
        row = _widest(found)
        others = (
            f"; of its {len(rows)} contrasts {len(found)} {are(len(found))} detectable"
            if len(rows) > 1
            else ""
        )
        if analysis.within:
            single = [r for r in analysis.within_of(response) if r.holm is not None]
            seen = sum(r.found for r in single)
            others = f"; of {plural(len(single), 'effect')} within one model {seen} {are(seen)} detectable"
        return f"{claim(row, analysis)}{others}."
    known = [r for r in rows if r.effect.estimate.n]
    listed = [f"{level_words(r)} {effect_words(response, r.effect)}" for r in known[:LISTED]]
    more = f" and {len(known) - LISTED} more" if len(known) > LISTED else ""
    return (
        f"{factor}: no detectable difference in {response_name(response, analysis)} at this scale: against "
        f"{rows[0].contrast.against[0][1]}, {', '.join(listed)}{more} ({how(known)}){could(known)}."
    )


def _largest(analysis: Analysis) -> str:
    """The largest detectable difference elsewhere: within one model, of other factors, of other responses."""
    mains = _mains(analysis)
    first = _factor(mains)
    places = [
        [r for r in mains if r.contrast.of[0][0] != first],
        *([r for r in analysis.of_response(x) if r.main] for x in analysis.telling),
    ]
    if analysis.within:
        inside = [[r for r in analysis.within_of(x) if not r.unlearned] for x in analysis.telling]
        places = [*inside, *([r for r in rows if not _of_models(r)] for rows in places)]
    told = _told(analysis)
    for rows in places:
        found = [r for r in rows if r.found and r is not told]
        if found:
            return f"{claim(most(found), analysis)}."
    known = [r for r in (places[0] or mains) if r.effect.estimate.n]
    if not known:
        return f"No other contrast in {response_name(mains[0].contrast.response, analysis)} has values."
    names = ", ".join(dict.fromkeys(r.contrast.of[0][0] for r in known))
    measures = "LR½ or the losses" if analysis.rates > 1 else "the losses"
    where = "effect within one model" if analysis.within else "other difference"
    return f"Nor is any {where} in {measures} detectable ({names}){could(known)}."


def _told(analysis: Analysis) -> Row | None:
    mains = _mains(analysis)
    rows = [r for r in mains if r.contrast.of[0][0] == _factor(mains) and r.found]
    return _widest(rows) if rows else None


def _family(analysis: Analysis) -> str:
    """How many contrasts were tested, how many are left, and what the noise floor is."""
    tested = analysis.tested
    found = [r for r in tested if r.found]
    twofold = sum(not r.main for r in found)
    words = (
        f"Of {plural(len(tested), 'contrast')} tested in {plural(len(Response), 'measure')}, {len(found)} "
        f"{are(len(found))} detectable ({twofold or 'no'} "
        f"{'interaction' if twofold == 1 else 'interactions'} among them; Holm-adjusted p < 0.05 and "
        "beyond the noise floor)"
    )
    first = _mains(analysis)[0].contrast
    floor = analysis.floors[first.response].main.get(first.task)
    if floor is None:
        return f"{words}; there is no placebo arm, so the noise floor of paired effects is not known."
    n, name = max((r.effect.estimate.n for r in tested), default=0), response_name(first.response, analysis)
    return (
        f"{words}; the placebo, which computes the same function, differs in {name} by at most "
        f"{size(first.response, floor.largest)} in a seed, a band of "
        f"{size(first.response, floor.band(n))} for means of {n} seeds."
    )


def _null(analysis: Analysis) -> tuple[str, str]:
    """A study of nothing but placebos: its differences are the noise floor."""
    told = (Response.edge, Response.best_loss) if analysis.rates > 1 else (Response.best_loss,)
    arm, like, effect = analysis.floors[told[0]].pairs[0]
    words = ", ".join(
        f"{response_name(x, analysis)} {effect_words(x, analysis.floors[x].pairs[0][2])}" for x in told
    )
    largest = size(told[0], max(map(abs, effect.estimate.per_seed), default=None))
    return (
        f"{arm} computes the same function as {like}, so nothing but noise tells them apart: {words} "
        f"(95 % paired intervals, n = {effect.estimate.n} seeds).",
        f"That is the noise floor: in a single seed {response_name(told[0], analysis)} differs by up to "
        f"{largest}.",
    )


def _alone(results: Results, analysis: Analysis) -> str:
    """A single arm, or arms without a contrast: what is known of the first."""
    finished = [r for r in results.runs if r.verdict is not None]
    if len(finished) == 1:
        (run,) = finished
        where = f"lr {number(run.lr, 6)}, seed {run.seed}"
        return f"The one finished run ({where}) is {results.word(run)}: final val {loss(run.val)}."
    if not analysis.arms:
        return "No arm has a run that can be read."
    first, response = analysis.arms[0], analysis.telling[0]
    of = "" if first.arm.title == "all runs" else f" of {first.arm.title}"
    found = first.estimates[response]
    if not found.n:
        missing = "edge" if response is Response.edge else "final loss below the one at step 0"
        return f"No {missing}{of} is known within the rates tried."
    name = f"{response_name(response, analysis)[:1].upper()}{response_name(response, analysis)[1:]}{of}"
    interval = found.interval
    if interval is None:
        values = ", ".join(f"{amount(response, x)}" for x in found.per_seed[:LISTED])
        return f"{name}: {SIGNS[found.bound]}{values} ({plural(found.n, 'seed')})."
    low, high = amount(response, interval.low), amount(response, interval.high)
    return (
        f"{name} is {SIGNS[found.bound]}{amount(response, found.mean)} (95 % {interval.kind} interval "
        f"{low} to {high}, n = {found.n} seeds)."
    )


def _verdicts(results: Results) -> str:
    """`Of 9 finished runs 3 are unstable (2 collapsed, 1 diverged); 5 are stable, 1 spiked.`"""
    finished = [r for r in results.runs if r.verdict is not None]
    counts = Counter(str(r.verdict) for r in finished)
    lost = Counter({word: n for word, n in counts.items() if word in UNSTABLE})
    rest = (counts - lost).most_common()
    unstable = lost.total()
    share = f"{unstable} {are(unstable)} unstable ({_counted(lost)})" if unstable else "none is unstable"
    others = [f"{n} {word}" if place else f"{n} {are(n)} {word}" for place, (word, n) in enumerate(rest)]
    end = f"; {', '.join(others)}" if others else ""
    return f"Of {plural(len(finished), 'finished run')} {share}{end}."


def _mains(analysis: Analysis) -> list[Row]:
    """Main effects in the first response for which there are numbers; the first response's if none has."""
    for response in analysis.telling:
        rows = [r for r in analysis.of_response(response) if r.main]
        if any(r.effect.estimate.n for r in rows):
            return rows
    return [r for r in analysis.of_response(analysis.telling[0]) if r.main]


def _factor(mains: Sequence[Row]) -> str:
    """The headline factor: the first one, whole models being last."""
    return mains[0].contrast.of[0][0]


def _widest(rows: Sequence[Row]) -> Row:
    """The largest difference; where models or tasks are several, of those that are means over the most."""
    widest = max(len(row.contrast.blocks) for row in rows)
    several = any(row.contrast.task or models_of(row) for row in rows)
    return most([row for row in rows if not several or len(row.contrast.blocks) == widest])


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{n} {word}" for word, n in counts.most_common())
