"""A run that has ended becomes one whole offline W&B run: replayed, checked, only then put in its place."""

import shutil
import time
from pathlib import Path

from ablate.config import TrackerMode
from ablate.mirror import service
from ablate.mirror.job import Job
from ablate.mirror.ledger import Condition, Sent
from ablate.mirror.service import CoreDied, Opened, Trouble
from ablate.mirror.transaction import fault

TRIES = 2  # wandb-core may die once
BUILD = Path(".mirror") / "build"  # below the study's wandb folder
SETTLE_S = 10.0  # for the end of a log to reach the disk after finish() has returned


def replay(job: Job, home: Path, finish_timeout: float) -> Sent:
    """Build the run below `home` (the study's wandb folder) in place of any older one of its id.

    Raises Trouble (degraded: nothing of the older one was touched), UserError for a damaged record.
    """
    build = home / BUILD
    for left in reversed(range(TRIES)):
        shutil.rmtree(build, ignore_errors=True)
        try:
            made = _written(job, build, finish_timeout)
            break
        except CoreDied:
            service.restart()
            if not left:
                raise
    return job.sent(Condition.clean, None, job.rows, place(made, job.facts.id, len(job.rows), home))


def place(opened: Opened, wandb_id: str, rows: int, home: Path) -> str:
    """Put a finished run below `home`, instead of older ones of its id; where it is, from the study's folder.

    Raises Trouble if its log is not whole.
    """
    made = opened.folder
    log = made / f"run-{wandb_id}.wandb"
    deadline = time.monotonic() + SETTLE_S
    while (why := fault(log, rows)) is not None:
        if time.monotonic() > deadline:
            raise Trouble(f"the offline run is not whole: {why} (is the disk full?)")
        time.sleep(0.05)
    remove(home, wandb_id)
    made.rename(home / made.name)  # `wandb leet` opens nothing without the time in its name
    shutil.rmtree(home / BUILD, ignore_errors=True)
    return f"{home.name}/{made.name}"


def remove(home: Path, wandb_id: str) -> None:
    """Remove the offline runs of an id: two of one id would be merged into one by a sync."""
    for folder in home.glob("offline-run-*"):
        if folder.name.endswith(f"-{wandb_id}") and (folder / f"run-{wandb_id}.wandb").exists():
            shutil.rmtree(folder)


def is_there(job: Job, home: Path) -> bool:
    """Does the run that was built still stand in its place?"""
    sent = job.ledger.offline
    return sent is not None and sent.where is not None and (home.parent / sent.where).is_dir()


def _written(job: Job, build: Path, finish_timeout: float) -> Opened:
    opened = service.open_run(job.facts, TrackerMode.offline, build, finish_timeout, sweep=job.ledger.sweep)
    for row in job.rows:
        opened.log(row)
    opened.finish(job.summary, job.exit_code)
    return opened
