"""The list of runs: one row each, filtered and sorted."""

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ablate.config import UserError
from ablate.view.arms import BIAS, bias_words
from ablate.view.facts import Arms, RunFacts, check_keys, lookup, matches
from ablate.view.table import Table, table
from ablate.view.text import as_float, loss, number, value

ORDERS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
DEFAULT_COLUMNS = ("id", "state", "verdict", "arm", "lr", "seed", "step", "loss")
RIGHT = ("lr", "seed", "step", "loss", "attempt")


@dataclass(frozen=True)
class Filter:
    """One condition on a column or key of a run."""

    key: str
    relation: str
    wanted: str

    def holds(self, run: RunFacts, arms: Arms) -> bool:
        """Does the run meet it? An absent value, and NaN, is neither above nor below anything."""
        if self.relation in ("=", "!="):
            return matches(run, self.key, self.wanted, arms) == (self.relation == "=")
        item = lookup(run, self.key, arms)
        if self.relation == "~":
            words = bias_words(run.flat) if self.key == BIAS else []
            return any(re.search(self.wanted, text) for text in [*words, value(item)])
        known, limit = as_float(item), as_float(self.wanted)
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
    return Filter(key, relation, wanted)


def select(
    runs: Sequence[RunFacts], filters: Sequence[Filter] = (), sort: Sequence[str] = ()
) -> list[RunFacts]:
    """The runs that match every filter, sorted by the given columns (`-column`: downwards)."""
    check_keys([*(f.key for f in filters), *(s.removeprefix("-") for s in sort)], runs)
    if not filters and not sort:
        return list(runs)
    arms = Arms.of(runs)
    chosen = [r for r in runs if all(f.holds(r, arms) for f in filters)]
    for key in reversed(sort):
        column = key.removeprefix("-")
        chosen.sort(key=lambda r: _rank(lookup(r, column, arms)), reverse=key.startswith("-"))
    return chosen


def runs_table(
    chosen: Sequence[RunFacts], runs: Sequence[RunFacts], columns: Sequence[str] | None = None
) -> Table:
    """The chosen runs as a table; arms are named by what differs among all `runs`."""
    studies = {r.study for r in runs}
    names = tuple(columns) if columns else (("study",) if len(studies) > 1 else ()) + DEFAULT_COLUMNS
    check_keys(names, runs)
    arms = Arms.of(runs)
    rows = [[_cell(name, lookup(run, name, arms)) for name in names] for run in chosen]
    return table(names, rows, right=RIGHT)


def records(
    chosen: Sequence[RunFacts], runs: Sequence[RunFacts], columns: Sequence[str] | None = None
) -> list[dict[str, object]]:
    """The chosen runs for machines: the table's columns as they are, or all that is known of each run."""
    arms = Arms.of(runs)
    if columns:
        check_keys(columns, runs)
        return [{name: lookup(run, name, arms) for name in columns} for run in chosen]
    basic = ("study", *DEFAULT_COLUMNS, "slug", "attempt", "reason", "path")
    return [
        {**{n: lookup(r, n, arms) for n in basic}, "config": dict(r.flat), "summary": dict(r.summary)}
        for r in chosen
    ]


def _cell(name: str, item: object) -> str:
    if item is None:
        return "-"
    if name == "loss" or name.endswith("/loss"):
        return loss(item)
    if isinstance(item, float):
        return number(item, 6)
    return value(item)


def _rank(item: object) -> tuple[int, float, str]:
    """Numbers by size (NaN last), then words, then what is absent."""
    known = as_float(item)
    if known is not None:
        return (0, known, "") if not math.isnan(known) else (1, 0.0, "")
    return (3, 0.0, "") if item is None else (2, 0.0, str(item))
