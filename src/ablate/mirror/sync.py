"""`ablate wandb sync`: what of a study is not in W&B goes up, and the service is asked what it has.

Runs are sent from the record, not from offline files: a run that the service knows is resumed behind its last
row, while `wandb sync` would append all of its rows again and report success.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ablate.config import TrackerMode
from ablate.mirror import server, service
from ablate.mirror.check import first_difference
from ablate.mirror.command import take_claim, who_mirrors
from ablate.mirror.job import Job, job_sources
from ablate.mirror.ledger import Condition, Sent, read_ledger, run_address, wandb_home, write_ledger
from ablate.mirror.mirror import Mirror
from ablate.mirror.rows import STEP
from ablate.mirror.service import Trouble
from ablate.record import Claimed, Heartbeat, RunFolder, State, find_runs
from ablate.view import Arms, read_facts

PASSES = 2  # what turns out to differ is sent once more
Say = Callable[[str], None]


@dataclass(frozen=True)
class Synced:
    """What came of a study.

    `runs` that have ended; `up`: of those the service says it has all rows; `compared`: their values too;
    `troubles`: why not, by run; `answers`: False if the service went away, and wandb's own exit would wait.
    """

    runs: int
    up: int
    compared: int
    troubles: Mapping[str, str]
    answers: bool


@dataclass
class _Comparison:
    """What the service was asked so far, by run folder's name."""

    same: set[str] = field(default_factory=set)
    counted: set[str] = field(default_factory=set)  # not all of the rows that it counts are shown
    short: dict[str, int] = field(default_factory=dict)  # it has only so many rows, the record's first ones
    unanswered: dict[str, str] = field(default_factory=dict)
    different: dict[str, str] = field(default_factory=dict)


class _Partly(Exception):
    """The service does not show all the rows that it counts."""


class _Short(Exception):
    """The service has only the first rows of the record."""

    def __init__(self, rows: int) -> None:
        super().__init__(rows)
        self.rows = rows


def sync_study(root: Path, study: str, finish_timeout: float, seconds: float, say: Say) -> Synced:
    """Send and compare until all is well, or for `seconds` at most (and one answer of the service more).

    Raises Claimed while another mirror is at the study, OSError where mirror.json cannot be written.
    """
    deadline = time.monotonic() + seconds
    place = RunFolder(wandb_home(root, study) / ".mirror")
    place.path.mkdir(parents=True, exist_ok=True)
    claim = take_claim(place, 0.0, None)
    if claim is None:
        raise Claimed(f"{who_mirrors(place)} is mirroring {study}")
    service.prepare(place.path)
    seen = _Comparison()
    with Heartbeat(place):
        for _ in range(PASSES):
            mirror = Mirror(root, study, TrackerMode.online, min(finish_timeout, seconds), say)
            mirror.settle(deadline)
            _compare(root, study, seen, deadline, say)
            _repair(root, study, seen, say)
            if not (seen.different or seen.short) or time.monotonic() > deadline:
                break
        mirror.study_run()
        _mark_study(root, study)
        mirror.write_troubles()
        answers = mirror.close()
        claim.finish(State.done)
    return _outcome(root, study, seen, time.monotonic() > deadline, answers)


def jobs(root: Path, study: str) -> list[Job]:
    """Every run of the study that has ended, as the mirror sees it."""
    folders = find_runs(root, study)
    sources = [job_sources(folder) for folder in folders]
    facts = [read_facts(folder) for folder in folders]
    arms = Arms.of(facts)
    found = [Job.of(seen, arms, stamps) for seen, stamps in zip(facts, sources, strict=True)]
    return [job for job in found if job.ended]


def address(sent: Sent) -> tuple[str, str, str]:
    """Entity, project and id of an online run, from its address. Raises Trouble."""
    found = run_address(sent.where)
    if found is None:
        raise Trouble(f"no address: {sent.where}")
    return found


