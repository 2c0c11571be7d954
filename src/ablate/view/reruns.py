"""The repetitions of a run, and what came of comparing them."""

from collections.abc import Mapping

from ablate.config import UserError, flatten
from ablate.record import Run, RunFolder
from ablate.sweep import compare_runs
from ablate.view.configs import shown
from ablate.view.facts import read_facts
from ablate.view.table import Table, table
from ablate.view.text import plural


def repetitions(folder: RunFolder) -> list[RunFolder]:
    """The folders under `reruns/`, in order."""
    found = sorted(folder.reruns.iterdir()) if folder.reruns.is_dir() else []
    return [RunFolder(path) for path in found if (path / "config.yaml").is_file()]


def original(folder: RunFolder) -> RunFolder | None:
    """The run that a repetition repeats; None if the folder is none."""
    return RunFolder(folder.path.parents[1]) if folder.path.parent.name == "reruns" else None


def reruns_table(run: Run) -> Table:
    """One row a repetition: what was changed, its state and verdict, and how its rows compare."""
    rows = []
    for folder in repetitions(run.folder):
        facts = read_facts(folder)
        rows.append(
            (folder.path.name, facts.state, facts.verdict or "-", changes(run, folder), compared(run, folder))
        )
    columns = ("again", "state", "verdict", "changed", "rows")
    return table(columns, rows, title="repetitions (ablate show RUN/reruns/001)")


def changes(run: Run, folder: RunFolder) -> str:
    """The settings in which a repetition differs: `probe.every=1`."""
    try:
        before, after = flatten(run.config), flatten(Run(folder).config)
    except UserError:
        return "?"
    differing: Mapping[str, object] = {k: v for k, v in after.items() if v != before.get(k)}
    return ", ".join(f"{key}={shown(after, key)}" for key in differing) or "nothing"


def compared(run: Run, folder: RunFolder) -> str:
    """`exact (200 rows)`, or where the rows part."""
    again = Run(folder)
    try:
        start = int(again.meta.get("from_step") or 0)
        found = compare_runs(run, again, start, shared_only=True)
    except (UserError, OSError):
        return "?"
    if not found.rows:
        return "none"
    since = f" from step {start} on" if start else ""
    if found.difference is None:
        return f"exact ({plural(found.rows, 'row')}{since})"
    return f"differ from step {found.difference.step} on ({found.difference.column})"
