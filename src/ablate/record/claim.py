"""Who may train a run: one process at a time, and the newest claim wins.

A claim is the file `claim.<attempt>`, created exclusively. An attempt ends by its terminal status, by its
process being gone (seen at once on the same machine), or by a heartbeat that has been silent for STALE_S.
Whoever claims next gets the next number; the holder of a lower one is superseded, and finds out before it
writes again.
"""

import contextlib
import os
import re
import threading
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

import orjson

from ablate.config import UserError
from ablate.record.disk import clock_beside, write_all, write_json
from ablate.record.errors import Claimed, Finished, Superseded
from ablate.record.folder import RunFolder
from ablate.record.process import Owner, Presence, end_process, is_stopped, presence, this_process
from ablate.record.state import ENDED, State, Status, recorded_status, status_json

BEAT_S = 5.0  # between two touches of the heartbeat
STALE_S = 60.0  # silence after which a process on another machine counts as dead
PATIENCE_S = 1.0  # for a claim that is created and not yet written
POLL_S = 0.02
_CLAIM = re.compile(r"claim\.([1-9][0-9]*)")


@dataclass(frozen=True)
class Claim:
    """The right to write a run folder, held by this process as long as no higher claim exists."""

    folder: RunFolder
    attempt: int
    owner: Owner
    code_sha: str | None = None

    @classmethod
    def take(cls, folder: RunFolder, unless_done: bool = False) -> "Claim":
        """Claim a run for this process and set it `running`.

        Raises Claimed, naming the owner, if a live process holds it; with `unless_done` Finished, if an
        attempt (that may have ended this moment) has done it; DiskFull. A process on this machine that
        lives but has stopped beating is killed first (after one more beat's time, unless it is halted).
        """
        owner = this_process()
        while True:
            before = _newest(folder)
            if unless_done and before.state is State.done:
                raise Finished(f"{folder.path} is done")
            if before.attempt:
                _displace(folder, before)
            attempt = before.attempt + 1
            if _create(folder.claim(attempt), owner):
                break
        claim = cls(folder, attempt, owner, before.code_sha)
        try:
            claim._write(State.running, None)
        except BaseException:
            folder.claim(attempt).unlink()
            raise
        return claim

    def check(self) -> None:
        """Raise Superseded if a newer attempt has taken the run over (one stat call)."""
        if os.path.exists(self._next):
            raise Superseded(
                f"{self.folder.path}: attempt {self.attempt} was superseded by a newer one",
                hint="nothing is lost: the newer attempt goes on with the run",
            )

    def finish(self, state: State, reason: str | None = None) -> None:
        """Write the attempt's end: done, failed or preempted. Raises Superseded or DiskFull."""
        assert state in ENDED, state
        self.check()
        self._write(state, reason)

    @property
    def _next(self) -> str:
        return os.path.join(self.folder.path, f"claim.{self.attempt + 1}")

    def _write(self, state: State, reason: str | None) -> None:
        status = Status(state, self.attempt, self.owner, reason, time.time(), self.code_sha)
        write_json(self.folder.status, status_json(status))


def read_status(folder: RunFolder, now: float | None = None) -> Status:
    """Where a run stands, with `killed` inferred; never raises for missing or damaged files.

    `now` is the time by the clock of the folder's file system (None: asked by creating a file in it; in a
    folder that cannot be written the host's clock is used, and the reason of a `killed` says so).
    """
    status = _newest(folder)
    if status.state is not State.running:
        return status
    status = replace(status, owner=status.owner or _read_owner(folder, status.attempt))
    dead = _cause_of_death(folder, status, now)
    return status if dead is None else replace(status, state=State.killed, reason=dead)


def has_ended(folder: RunFolder) -> bool:
    """Has the newest attempt written its end? False, too, where that cannot be read."""
    try:
        return _newest(folder).state in ENDED
    except OSError:
        return False


class Heartbeat:
    """Touches the heartbeat file in the background while the block runs, until a newer attempt begins."""

    def __init__(self, folder: RunFolder, every: float = BEAT_S) -> None:
        self._path, self._every = folder.heartbeat, every
        self._next = folder.claim(_newest(folder).attempt + 1)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._path.touch()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._end.wait(self._every):
            if self._next.exists():
                return
            # A beat that fails (a network drive away for a moment) must not end the run: the next one may
            # work, and if none does, readers see the silence.
            with contextlib.suppress(OSError):
                self._path.touch()