def _compare(root: Path, study: str, seen: _Comparison, deadline: float, say: Say) -> None:
    """Compare what is said to be up, and was not compared yet."""
    seen.unanswered, seen.different, seen.short = {}, {}, {}
    for job in jobs(root, study):
        sent, name = job.ledger.online, job.folder.name
        if sent is None or sent.state is not Condition.clean or name in seen.same | seen.counted:
            continue
        if time.monotonic() > deadline:
            seen.unanswered[name] = "out of time: not compared with the record"
            continue
        try:
            why = _difference(job, sent)
        except _Partly as found:
            seen.counted.add(name)
            say(f"{name}: {found}")
        except _Short as found:
            seen.short[name] = found.rows
            say(f"{name}: the service lost rows: {found.rows} there, {len(job.rows)} here")
        except Trouble as error:
            seen.unanswered[name] = f"not compared with the record: {error}"
        else:
            if why is None:
                seen.same.add(name)
                _mark_offline(root, study, job.ledger.wandb_id)
            else:
                seen.different[name] = why
                say(f"{name}: the service holds something else: {why}")


def _difference(job: Job, sent: Sent) -> str | None:
    """How the service's rows differ from the record's. Raises Trouble, _Partly."""
    entity, project, wandb_id = address(sent)
    held = server.held(entity, project, wandb_id)
    if held is None:
        return "it does not know the run"
    if held.rows > len(job.rows):
        return f"{held.rows} rows there, {len(job.rows)} here"
    end = int(job.rows[-1][STEP]) + 1 if job.rows else 0
    theirs = server.rows(entity, project, wandb_id, end)
    if len(theirs) < held.rows:
        raise _Partly(f"the service counts {held.rows} rows, and shows {len(theirs)} of them")
    why = first_difference(job.rows[: held.rows], theirs)
    if why is None and held.rows < len(job.rows):
        raise _Short(held.rows)
    return why


def _mark_offline(root: Path, study: str, wandb_id: str) -> None:
    """Leave W&B's own mark on the offline copy of a run that is up: `wandb sync` passes over it."""
    for log in wandb_home(root, study).glob(f"offline-run*-{wandb_id}/run-{wandb_id}.wandb"):
        log.with_name(f"{log.name}.synced").touch()


def _mark_study(root: Path, study: str) -> None:
    """The same for the study's own run."""
    own = read_ledger(wandb_home(root, study))
    if own is not None and own.online is not None and own.online.state is Condition.clean:
        _mark_offline(root, study, own.wandb_id)


def _repair(root: Path, study: str, seen: _Comparison, say: Say) -> None:
    """Have the mirror go on with runs that lack rows, and begin those again that hold something else."""
    for job in jobs(root, study):
        sent, name = job.ledger.online, job.folder.name
        if sent is None:
            continue
        if name in seen.short:
            has, why = seen.short[name], f"the service lost rows after the first {seen.short[name]}"
            fresh = job.sent(Condition.degraded, why, job.rows[:has], sent.where, sent.generation)
        elif name in seen.different:
            fresh = _begun_again(job, sent, seen.different[name], say)
        else:
            continue
        write_ledger(job.folder.path, job.ledger.having(TrackerMode.online, fresh))


def _begun_again(job: Job, sent: Sent, why: str, say: Say) -> Sent:
    """Have the service forget a run that holds something else; the mirror begins it under a new number."""
    try:
        entity, project, wandb_id = address(sent)
        held = server.held(entity, project, wandb_id)
        if held is not None:
            server.forget(held.storage_id)
    except Trouble as error:
        say(f"{job.folder.name}: could not be begun again: {error}")
        return replace(sent, state=Condition.degraded, why=why)
    return job.sent(Condition.degraded, why, [], sent.where, sent.generation + 1)


def _outcome(root: Path, study: str, seen: _Comparison, late: bool, answers: bool) -> Synced:
    short = {name: f"the service has its first {rows} rows only" for name, rows in seen.short.items()}
    troubles, up = {**seen.unanswered, **short, **seen.different}, 0
    all_jobs = jobs(root, study)
    for job in all_jobs:
        sent, name = job.ledger.online, job.folder.name
        if name in troubles:
            continue
        if sent is not None and sent.state is Condition.clean:
            up += 1
        else:
            why = None if sent is None else sent.why
            troubles[name] = why or ("out of time" if late else "not sent")
    return Synced(len(all_jobs), up, len(seen.same), troubles, answers)
