"""What the loopback backend keeps: runs, sweeps and views, as the client sent them.

Rows stand in the order of the server: a streamed file is a list of lines, and every request says at which
offset its lines begin. Lines sent again replace those that stand there, as on the real service.
"""

import json
import threading
from dataclasses import dataclass, field
from typing import Any

HISTORY = "wandb-history.jsonl"
SUMMARY = "wandb-summary.json"
ENTITY = "tester"


@dataclass
class StoredRun:
    """One run. `config` is plain (no `{"value": …}` around values); `gaps` counts lines that never came."""

    entity: str
    project: str
    name: str
    fields: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, list[str]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    state: str = "running"
    exit_code: int | None = None
    gaps: int = 0
    begun: int = 0  # how often a client has opened it

    @property
    def storage_id(self) -> str:
        return f"{self.entity}:{self.project}:{self.name}"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The history, in the order of the server."""
        return [json.loads(line) for line in self.lines.get(HISTORY, [])]

    def column(self, key: str) -> list[Any]:
        """The values of one key, of the rows that have it."""
        return [row[key] for row in self.rows if key in row]

    def append(self, name: str, offset: int, content: list[str]) -> None:
        """Lines of a streamed file, from `offset` on."""
        if name == SUMMARY:
            for line in content:
                self.summary = json.loads(line)
            return
        held = self.lines.setdefault(name, [])
        missing = offset - len(held)
        if missing > 0:
            self.gaps += missing
            held.extend(["{}"] * missing)
        held[offset : offset + len(content)] = content


@dataclass
class Sweep:
    """A grid sweep and the combinations that no agent has been given yet."""

    name: str
    project: str
    config: dict[str, Any]
    waiting: list[dict[str, Any]]
    given: int = 0


@dataclass
class Store:
    """Everything kept, behind one lock. `requests`: what was asked, in order; `unknown`: what nobody knew."""

    runs: dict[tuple[str, str], StoredRun] = field(default_factory=dict)
    deleted: set[tuple[str, str]] = field(default_factory=set)
    artifacts: dict[str, dict[str, Any]] = field(default_factory=dict)
    sweeps: dict[str, Sweep] = field(default_factory=dict)
    agents: dict[str, str] = field(default_factory=dict)
    views: list[dict[str, Any]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def run(self, project: str, name: str) -> StoredRun | None:
        with self.lock:
            return self.runs.get((project, name))

    def open_run(self, entity: str, project: str, name: str) -> tuple[StoredRun, bool]:
        """The run, made if need be; True if it is new."""
        with self.lock:
            new = (project, name) not in self.runs
            run = self.runs.setdefault((project, name), StoredRun(entity, project, name))
            return run, new

    def by_storage_id(self, storage_id: str) -> StoredRun | None:
        with self.lock:
            return next((run for run in self.runs.values() if run.storage_id == storage_id), None)

    def of_project(self, project: str) -> list[StoredRun]:
        """The project's runs, in the order in which they were made."""
        with self.lock:
            return [run for (owner, _), run in self.runs.items() if owner == project]
