"""The list of runs: one row each, filtered and sorted."""

import math
from collections.abc import Sequence

from ablate.config import UserError
from ablate.view.facts import Arms, RunFacts, check_keys, lookup, matches
from ablate.view.table import Table, table
from ablate.view.text import as_float, loss, number, value

DEFAULT_COLUMNS = ("id", "state", "verdict", "arm", "lr", "seed", "step", "loss")
RIGHT = ("lr", "seed", "step", "loss", "attempt")


def parse_filters(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """`key=value` pairs. Raises UserError for anything else."""
    pairs = []
    for text in texts:
        key, equals, wanted = text.partition("=")
        if not equals or not key:
            raise UserError(f"--filter {text}", allowed="key=value", hint="--filter verdict=diverged")
        pairs.append((key.strip(), wanted.strip()))
    return tuple(pairs)


def select(
    runs: Sequence[RunFacts], filters: Sequence[tuple[str, str]] = (), sort: Sequence[str] = ()
) -> list[RunFacts]:
    """The runs that match every filter, sorted by the given columns (`-column`: downwards)."""
    check_keys([*(k for k, _ in filters), *(s.removeprefix("-") for s in sort)], runs)
    arms = Arms.of(runs)
    chosen = [r for r in runs if all(matches(r, key, wanted, arms) for key, wanted in filters)]
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
