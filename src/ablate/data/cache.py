"""Folders that are built once, whole, by one process: the token cache.

An entry is complete when it stands under its name and its meta.json agrees with the sizes of its files.
It is built in a sibling folder under a lock that the system releases when the builder dies.
"""

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ablate.config import UserError
from ablate.data.corpus import Announce

META = "meta.json"
Builder = Callable[[Path], Mapping[str, Any]]


def entry(folder: Path, build: Builder, announce: Announce) -> dict[str, Any]:
    """The facts of the entry `folder`, which is built first where it is absent or damaged.

    `build` fills the folder it is given and returns JSON facts. Of several processes one builds; the
    others wait and announce it. Raises UserError where the cache cannot be written (a full disk too):
    no part of an entry is left then.
    """
    try:
        facts = _read(folder)
        if facts is not None:
            return facts
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _exclusive(_lock(folder.parent, folder.name), announce):
            facts = _read(folder)
            if facts is None:
                _clean(folder.parent, folder.name)
                if folder.exists():
                    announce(f"the cache entry {folder} is damaged; building it again")
                facts = _build(folder, build)
            return facts
    except OSError as error:
        raise UserError(
            f"cannot use the cache in {folder.parent}: {error.strerror or error}",
            hint="free some space there, or name another folder: data.cache=… or $ABLATE_CACHE",
        ) from error


def _read(folder: Path) -> dict[str, Any] | None:
    """The facts of a complete entry, else None."""
    try:
        meta = json.loads((folder / META).read_bytes())
        sizes: dict[str, int] = meta["sizes"]
        whole = all((folder / name).stat().st_size == size for name, size in sizes.items())
        return dict(meta["facts"]) if whole else None
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _build(folder: Path, build: Builder) -> dict[str, Any]:
    draft = _draft(folder.parent, folder.name)
    try:
        draft.mkdir()
        facts = dict(build(draft))
        sizes = {path.name: path.stat().st_size for path in sorted(draft.iterdir())}
        (draft / META).write_text(json.dumps({"sizes": sizes, "facts": facts}, indent=1))
        for path in draft.iterdir():
            _sync(path)
        if folder.exists():
            shutil.rmtree(folder)
        draft.rename(folder)
        _sync(folder.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return facts


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _lock(parent: Path, name: str) -> Path:
    return parent / f"{name}.lock"


def _draft(parent: Path, name: str) -> Path:
    return parent / f"{name}.draft"


@contextlib.contextmanager
def _exclusive(lock: Path, announce: Announce) -> Iterator[None]:
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            announce("another process is preparing the same data; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _clean(parent: Path, mine: str) -> None:
    """Remove the drafts of dead builders: a draft whose lock is free, or held by this process."""
    for draft in parent.glob("*.draft"):
        name = draft.name.removesuffix(".draft")
        with contextlib.ExitStack() as stack:
            if name != mine:
                file = stack.enter_context(_lock(parent, name).open("a"))
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
            shutil.rmtree(draft)