def _newest(folder: RunFolder) -> Status:
    """The newest attempt as its files have it; `running` if it has not written its end."""
    recorded = recorded_status(folder)
    if recorded is None:
        queued = Status(State.queued, 0, None, None, 0.0)
        attempt = _highest_listed(folder)
        return replace(queued, state=State.running, attempt=attempt) if attempt else queued
    attempt = recorded.attempt
    while folder.claim(attempt + 1).exists():
        attempt += 1
    if attempt == recorded.attempt:
        return recorded
    # Claimed since, but its status was never written, or overwritten by the one that it superseded.
    return replace(recorded, state=State.running, attempt=attempt, owner=None, reason=None)


def _highest_listed(folder: RunFolder) -> int:
    try:
        names = os.listdir(folder.path)
    except (FileNotFoundError, NotADirectoryError):
        return 0
    return max((int(m[1]) for m in map(_CLAIM.fullmatch, names) if m), default=0)


def _displace(folder: RunFolder, status: Status) -> None:
    """Make sure that the newest attempt is over. Raises Claimed if it is not."""
    if status.state is not State.running:
        return
    owner = status.owner or _owner(folder, status.attempt)
    status = replace(status, owner=owner)
    if _cause_of_death(folder, status, None) is None:
        raise _claimed(folder, owner)
    if owner is None or owner.pid == os.getpid() or presence(owner) is not Presence.here:
        return
    # A machine that was suspended wakes with a stale heartbeat and a healthy process: it gets one beat.
    deadline = time.monotonic() + BEAT_S + 1.0
    while time.monotonic() < deadline and presence(owner) is Presence.here and not is_stopped(owner):
        if _cause_of_death(folder, status, None) is None:
            raise _claimed(folder, owner)
        time.sleep(0.2)
    if not end_process(owner):
        raise _claimed(folder, owner)


def _cause_of_death(folder: RunFolder, status: Status, now: float | None) -> str | None:
    """Why the process of a running attempt counts as dead; None if it lives."""
    owner = status.owner
    if owner is not None and presence(owner) is Presence.gone:
        return f"process {owner.pid} on {owner.host} is gone"
    last = _last_beat(folder, status.attempt)
    if last is None:
        return "neither claim nor heartbeat is there"
    known = True
    if now is None:
        now, known = clock_beside(folder.path)
    if now - last <= STALE_S:
        return None
    clock = "" if known else " (by this host's clock: the folder is read-only)"
    return f"no heartbeat for {now - last:.0f} s{clock}"


def _last_beat(folder: RunFolder, attempt: int) -> float | None:
    times = []
    for path in (folder.claim(attempt), folder.heartbeat):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            times.append(path.stat().st_mtime)
    return max(times, default=None)


def _create(path: Path, owner: Owner) -> bool:
    """Create a claim file exclusively; False if somebody else did."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return False
    except FileNotFoundError:
        raise UserError(f"no run folder {path.parent}") from None
    try:
        write_all(fd, orjson.dumps(asdict(owner), option=orjson.OPT_APPEND_NEWLINE), path, 0)
    except BaseException:
        path.unlink()
        raise
    finally:
        os.close(fd)
    return True


def _owner(folder: RunFolder, attempt: int) -> Owner | None:
    """The owner of a claim, waiting a moment for one that is just being written."""
    deadline = time.monotonic() + PATIENCE_S
    while (owner := _read_owner(folder, attempt)) is None and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return owner


def _read_owner(folder: RunFolder, attempt: int) -> Owner | None:
    try:
        return Owner.from_json(orjson.loads(folder.claim(attempt).read_bytes()))
    except (FileNotFoundError, orjson.JSONDecodeError):
        return None


def _claimed(folder: RunFolder, owner: Owner | None) -> Claimed:
    if owner is None:
        return Claimed(f"{folder.path} has just been claimed by another process")
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(owner.since))
    job = f" (job {owner.job})" if owner.job else ""
    return Claimed(
        f"{folder.path} is being trained by process {owner.pid} on {owner.host}{job} since {since}",
        hint="wait for it, or end that process first",
    )
