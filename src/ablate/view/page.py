"""The page about one run: what it was, what became of it and why."""

import shlex
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ablate.config import VerdictConfig, flatten, parse
from ablate.record import Run, State
from ablate.verdict import Verdict
from ablate.view.configs import differences
from ablate.view.facts import RunFacts
from ablate.view.results import growth_rates
from ablate.view.table import Table, table
from ablate.view.text import clean, loss, number, one_line, rate, rate_span, sparkline, value

FASTEST = 8
LONG = 80  # characters of a list shown whole
FACTS = ("fact", "value")


def run_page(run: Run, facts: RunFacts) -> list[Table]:
    """The tables of `ablate show`, in order; parts a run does not have (yet) are left out."""
    tables = [
        _outcome(facts),
        differences(facts.flat, flatten(parse({}))),
        table(FACTS, _meta_rows(run.meta), title="facts"),
        _fastest(facts),
        _course(run),
        _where(facts),
    ]
    return [t for t in tables if t is not None and t.rows]


def replayed(before: Verdict, after: Verdict, thresholds: VerdictConfig, names: Sequence[str]) -> Table:
    """Two verdicts on one curve: with the recorded thresholds and with others."""
    changed = ", ".join(f"{n}={value(getattr(thresholds, n.rsplit('.', 1)[-1]))}" for n in names)
    rows = [
        ("recorded thresholds", before.kind, "; ".join(before.reasons)),
        (changed, after.kind, "; ".join(after.reasons)),
    ]
    return table(("thresholds", "verdict", "why"), rows, title="verdict, replayed")


def _outcome(facts: RunFacts) -> Table:
    reasons = facts.summary.get("reasons")
    why = [str(r) for r in reasons] if isinstance(reasons, list) else []
    owner = facts.owner if facts.state == State.running else None
    rows: list[tuple[str, object]] = [
        ("state", facts.state + (f": {one_line(facts.reason)}" if facts.reason else "")),
        ("verdict", facts.verdict or "-"),
        *(("why", line) for line in why),
        ("steps", f"{facts.step if facts.step is not None else 0} of {facts.flat.get('optim.steps', '?')}"),
        ("final val loss", loss(facts.val)),
        ("attempt", facts.attempt),
        *([("trained by", f"process {owner.pid} on {owner.host}")] if owner else []),
    ]
    return table(FACTS, rows, title=f"{facts.study}/{facts.folder.name}")


def _meta_rows(meta: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Every recorded fact but the configuration (it has its own table), nested names joined by dots."""
    rest = {key: item for key, item in meta.items() if key not in ("schema", "config")}
    if isinstance(started := rest.get("started"), float):
        rest["started"] = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(started))
    return [(key, _fact(item)) for key, item in _leaves(rest)]


def _fact(item: object) -> str:
    """A value; of a list of norms its kinds, of a long list its length and beginning."""
    if isinstance(item, list) and item and all(isinstance(part, Mapping) for part in item):
        kinds = Counter(str(part.get("kind", "?")) for part in item)
        return ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    if isinstance(item, list) and len(value(item)) > LONG:
        return clean(f"{len(item)}: {value(item)[1:-1]}", LONG)
    return value(item)


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for key, item in tree.items():
        if isinstance(item, Mapping):
            found += _leaves(item, f"{prefix}{key}.")
        else:
            found.append((f"{prefix}{key}", number(item, 8) if isinstance(item, float) else item))
    return found


def _fastest(facts: RunFacts) -> Table:
    span = rate_span(facts.flat.get("optim.steps"))
    rows = [(name, rate(slope, span)) for name, slope in growth_rates(facts.summary)[:FASTEST]]
    return table(("linear", "output growth"), rows, title="fastest-growing linears, over the last window")


def _course(run: Run) -> Table | None:
    series = run.series()
    if not len(series):
        return None
    losses = series.column("train/loss")
    row = (sparkline(losses.tolist()), loss(float(losses[0])), loss(float(losses[-1])))
    return table(("train loss", "first", "last"), [row], title="course")


def _where(facts: RunFacts) -> Table:
    folder = facts.folder
    rows = [
        ("folder", str(folder.path)),
        ("log", str(folder.stdout)),
        ("repeat", f"ablate rerun {shlex.quote(str(folder.path))}"),
    ]
    return table(("what", "where"), rows, title="paths")
