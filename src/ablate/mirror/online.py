"""A run on its way to the service, while it trains and after.

The service, not this process's memory, says which rows it holds: whatever was handed to wandb and never
arrived (a killed mirror, a dead wandb-core) is sent again, and nothing twice. Rows that the service keeps
but the record has voided or never had in that order cannot be taken back there: the W&B run is deleted and
begun again, under an id with a number behind it, because a deleted id cannot be used again.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ablate.config import TrackerMode
from ablate.mirror import server, service
from ablate.mirror.job import Job
from ablate.mirror.ledger import Condition, Sent
from ablate.mirror.pace import Pace
from ablate.mirror.rows import STEP, Row, digest
from ablate.mirror.service import Opened, Refused, Trouble, Unreachable

GENERATIONS = 3  # how often a run is begun again within one mirror before it is given up


@dataclass(eq=False)
class Line:
    """The open W&B run of one run folder.

    `next`: the first row that was not handed over; `digest`: of those that were ("" where it is not known);
    `over`: its W&B run was ended, whatever the service said to that.
    """

    opened: Opened
    entity: str
    project: str
    id: str
    generation: int
    next: int = 0
    digest: str = ""
    over: bool = False

    def held(self) -> server.Held:
        """What the service has of it. Raises Refused, Unreachable."""
        found = server.held(self.entity, self.project, self.id)
        if found is None:
            raise Refused(f"the service does not know run {self.id} any more")
        return found

    def fits(self, job: Job) -> bool:
        """Are the rows that were handed over still the record's? (One that is resumed grows again first.)"""
        if len(job.rows) < self.next:
            return not job.ended
        return not self.digest or digest(job.rows[: self.next]) == self.digest


def open_line(job: Job, build: Path, finish_timeout: float, generation: int | None = None) -> Line:
    """Go on with the W&B run of a job, or begin it. Raises Trouble.

    `generation`: begin it again under this number, whatever there was before.
    """
    known = job.ledger.online
    ours = known is not None and known.where is not None
    sent = known if generation is None else None
    first = generation if generation is not None else 0 if sent is None else sent.generation
    for number in range(first, first + GENERATIONS):
        facts = replace(job.facts, id=numbered(job.ledger.wandb_id, number))
        # Asked first: it fails at once where wandb would try for its whole init_timeout. And a run that this
        # folder did not send is left as it is, unless it is the beginning of the very same rows.
        there = server.held(facts.entity, facts.project, facts.id)
        if not ours and there is not None and there.rows != _count(job.rows, there):
            continue
        opened = service.open_run(
            facts, TrackerMode.online, build, finish_timeout, resume=True, sweep=job.ledger.sweep
        )
        line = Line(opened, opened.run.entity, opened.run.project, facts.id, number)
        held = line.held()
        if held.rows == 0 or _go_on(line, job, held, sent if number == first else None):
            return line
        drop(line)
    raise Trouble(
        f"the service holds other rows under {GENERATIONS} ids of this run, beginning with {facts.id}"
    )


def _go_on(line: Line, job: Job, held: server.Held, sent: Sent | None) -> bool:
    """Set the line behind the rows that the service holds, if those are the record's first ones.

    `sent`: what an earlier mirror remembers of them.
    """
    rows = job.rows
    if sent is not None and 0 < sent.rows <= len(rows) and digest(rows[: sent.rows]) != sent.digest:
        return False
    if held.last_step is None:
        return False
    count = _count(rows, held)
    if count == held.rows and count < len(rows) and line.opened.run.starting_step > rows[count][STEP]:
        return False  # the summary there is ahead of the rows: wandb would drop what is missing
    if count == held.rows:
        line.next, line.digest = count, digest(rows[:count])
        return True
    grows_again = count == len(rows) < held.rows and not job.ended
    line.next = held.rows
    line.digest = sent.digest if sent is not None and sent.rows == held.rows else ""
    return grows_again


def _count(rows: Sequence[Row], held: server.Held) -> int:
    """How many of the rows the service has, if it has all up to its newest step."""
    return 0 if held.last_step is None else sum(1 for row in rows if row[STEP] <= held.last_step)


def drop(line: Line) -> None:
    """Have the service forget a run. Raises Trouble."""
    storage_id = line.held().storage_id
    close(line)
    server.forget(storage_id)


def numbered(wandb_id: str, generation: int) -> str:
    """The id under which a run was begun for the n-th time again."""
    return f"{wandb_id}-{generation + 1}" if generation else wandb_id


def feed(line: Line, rows: Sequence[Row], pace: Pace) -> bool:
    """Hand over what is missing, as fast as the service likes it; True if nothing is left. Raises Trouble."""
    if line.opened.refused:
        raise Refused(line.opened.refused[0])
    before = line.next
    while line.next < len(rows) and pace.take(len(rows[line.next])):
        line.opened.log(rows[line.next])
        line.next += 1
    if line.next > before:
        line.digest = digest(rows[: line.next])
    return line.next >= len(rows)


def finish(line: Line, job: Job) -> Sent:
    """End the W&B run, and ask the service whether it has everything. Raises Trouble.

    The service is asked before, too: wandb would wait for one that is away as long as it is allowed to.
    """
    line.held()
    line.over = True
    line.opened.finish(job.summary, job.exit_code)
    held = line.held()
    if held.rows != len(job.rows):
        said = f"the service took {held.rows} of {len(job.rows)} rows"
        raise (Refused if line.opened.refused else Unreachable)(said)
    drop_files(line.opened)
    return job.sent(Condition.clean, None, job.rows, line.opened.url, line.generation)


def close(line: Line) -> None:
    """Let go of a line whose run goes on elsewhere or not at all."""
    try:
        line.opened.finish({}, 0)
    except Trouble:
        service.restart()
    drop_files(line.opened)


def drop_files(opened: Opened) -> None:
    """Remove what wandb kept of an online run: the record is the copy on this side."""
    shutil.rmtree(opened.folder, ignore_errors=True)
