"""What `ls` may be asked for: columns by whole or short name, filters by value, misspellings refused."""

import difflib
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ablate.config import WORDS, FieldInfo, Site, UserError, fields
from ablate.record import State
from ablate.verdict import Kind
from ablate.view.arms import BIAS, bias_words
from ablate.view.facts import COLUMNS, Arms, RunFacts, lookup
from ablate.view.text import as_float, value

ORDERS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
NUMERIC = ("lr", "seed", "step", "final_val", "attempt")
PREFIXED = ("id", "data")  # hex digits: the beginning is enough
ABSENT = ("null", "-")
_COMMA = re.compile(r",(?![^\[]*\])")  # not one inside [v,o]


@dataclass(frozen=True)
class Filter:
    """One condition on a column or key of a run; with `=` and `!=`, `words` are alternatives."""

    key: str
    relation: str
    words: tuple[str, ...]

    def holds(self, run: RunFacts, arms: Arms) -> bool:
        """Does the run meet it? An absent value, and NaN, is neither above nor below anything."""
        if self.relation in ("=", "!="):
            return matches(run, self.key, self.words, arms) == (self.relation == "=")
        (wanted,) = self.words
        item = lookup(run, self.key, arms)
        if self.relation == "~":
            words = bias_words(run.flat) if self.key == BIAS else []
            return any(re.search(wanted, text) for text in [*words, value(item)])
        known, limit = as_float(item), as_float(wanted)
        return known is not None and limit is not None and ORDERS[self.relation](known, limit)


def parse_filters(texts: Sequence[str]) -> tuple[Filter, ...]:
    """Comparisons such as `key=value`, `key!=value`, `key>=number`, `key~regex`.

    Raises UserError for anything else, for an order against what is no number, and for a bad expression.
    """
    return tuple(map(_filter, texts))


def _filter(text: str) -> Filter:
    found = re.fullmatch(r"\s*([^=!<>~\s]+)\s*(!=|<=|>=|=|<|>|~)\s*(.*?)\s*", text)
    if found is None:
        allowed = "key=value, or with != < <= > >= ~ (a regular expression)"
        raise UserError(f"--filter {text}", allowed=allowed, hint="--filter verdict=diverged")
    key, relation, wanted = found.groups()
    limit = as_float(wanted)
    if relation in ORDERS and (limit is None or math.isnan(limit)):
        raise UserError(f"--filter {text}", allowed=f"a number after {relation}")
    if relation == "~":
        try:
            re.compile(wanted)
        except re.error as error:
            raise UserError(f"--filter {text}: no regular expression ({error})") from None
    return Filter(key, relation, (wanted,))


def resolve(key: str, runs: Sequence[RunFacts]) -> str:
    """The column, configuration key or summary key that `key` means: itself, or the end of a dotted key.

    Raises UserError if that fits several, or with the nearest names if nothing fits.
    """
    keys = [f.key for f in fields()]
    if key in COLUMNS or key in keys or any(key in r.summary for r in runs):
        return key
    found = [k for k in keys if k.rpartition(".")[2] == key]
    if len(found) == 1:
        return found[0]
    if found:
        raise UserError(f"{key!r} is short for {len(found)} keys", allowed=", ".join(found))
    names = {*COLUMNS, *keys, *(k.rpartition(".")[2] for k in keys), *(k for r in runs for k in r.summary)}
    near = difflib.get_close_matches(key, sorted(names), n=3)
    raise UserError(
        f"no run has {key!r}",
        allowed=f"{', '.join(COLUMNS)}, any configuration key, any summary key",
        hint=" or ".join(near) or "ablate config --keys",
    )


def resolve_filters(filters: Sequence[Filter], runs: Sequence[RunFacts]) -> tuple[Filter, ...]:
    """Filters with whole keys and their alternatives apart (`seed=0,1`).

    Raises UserError for a value that no run can have.
    """
    return tuple(_resolved(condition, runs) for condition in filters)


def _resolved(asked: Filter, runs: Sequence[RunFacts]) -> Filter:
    whole = resolve(asked.key, runs)
    if asked.relation not in ("=", "!="):
        return replace(asked, key=whole)
    (wanted,) = asked.words
    words = tuple(_sites(word) if whole == BIAS else word for word in _COMMA.split(wanted))
    for word in words:
        _check_value(asked.key, whole, word, runs)
    return replace(asked, key=whole, words=words)


def matches(run: RunFacts, key: str, words: Iterable[str], arms: Arms) -> bool:
    """Does the run's value read as one of the words? Numbers by value: 3e-4 is 0.0003."""
    item = lookup(run, key, arms)
    return any(_reads_as(run, key, item, word) for word in words)


def _reads_as(run: RunFacts, key: str, item: object, word: str) -> bool:
    if item is None:
        return word in ABSENT
    if isinstance(item, int | float) and not isinstance(item, bool):
        asked = as_float(word)
        return asked is not None and (asked == float(item) or (math.isnan(asked) and math.isnan(item)))
    if key in PREFIXED:
        return bool(word) and str(item).startswith(word)
    words = bias_words(run.flat) if key == BIAS else []
    return word in {*words, value(item), str(item)}


def _check_value(asked: str, key: str, word: str, runs: Sequence[RunFacts]) -> None:
    if word in ABSENT:
        return
    if _numeric(key) and as_float(word) is None:
        raise UserError(f"--filter {asked}={word}", allowed="a number")
    allowed = _words(key, runs)
    for part in word.strip("[]").split(",") if key == BIAS else [word]:
        if allowed and part not in allowed:
            near = difflib.get_close_matches(part, allowed, n=1, cutoff=0.5)
            hint = f"--filter {asked}={near[0]}" if near else None
            raise UserError(f"--filter {asked}={word}", allowed=", ".join(allowed), hint=hint)


def _sites(word: str) -> str:
    """Sites as a run records them: a list in their fixed order; words such as `all` stay."""
    sites = [site.strip() for site in word.strip("[]").split(",")]
    if word in WORDS or not all(site in set(Site) for site in sites):
        return word
    return value([str(site) for site in Site if site in sites])


def _numeric(key: str) -> bool:
    info = _field(key)
    kinds = ("whole number", "number", "steps or fraction")
    return key in NUMERIC or (info is not None and info.type_name in kinds)


def _words(key: str, runs: Sequence[RunFacts]) -> tuple[str, ...]:
    """The words a value is one of; none where it can be anything."""
    if key == "verdict":
        return tuple(Kind)
    if key == "state":
        return tuple(State)
    if key == "study":
        return tuple(dict.fromkeys(r.study for r in runs))
    info = _field(key)
    if info is None:
        return ()
    if info.key == BIAS:
        return (*WORDS, *Site)
    if info.choices is not None:
        return tuple(info.choices)
    return ("true", "false") if info.type_name == "true or false" else ()


def _field(key: str) -> FieldInfo | None:
    return next((f for f in fields() if f.key == key), None)
