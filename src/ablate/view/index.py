"""The facts of many runs at once, with an index of those that are over.

A study's `.facts.jsonl` holds the facts of its done runs, each with the stamps of the files they were read
from. An entry whose stamps have changed is read anew, so the index can be removed at any time and is never
believed against the folders. Small studies have none.

Its lines are JSON: what all runs share, with a checksum and the sizes of the other lines; the entries; a
column for every setting that varies; a column for every number of the summaries, parsed only when asked for.
"""

import contextlib
import itertools
import os
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from ablate.record import DiskFull, Owner, RunFolder, State, code_sha, finite, replace_file, runs_by_study
from ablate.view.facts import RunFacts, read_facts
from ablate.view.shared import Block, Layered, Row

NAME = ".facts.jsonl"
SCHEMA = 2
WORTHWHILE = 200  # runs from which a study gets an index
OUTDATED = 0.02  # share of its runs that are read anew before the index is written again
SETTLED_NS = 2_000_000_000  # younger files may change once more within the same tick of the clock
STAMPED = ("", "/status.json", "/meta.json", "/summary.json")  # the folder's own stamp tells of new claims
DONE = str(State.done)
Stamp = list[int]


def read_all_facts(root: Path, study: str | None = None) -> list[RunFacts]:
    """`read_facts` of every run of a study, or of all studies below `root`."""
    homes = runs_by_study(root, study)
    return [facts for home, folders in homes.items() for facts in _of_study(home, folders)]


def _of_study(home: Path, folders: Sequence[RunFolder]) -> list[RunFacts]:
    if len(folders) < WORTHWHILE:
        return [read_facts(folder) for folder in folders]
    code = code_sha()
    index = _load(home / NAME, code)
    before, study = str(home), home.name
    found, stamps, fresh = [], {}, 0
    for folder in folders:
        name = folder.path.name
        stamp = _stamp(f"{before}/{name}")
        facts = index.get(stamp, folder, study)
        if facts is None:
            facts = index.layered(read_facts(folder))
            fresh += facts.state == DONE
        found.append(facts)
        stamps[name] = stamp
    if fresh > OUTDATED * len(folders):
        _save(home / NAME, code, found, stamps)
    return found


class _Index:
    """What an index file holds: common settings once, the others by column, entries by run."""

    def __init__(self, head: Mapping[str, Any], lines: Sequence[memoryview]) -> None:
        """`head`: the first line; `lines`: the others. Without them an empty index."""
        self.base: dict[str, object] = head.get("base", {})
        self.varied: list[str] = head.get("varied", [])
        end = 1 + len(self.varied)
        entries, *columns = map(orjson.loads, lines[:end]) if lines else [[]]
        settings = zip(*columns, strict=True) if columns else [()] * len(entries)
        self.runs = {entry[0]: (entry, values) for entry, values in zip(entries, settings, strict=True)}
        self.blocks: list[Block] = []
        for keys in head.get("kinds", []):
            self.blocks.append(Block(keys, lines[end : end + len(keys) + 1]))
            end += len(keys) + 1

    def get(self, stamp: Stamp | None, folder: RunFolder, study: str) -> RunFacts | None:
        """The facts of a run whose files are those that were indexed."""
        name = folder.path.name
        known = self.runs.get(name)
        if known is None or stamp is None or known[0][1] != stamp:
            return None
        (_, _, attempt, reason, owner, kind, row, fingerprint, step), values = known
        slug, _, run_id = name.rpartition("-")
        return RunFacts(
            folder=folder,
            run_id=run_id,
            study=study,
            slug=slug,
            state=DONE,
            reason=reason,
            attempt=attempt,
            owner=None if owner is None else Owner(*owner),
            flat=Layered(self.base, dict(zip(self.varied, values, strict=True))),
            summary=Row(self.blocks[kind], row),
            fingerprint=fingerprint,
            step=step,
        )

    def layered(self, facts: RunFacts) -> RunFacts:
        """The facts with their settings told by the index's base, where they have its keys."""
        if not self.base or facts.flat.keys() != self.base.keys():
            return facts
        return replace(facts, flat=Layered.of(facts.flat, self.base))


def _load(path: Path, code: str) -> _Index:
    """The index, empty where there is none, where it is damaged, or was made by other code."""
    try:
        data = path.read_bytes()
        start = data.index(b"\n") + 1
        head, rest = orjson.loads(data[:start]), memoryview(data)[start:]
        if head["schema"] == SCHEMA and head["code"] == code and head["crc"] == zlib.crc32(rest):
            ends = [0, *itertools.accumulate(head["sizes"])]
            return _Index(head, [rest[a:b] for a, b in itertools.pairwise(ends)])  # not copied
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return _Index({}, ())


def _save(path: Path, code: str, runs: Iterable[RunFacts], stamps: Mapping[str, Stamp | None]) -> None:
    """Write the index of the runs that are done and have been for a while; not where it cannot be written."""
    kept = list(_settled(runs, stamps))
    base = dict(kept[0].flat) if kept else {}
    kept = [run for run in kept if run.flat.keys() == base.keys()]
    overs = [Layered.of(run.flat, base).over for run in kept]
    varied = sorted({key for over in overs for key in over})
    columns = [orjson.dumps(finite([over.get(key, base[key]) for over in overs])) for key in varied]
    kinds: dict[frozenset[str], int] = {}
    groups: list[list[RunFacts]] = []
    entries = []
    for run in kept:
        kind = kinds.setdefault(frozenset(run.summary), len(kinds))
        if kind == len(groups):
            groups.append([])
        entries.append(_entry(run, stamps[run.folder.path.name], kind, len(groups[kind])))
        groups[kind].append(run)
    blocks = [Block.lines_of([run.summary for run in group]) for group in groups]
    lines = [orjson.dumps(entries), *columns, *(line for _, lines in blocks for line in lines)]
    lines = [line + b"\n" for line in lines]
    rest = b"".join(lines)
    head = {
        "schema": SCHEMA, "code": code, "crc": zlib.crc32(rest), "sizes": [*map(len, lines)],
        "base": finite(base), "varied": varied, "kinds": [keys for keys, _ in blocks],
    }  # fmt: skip
    with contextlib.suppress(OSError, DiskFull):
        replace_file(path, orjson.dumps(head) + b"\n" + rest, sync=False)


def _entry(run: RunFacts, stamp: Stamp | None, kind: int, row: int) -> list[object]:
    owner = None if run.owner is None else list(vars(run.owner).values())
    name = run.folder.path.name
    return [name, stamp, run.attempt, run.reason, owner, kind, row, run.fingerprint, run.step]


def _settled(runs: Iterable[RunFacts], stamps: Mapping[str, Stamp | None]) -> Iterator[RunFacts]:
    """Done runs with whole settings whose files have not just been changed."""
    latest = time.time_ns() - SETTLED_NS
    for run in runs:
        stamp = stamps[run.folder.path.name]
        if run.state == DONE and run.flat and stamp is not None and max(stamp[::2]) <= latest:
            yield run


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
