"""One run folder as the mirror sees it at one moment."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import orjson

from ablate.config import TrackerMode
from ablate.mirror.facts import Facts, run_facts, wandb_id
from ablate.mirror.ledger import Condition, Ledger, Sent, read_ledger, stamps
from ablate.mirror.rows import STEP, Row, digest, rows_of
from ablate.mirror.summary import run_summary
from ablate.record import Run, RunFolder, State, finite
from ablate.view import Arms, RunFacts

ENDED = frozenset({State.done, State.failed, State.preempted, State.killed})


@dataclass(frozen=True)
class Job:
    """A run and the names it has in its study. Its files are read when they are asked for, once.

    `sources`: the stamps of the files before they were read, so that what changes meanwhile shows next time.
    """

    folder: RunFolder
    seen: RunFacts
    arms: Arms
    ledger: Ledger
    sources: dict[str, tuple[int, int]]

    @classmethod
    def of(cls, seen: RunFacts, arms: Arms, sources: dict[str, tuple[int, int]]) -> "Job":
        """The job of a run folder, with its ledger (a new one if it has none)."""
        known = read_ledger(seen.folder.path)
        shared = seen.flat.get("tracker.project") not in (None, seen.study)
        fresh = Ledger(wandb_id(seen.folder.name, seen.study if shared else ""))
        return cls(seen.folder, seen, arms, known or fresh, sources)

    @property
    def ended(self) -> bool:
        return self.seen.state in ENDED

    @property
    def done(self) -> bool:
        return self.seen.state == State.done

    @property
    def exit_code(self) -> int:
        """As W&B shows states: 0 finished, else failed."""
        return 0 if self.done else 1

    @cached_property
    def run(self) -> Run:
        return Run(self.folder)

    @cached_property
    def rows(self) -> list[Row]:
        """Raises UserError for a damaged record."""
        return rows_of(self.run, self.run.config.tracker.rows, self.ended)

    @cached_property
    def summary(self) -> dict[str, Any]:
        return run_summary(self.run, self.seen)

    @cached_property
    def facts(self) -> Facts:
        """Names and configuration, with what an agent has set. Raises ConfigError."""
        found, ledger = run_facts(self.run, self.seen, self.arms), self.ledger
        sent = ledger.online
        number = "" if sent is None or not sent.generation else f"-{sent.generation + 1}"
        return replace(
            found,
            id=ledger.wandb_id + number,
            project=ledger.project or found.project,
            entity=ledger.entity or found.entity,
        )

    def facts_digest(self) -> str:
        """Of everything but the rows."""
        plain = {**self.facts.plain(), "id": self.ledger.wandb_id}
        said = finite([plain, self.summary if self.ended else None])
        return hashlib.sha256(orjson.dumps(said, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]

    def sent(
        self, state: Condition, why: str | None, rows: Sequence[Row], where: str | None, generation: int = 0
    ) -> Sent:
        """What is to be remembered when these rows have been sent."""
        return Sent(
            state=state,
            why=why,
            attempt=self.seen.attempt,
            rows=len(rows),
            last_step=int(rows[-1][STEP]) if rows else None,
            digest=digest(rows),
            facts=self.facts_digest() if state is Condition.clean else "",
            where=where,
            sources=self.sources,
            updated=time.time(),
            generation=generation,
        )

    def up_to_date(self, mode: TrackerMode) -> bool:
        """Is everything in W&B that the record says now?"""
        sent = self.ledger.of(mode)
        if sent is None or sent.state is not Condition.clean or not self.ended:
            return False
        if sent.facts != self.facts_digest():
            return False
        return dict(sent.sources) == self.sources or (
            sent.rows == len(self.rows) and sent.digest == digest(self.rows)
        )


def job_sources(folder: RunFolder) -> dict[str, tuple[int, int]]:
    """The stamps of the files that a job is made from."""
    return stamps(folder)
