"""The answer in three sentences, written from the numbers."""

from collections import Counter
from collections.abc import Sequence

from ablate.stats import INFERENCE_SEEDS, Bound, Response
from ablate.view.analysis import Analysis, Row
from ablate.view.results import Results
from ablate.view.text import number, plural
from ablate.view.words import NAMES, SIGNS, amount, change, effect_words, p_words, size

LISTED = 4  # levels of one factor, or seeds, named in a sentence
CENSORED = "; edges beyond the rates tried enter at their limit"


def answer(results: Results, analysis: Analysis, command: str) -> list[str]:
    """Three sentences: the headline factor, the largest difference, and how sure that is.

    The headline factor is the first one; its response is LR½ wherever that is known. `command` asks for
    seeds enough to infer.
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
        return [_description(len(finished), analysis, command), _seen(analysis), _verdicts(results)]
    if not analysis.rows and analysis.placebos:
        return [*_null(analysis), _verdicts(results)]
    if not analysis.rows:
        return [_alone(analysis), _verdicts(results), "There is one arm, so nothing is compared."]
    return [_headline(analysis), _largest(analysis), _family(analysis)]


def _description(finished: int, analysis: Analysis, command: str) -> str:
    return (
        f"This describes {plural(finished, 'run')} with {plural(analysis.seeds, 'complete seed')} "
        f"and infers nothing: intervals and tests begin at {INFERENCE_SEEDS} seeds. For an answer: "
        f"{command}"
    )


def _seen(analysis: Analysis) -> str:
    """The largest difference of these runs, seed by seed, without a claim."""
    rows = [r for r in _mains(analysis) if r.effect.estimate.n]
    if not rows:
        return _alone(analysis)
    row = max(rows, key=lambda r: abs(r.effect.estimate.mean))
    response, found = row.contrast.response, row.effect.estimate
    seeds = [
        f"{change(response, d)} in seed {seed}"
        for seed, d in [*zip(found.seeds, found.per_seed, strict=True)][:LISTED]
    ]
    return (
        f"In these runs the largest difference in {NAMES[response]} is {_which(row)}: "
        f"{SIGNS[found.bound]}{change(response, found.mean)} ({', '.join(seeds)}{_censored(row)})."
    )


def _headline(analysis: Analysis) -> str:
    """What the first factor does."""
    mains = _mains(analysis)
    rows = [r for r in mains if r.contrast.of[0][0] == mains[0].contrast.of[0][0]]
    response, factor = rows[0].contrast.response, rows[0].contrast.of[0][0]
    found = [r for r in rows if r.found]
    if found:
        row = max(found, key=lambda r: abs(r.effect.estimate.mean))
        others = (
            f"; of its {len(rows)} contrasts {len(found)} {_are(len(found))} detectable"
            if len(rows) > 1
            else ""
        )
        return f"{_claim(row)}{others}."
    known = [r for r in rows if r.effect.estimate.n]
    listed = [f"{r.contrast.of[0][1]} {effect_words(response, r.effect)}" for r in known[:LISTED]]
    more = f" and {len(known) - LISTED} more" if len(known) > LISTED else ""
    return (
        f"{factor}: no detectable difference in {NAMES[response]} at this scale: against "
        f"{rows[0].contrast.against[0][1]}, {', '.join(listed)}{more} ({_how(known)}){_could(known)}."
    )


def _largest(analysis: Analysis) -> str:
    """The largest detectable difference elsewhere: other factors first, other responses then."""
    mains = _mains(analysis)
    first = mains[0].contrast.of[0][0]
    places = [
        [r for r in mains if r.contrast.of[0][0] != first],
        *([r for r in analysis.of_response(x) if r.main] for x in Response),
    ]
    told = _told(analysis)
    for rows in places:
        found = [r for r in rows if r.found and r is not told]
        if found:
            return f"{_claim(max(found, key=lambda r: abs(r.effect.estimate.mean)))}."
    known = [r for r in (places[0] or mains) if r.effect.estimate.n]
    if not known:
        return f"No other contrast in {NAMES[mains[0].contrast.response]} has values."
    names = ", ".join(dict.fromkeys(r.contrast.of[0][0] for r in known))
    return f"Nor is any other difference in LR½ or the losses detectable ({names}){_could(known)}."


def _told(analysis: Analysis) -> Row | None:
    mains = _mains(analysis)
    rows = [r for r in mains if r.contrast.of[0][0] == mains[0].contrast.of[0][0] and r.found]
    return max(rows, key=lambda r: abs(r.effect.estimate.mean), default=None)


def _family(analysis: Analysis) -> str:
    """How many contrasts were tested, how many are left, and what the noise floor is."""
    tested = [r for r in analysis.rows if r.holm is not None]
    found = [r for r in tested if r.found]
    twofold = sum(not r.main for r in found)
    words = (
        f"Of {plural(len(tested), 'contrast')} tested in {plural(len(Response), 'measure')}, {len(found)} "
        f"{_are(len(found))} detectable ({twofold or 'no'} "
        f"{'interaction' if twofold == 1 else 'interactions'} among them; Holm-adjusted p < 0.05 and "
        "beyond the noise floor)"
    )
    floor = analysis.floors[_mains(analysis)[0].contrast.response]
    if floor.main is None:
        return f"{words}; there is no placebo arm, so the noise floor of paired effects is not known."
    n = max(r.effect.estimate.n for r in tested) if tested else 0
    return (
        f"{words}; the placebo, which computes the same function, differs in {NAMES[floor.response]} by at "
        f"most {size(floor.response, floor.main.largest)} in a seed, a band of "
        f"{size(floor.response, floor.main.band(n))} for means of {n} seeds."
    )


def _null(analysis: Analysis) -> tuple[str, str]:
    """A study of nothing but placebos: its differences are the noise floor."""
    floor = analysis.floors[Response.edge]
    arm, like, effect = floor.pairs[0]
    other = analysis.floors[Response.best_loss].pairs[0][2]
    n = effect.estimate.n
    return (
        f"{arm} computes the same function as {like}, so nothing but noise tells them apart: LR½ "
        f"{effect_words(Response.edge, effect)}, loss at best lr {effect_words(Response.best_loss, other)} "
        f"(95 % paired intervals, n = {n} seeds).",
        f"That is the noise floor: in a single seed LR½ differs by up to "
        f"{size(Response.edge, max(map(abs, effect.estimate.per_seed), default=None))}.",
    )


def _alone(analysis: Analysis) -> str:
    """A single arm, or arms without a contrast: what is known of the first."""
    if not analysis.arms:
        return "No arm has a run that can be read."
    first = analysis.arms[0]
    found = first.estimates[Response.edge]
    if not found.n:
        return f"No edge of {first.arm.title} is known within the rates tried."
    values = ", ".join(f"{amount(Response.edge, x)}" for x in found.per_seed[:LISTED])
    interval = found.interval
    if interval is None:
        return f"LR½ of {first.arm.title}: {SIGNS[found.bound]}{values} ({plural(found.n, 'seed')})."
    low, high = amount(Response.edge, interval.low), amount(Response.edge, interval.high)
    return (
        f"LR½ of {first.arm.title} is {SIGNS[found.bound]}{amount(Response.edge, found.mean)} (95 % "
        f"{interval.kind} interval {low} to {high}, n = {found.n} seeds)."
    )


def _verdicts(results: Results) -> str:
    finished = [r for r in results.runs if r.verdict is not None]
    unstable = sum(r.verdict in ("diverged", "collapsed") for r in finished)
    counts = Counter(str(r.verdict) for r in finished)
    return (
        f"Of {plural(len(finished), 'finished run')} {unstable} {_are(unstable)} unstable (diverged "
        f"or collapsed): {_counted(counts)}."
    )


def _claim(row: Row) -> str:
    response, found = row.contrast.response, row.effect.estimate
    interval = found.interval
    floor = f", noise floor {size(response, row.floor)}" if row.floor is not None else ""
    if interval is None:
        bounds = "every seed alike"
    else:
        low, high = change(response, interval.low), change(response, interval.high)
        bounds = f"95 % paired {interval.kind} interval {low} to {high}"
    return (
        f"With {_which(row)} {NAMES[response]} changes by "
        f"{SIGNS[found.bound]}{change(response, found.mean)} ({bounds}, n = {found.n} seeds, Holm-adjusted "
        f"p {p_words(row.holm)}{floor}{_censored(row)})"
    )


def _which(row: Row) -> str:
    (factor, level), (_, reference) = row.contrast.of[0], row.contrast.against[0]
    return f"{factor} {level} instead of {reference}"


def _how(rows: Sequence[Row]) -> str:
    kinds = sorted({str(i.kind) for r in rows if (i := r.effect.estimate.interval) is not None})
    ns = sorted({r.effect.estimate.n for r in rows})
    n = f"{ns[0]} to {ns[-1]}" if len(ns) > 1 else number(ns[0]) if ns else "0"
    kind = f"95 % paired {' or '.join(kinds)} intervals" if kinds else "every seed alike, so no interval"
    ps = [r.holm for r in rows if r.holm is not None]
    least = f", least Holm-adjusted p {p_words(min(ps))}" if ps else ""
    return f"{kind}, n = {n} seeds{least}{_censored(*rows)}"


def _could(rows: Sequence[Row]) -> str:
    known = [(r.effect.mde, r.contrast.response) for r in rows if r.effect.mde is not None]
    if not known:
        return ""
    mde, response = max(known, key=lambda x: x[0])
    return f"; we could have seen ≥ {size(response, mde)} with power 0.8 (before Holm's correction)"


def _censored(*rows: Row) -> str:
    return CENSORED if any(r.effect.estimate.bound is not Bound.exact for r in rows) else ""


def _mains(analysis: Analysis) -> list[Row]:
    """Main effects in the first response for which there are numbers; the first response's if none has."""
    for response in Response:
        rows = [r for r in analysis.of_response(response) if r.main]
        if any(r.effect.estimate.n for r in rows):
            return rows
    return [r for r in analysis.of_response(next(iter(Response))) if r.main]


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{n} {word}" for word, n in counts.most_common())


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
