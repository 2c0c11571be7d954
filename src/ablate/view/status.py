"""Where a study stands: counts by state, the runs at work, what went wrong."""

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from ablate.config import UserError
from ablate.record import Run, RunFolder, State, Status, find_runs, read_json, read_status
from ablate.view.follow import last_row
from ablate.view.table import Table, table
from ablate.view.text import clean, duration, loss, one_line, plural

BROKEN = (State.failed, State.killed, State.preempted)
MISSING = "missing"


@dataclass(frozen=True)
class StudyStatus:
    """The runs of a study by state at one moment; `missing`: asked for, and without a folder."""

    root: Path
    study: str
    runs: tuple[tuple[RunFolder, Status], ...]
    missing: int
    now: float

    @property
    def running(self) -> list[tuple[RunFolder, Status]]:
        return [(folder, status) for folder, status in self.runs if status.state is State.running]

    @property
    def open(self) -> bool:
        """May a launch that is under way begin another run at any moment: one that waits, or that died?"""
        return any(status.state in (State.queued, State.killed) for _, status in self.runs)

    @property
    def broken(self) -> list[tuple[RunFolder, Status]]:
        """Failed, killed and stopped runs."""
        return [(folder, status) for folder, status in self.runs if status.state in BROKEN]


def read_study_status(root: Path, study: str) -> StudyStatus:
    """Look at every run of a study once."""
    runs = tuple((folder, read_status(folder)) for folder in find_runs(root, study))
    asked = {run_id for path in (root / study / "requests").glob("*.json") for run_id in _asked(path)}
    return StudyStatus(root, study, runs, len(asked - {folder.id for folder, _ in runs}), time.time())


def status_lines(status: StudyStatus) -> list[str]:
    """The counts, and what to do about broken runs."""
    counts = Counter(str(one.state) for _, one in status.runs)
    words = [f"{counts[state]} {state}" for state in State if counts[state]]
    if status.missing:
        words.append(f"{status.missing} {MISSING}")
    total = len(status.runs) + status.missing
    lines = [f"{status.root / status.study}: {plural(total, 'run')}: {', '.join(words) or 'none'}"]
    if status.broken:
        lines.append(f"launch them again: ablate retry {status.study}")
    return lines


def status_tables(status: StudyStatus) -> list[Table]:
    """The runs at work, and those that went wrong with their causes."""
    tables = []
    if status.running:
        rows = [_at_work(folder, one, status.now) for folder, one in status.running]
        columns = ("run", "step", "loss", "left", "process", "last sign")
        tables.append(table(columns, rows, title="running", right=("step", "loss")))
    if status.broken:
        causes = [
            (folder.id, one.state, one.attempt, one_line(one.reason or "-"), folder.name)
            for folder, one in status.broken
        ]
        names = ("id", "state", "attempt", "cause", "run")
        tables.append(table(names, causes, title="not well", limit=160))
    return tables


def _at_work(folder: RunFolder, status: Status, now: float) -> tuple[object, ...]:
    row = last_row(folder.metrics())
    done = 0 if row is None else row.step + 1
    steps, begun = _planned(folder)
    owner = status.owner
    left = "-"
    if owner is not None and steps is not None and done > begun:
        left = duration((now - owner.since) / (done - begun) * (steps - done))
    return (
        clean(folder.name, 60),
        f"{done}/{steps if steps is not None else '?'}",
        loss(None if row is None else row.get("train/loss")),
        left,
        "-" if owner is None else f"{owner.pid} on {owner.host}",
        _silence(folder, now),
    )


def _planned(folder: RunFolder) -> tuple[int | None, int]:
    """Planned steps, and where this attempt began (not known before its record begins)."""
    try:
        meta = Run(folder).meta
        return int(meta["config"]["optim.steps"]), int(meta.get("from_step") or 0)
    except (UserError, KeyError, TypeError):
        return None, 0


def _silence(folder: RunFolder, now: float) -> str:
    try:
        return f"{duration(now - folder.heartbeat.stat().st_mtime)} ago"
    except FileNotFoundError:
        return "-"


def _asked(path: Path) -> list[str]:
    try:
        return list(read_json(path)["run_ids"])
    except (UserError, KeyError, TypeError):
        return []  # damaged: the runs it asked for are still there
