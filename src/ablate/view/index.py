"""The facts of many runs at once, with an index of those that are over.

A study's `.facts.json` holds the facts of its done runs, each with the stamps of the files they were read
from. An entry whose stamps have changed is read anew, so the index can be removed at any time and is never
believed against the folders. Small studies have none.
"""

import contextlib
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from ablate.record import Owner, RunFolder, State, code_sha, find_runs, finite, replace_file
from ablate.view.facts import RunFacts, read_facts

NAME = ".facts.json"
WORTHWHILE = 200  # runs from which a study gets an index
SETTLED_NS = 2_000_000_000  # younger files may change once more within the same tick of the clock
STAMPED = ("", "/status.json", "/meta.json", "/summary.json")  # the folder's own stamp tells of new claims
Stamp = list[int]


def read_all_facts(root: Path, study: str | None = None) -> list[RunFacts]:
    """`read_facts` of every run of a study, or of all studies below `root`."""
    homes: dict[Path, list[RunFolder]] = {}
    for folder in find_runs(root, study):
        homes.setdefault(folder.path.parent, []).append(folder)
    return [facts for home, folders in homes.items() for facts in _of_study(home, folders)]


def _of_study(home: Path, folders: Sequence[RunFolder]) -> list[RunFacts]:
    if len(folders) < WORTHWHILE:
        return [read_facts(folder) for folder in folders]
    code = code_sha()
    index = _load(home / NAME, code)
    before = str(home)
    found, stamps, fresh = [], {}, 0
    for folder in folders:
        name = folder.path.name
        stamp = _stamp(f"{before}/{name}")
        facts = index.get(name, stamp, folder)
        if facts is None:
            facts = read_facts(folder)
            fresh += facts.state == State.done
        found.append(facts)
        stamps[name] = stamp
    if fresh:
        _save(home / NAME, code, found, stamps)
    return found


class _Index:
    """What an index file holds: keys once, values by run."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.base: dict[str, object] = raw.get("base", {})
        self.keys: list[list[str]] = raw.get("keys", [])
        self.runs: dict[str, list[Any]] = raw.get("runs", {})

    def get(self, name: str, stamp: Stamp | None, folder: RunFolder) -> RunFacts | None:
        """The facts of a run whose files are those that were indexed."""
        entry = self.runs.get(name)
        if entry is None or stamp is None or entry[0] != stamp:
            return None
        _, attempt, reason, owner, delta, kind, values, fingerprint, step = entry
        run_id = folder.id
        return RunFacts(
            folder=folder,
            run_id=run_id,
            study=folder.study,
            slug=name.removesuffix(f"-{run_id}"),
            state=str(State.done),
            reason=reason,
            attempt=attempt,
            owner=None if owner is None else Owner(*owner),
            flat={**self.base, **delta},
            summary=dict(zip(self.keys[kind], values, strict=True)),
            fingerprint=fingerprint,
            step=step,
        )


def _load(path: Path, code: str) -> _Index:
    """The index, empty where there is none, or one of other code."""
    try:
        raw = orjson.loads(path.read_bytes())
        return _Index(raw if raw["code"] == code else {})
    except (OSError, ValueError, KeyError, TypeError):
        return _Index({})


def _save(path: Path, code: str, runs: Iterable[RunFacts], stamps: Mapping[str, Stamp | None]) -> None:
    """Write the index of the runs that are done and have been for a while; not where it cannot be written."""
    settled = time.time_ns() - SETTLED_NS
    over = [run for run in runs if run.state == State.done and run.flat]
    base = dict(over[0].flat) if over else {}
    keys: dict[tuple[str, ...], int] = {}
    entries = {}
    for run in over:
        name = run.folder.path.name
        stamp = stamps[name]
        if stamp is None or max(stamp[::2]) > settled or run.flat.keys() != base.keys():
            continue
        kind = keys.setdefault(tuple(run.summary), len(keys))
        delta = {key: value for key, value in run.flat.items() if value != base[key]}
        owner = None if run.owner is None else list(vars(run.owner).values())
        values = list(run.summary.values())
        entries[name] = [
            stamp, run.attempt, run.reason, owner, delta, kind, values, run.fingerprint, run.step,
        ]  # fmt: skip
    whole = {"schema": 1, "code": code, "base": base, "keys": [list(k) for k in keys], "runs": entries}
    with contextlib.suppress(OSError):
        replace_file(path, orjson.dumps(finite(whole)), sync=False)


def _stamp(folder: str) -> Stamp | None:
    """Times and sizes of what facts are read from; None where a file is missing."""
    stamp: Stamp = []
    try:
        for part in STAMPED:
            found = os.stat(folder + part)
            stamp += (found.st_mtime_ns, found.st_size)
    except OSError:
        return None
    return stamp
