"""SHA-256 digests of files, remembered in the cache folder by path, size and times."""

import contextlib
import hashlib
import json
import os
import secrets
import time
from collections.abc import Sequence
from pathlib import Path

from ablate.config import UserError

Stamp = tuple[int, int, int]  # size, mtime_ns, ctime_ns

# A file written this shortly ago could be written again without a new time stamp.
SETTLED_NS = 2_000_000_000


def stamp(path: Path) -> Stamp:
    """Size, modification and change time: what tells that a file was rewritten."""
    try:
        found = path.stat()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def digest_files(paths: Sequence[Path], cache: Path) -> list[str]:
    """The SHA-256 of each file, in the order given; unchanged files are not read again.

    Processes may do this at the same time: an update that is lost costs only the time to hash again.
    Raises UserError for a file that cannot be read.
    """
    store = cache / "digests.json"
    known = _load(store)
    fresh: dict[str, tuple[Stamp, str]] = {}
    digests = []
    for path in paths:
        key, now = str(path.absolute()), stamp(path)
        entry = known.get(key)
        if entry is None or entry[0] != now:
            entry = (now, _digest(path))
            if max(now[1:]) < time.time_ns() - SETTLED_NS:
                fresh[key] = entry
        digests.append(entry[1])
    if fresh:
        # Where the cache cannot be written, the price is to hash again next time.
        with contextlib.suppress(OSError):
            _save(store, {**_load(store), **fresh})
    return digests


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that readers see whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        draft.write_bytes(content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error


def _load(store: Path) -> dict[str, tuple[Stamp, str]]:
    try:
        raw = json.loads(store.read_bytes())
        return {key: ((int(s), int(m), int(c)), str(digest)) for key, (s, m, c, digest) in raw.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}  # absent or damaged: as if nothing were known yet


def _save(store: Path, entries: dict[str, tuple[Stamp, str]]) -> None:
    living = {key: [*times, digest] for key, (times, digest) in entries.items() if os.path.exists(key)}
    write_atomically(store, json.dumps(living).encode())
