"""The states of a run, and status.json."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import orjson

from ablate.record.folder import RunFolder
from ablate.record.process import Owner


class State(StrEnum):
    """queued → running → done | failed | preempted; `killed` is never written, readers infer it."""

    queued = "queued"
    running = "running"
    done = "done"
    failed = "failed"
    preempted = "preempted"
    killed = "killed"


ENDED = frozenset({State.done, State.failed, State.preempted})


@dataclass(frozen=True)
class Status:
    """Where a run stands. `attempt` counts from 1 (0: never begun); `updated` is in seconds since 1970.

    `owner` is the process of that attempt; `code_sha` the code that the run was queued with.
    """

    state: State
    attempt: int
    owner: Owner | None
    reason: str | None
    updated: float
    code_sha: str | None = None


def status_json(status: Status) -> dict[str, Any]:
    """What status.json holds."""
    return {"schema": 1, **asdict(status)}


def recorded_status(folder: RunFolder) -> Status | None:
    """status.json as it stands, whatever has happened since; None if there is none or it is damaged."""
    try:
        raw = orjson.loads(folder.status.read_bytes())
        return Status(
            state=State(raw["state"]),
            attempt=int(raw["attempt"]),
            owner=None if raw["owner"] is None else Owner.from_json(raw["owner"]),
            reason=raw["reason"],
            updated=float(raw["updated"]),
            code_sha=raw["code_sha"],
        )
    except (FileNotFoundError, IsADirectoryError, ValueError, KeyError, TypeError):
        return None
