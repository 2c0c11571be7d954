"""The list of runs: one row each, filtered and sorted."""

from collections.abc import Callable, Sequence

from ablate.view.arms import BIAS
from ablate.view.configs import shown
from ablate.view.facts import SHORT, Arms, RunFacts, column, lookup
from ablate.view.filters import Filter, resolve, resolve_filters
from ablate.view.table import Table, table
from ablate.view.text import clean, loss, number, rank, value

DEFAULT_COLUMNS = ("id", "state", "verdict", "arm", "lr", "seed", "step", "final_val")
HEADINGS = {"final_val": "final val"}
NOTES = 80  # characters of a run's notes, which may be a text of any length
RIGHT = ("lr", "seed", "step", "final val", "attempt")


def select(
    runs: Sequence[RunFacts],
    filters: Sequence[Filter] = (),
    sort: Sequence[str] = (),
    arms: Arms | None = None,
) -> list[RunFacts]:
    """The runs that match every filter, by study, arm, learning rate and seed, or by the given columns.

    `-column`: downwards. `arms`: those of all `runs`, where they are known already.
    """
    asked = resolve_filters(filters, runs)
    columns = [(resolve(key.removeprefix("-"), runs), key.startswith("-")) for key in sort]
    arms = arms or Arms.by_study(runs)
    chosen = [run for run in runs if all(condition.holds(run, arms) for condition in asked)]
    chosen.sort(key=arms.order)
    for key, downwards in reversed(columns):
        chosen.sort(key=lambda r: rank(lookup(r, key, arms)), reverse=downwards)
    return chosen


def runs_table(
    chosen: Sequence[RunFacts],
    runs: Sequence[RunFacts],
    columns: Sequence[str] | None = None,
    arms: Arms | None = None,
) -> Table:
    """The chosen runs as a table; arms are named by what differs among all `runs` of their study."""
    studies = {r.study for r in runs}
    names = tuple(columns) if columns else (("study",) if len(studies) > 1 else ()) + DEFAULT_COLUMNS
    keys = [resolve(name, runs) for name in names]
    arms = arms or Arms.by_study(runs)
    cells = [_cells(key, chosen, arms) for key in keys]
    rows = list(zip(*cells, strict=True))
    headings = [HEADINGS.get(name, name) for name in names]
    return table(headings, rows, right=RIGHT, short={"id": SHORT, "data": SHORT}, whole=("path",))


def records(
    chosen: Sequence[RunFacts], runs: Sequence[RunFacts], columns: Sequence[str] | None = None
) -> list[dict[str, object]]:
    """The chosen runs for machines: the table's columns as they are, or all that is known of each run."""
    arms = Arms.by_study(runs)
    if columns:
        keys = {name: resolve(name, runs) for name in columns}
        return [{name: lookup(run, key, arms) for name, key in keys.items()} for run in chosen]
    basic = ("study", *DEFAULT_COLUMNS, "slug", "attempt", "reason", "path")
    return [
        {**{n: lookup(r, n, arms) for n in basic}, "config": dict(r.flat), "summary": dict(r.summary)}
        for r in chosen
    ]


def _cells(key: str, runs: Sequence[RunFacts], arms: Arms) -> list[str]:
    """One column's cells, as people read them."""
    if key == BIAS:
        return [shown(run.flat, BIAS) if key in run.flat else "-" for run in runs]
    show: Callable[[object], str] = _shown
    if key == "final_val" or key.endswith("/loss"):
        show = loss
    elif key == "run.notes":
        show = _notes
    return ["-" if item is None else show(item) for item in column(runs, key, arms)]


def _shown(item: object) -> str:
    return number(item, 6) if isinstance(item, float) else value(item)


def _notes(item: object) -> str:
    return clean(item, NOTES)
