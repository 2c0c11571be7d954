"""Parts of the answer's sentences: which difference, by how much, over what, how sure."""

from collections.abc import Sequence

from ablate.stats import JOINED, Bound, Response
from ablate.view.analysis import Analysis, Row
from ablate.view.results import MODEL
from ablate.view.text import number
from ablate.view.words import NAMES, SIGNS, change, p_words, size

LISTED = 4  # levels of one factor, or seeds, named in a sentence
MODELS = 3  # models named in a sentence
CENSORED = "; edges beyond the rates tried enter at their limit"


def by_seed(row: Row) -> str:
    """The mean, and what each seed says."""
    response, found = row.contrast.response, row.effect.estimate
    seeds = [
        f"{change(response, d)} in seed {seed}"
        for seed, d in [*zip(found.seeds, found.per_seed, strict=True)][:LISTED]
    ]
    return f"{SIGNS[found.bound]}{change(response, found.mean)} ({', '.join(seeds)}{censored(row)})"


def claim(row: Row, analysis: Analysis) -> str:
    """A detectable difference with its interval, p and noise floor."""
    response, found = row.contrast.response, row.effect.estimate
    interval = found.interval
    floor = f", noise floor {size(response, row.floor)}" if row.floor is not None else ""
    if interval is None:
        bounds = "every seed alike"
    else:
        low, high = change(response, interval.low), change(response, interval.high)
        bounds = f"95 % paired {interval.kind} interval {low} to {high}"
    return (
        f"With {which(row)} {response_name(response, analysis)} changes by "
        f"{SIGNS[found.bound]}{change(response, found.mean)} ({bounds}, n = {found.n} seeds, Holm-adjusted "
        f"p {p_words(row.holm)}{floor}{censored(row)})"
    )


def which(row: Row) -> str:
    """`bias all instead of none in llama`: the difference, and what it is a mean over."""
    (factor, level), (_, reference) = row.contrast.of[0], row.contrast.against[0]
    if JOINED in factor:
        factor = f"{factor.replace(JOINED, ' and ')} together:"
    level, reference = (words.replace(JOINED, " with ") for words in (level, reference))
    return f"{factor} {level} instead of {reference}{scope(row)}"


def level_words(row: Row) -> str:
    """The level alone, with what its difference is a mean over."""
    return f"{row.contrast.of[0][1]}{scope(row)}"


def scope(row: Row) -> str:
    """Which model a difference is of, or over how many it is averaged; else which of several tasks."""
    models = models_of(row)
    if len(models) == 1:
        return f" in {models[0]}"
    if models:
        more = ", …" if len(models) > MODELS else ""
        return f", averaged over {len(models)} models ({', '.join(models[:MODELS])}{more}),"
    return f" ({row.contrast.task})" if row.contrast.task else ""


def models_of(row: Row) -> tuple[str, ...]:
    """The models that a contrast is a mean over."""
    places = (*row.contrast.blocks, row.contrast.within)
    return tuple(dict.fromkeys(level for place in places for name, level in place if name == MODEL))


def how(rows: Sequence[Row]) -> str:
    """The kind of the intervals, n, and the least p."""
    kinds = sorted({str(i.kind) for r in rows if (i := r.effect.estimate.interval) is not None})
    ns = sorted({r.effect.estimate.n for r in rows})
    n = f"{ns[0]} to {ns[-1]}" if len(ns) > 1 else number(ns[0]) if ns else "0"
    kind = f"95 % paired {' or '.join(kinds)} intervals" if kinds else "every seed alike, so no interval"
    ps = [r.holm for r in rows if r.holm is not None]
    least = f", least Holm-adjusted p {p_words(min(ps))}" if ps else ""
    return f"{kind}, n = {n} seeds{least}{censored(*rows)}"


def could(rows: Sequence[Row]) -> str:
    """What could have been seen."""
    known = [(r.effect.mde, r.contrast.response) for r in rows if r.effect.mde is not None]
    if not known:
        return ""
    mde, response = max(known, key=lambda x: x[0])
    return f"; we could have seen ≥ {size(response, mde)} with power 0.8 (before Holm's correction)"


def censored(*rows: Row) -> str:
    """Whether edges beyond the rates tried are in it."""
    return CENSORED if any(r.effect.estimate.bound is not Bound.exact for r in rows) else ""


def most(rows: Sequence[Row]) -> Row:
    """The largest difference."""
    return max(rows, key=lambda r: abs(r.effect.estimate.mean))


def response_name(response: Response, analysis: Analysis) -> str:
    """What a response is called; at a single rate there is no best one."""
    return "final loss" if response is Response.best_loss and analysis.rates == 1 else NAMES[response]


def are(count: int) -> str:
    """The verb for so many."""
    return "is" if count == 1 else "are"
