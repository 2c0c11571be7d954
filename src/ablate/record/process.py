"""Who a process is, beyond its pid: enough to tell it from a later process with the same number."""

import os
import signal
import socket
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

PROC = Path("/proc")


@dataclass(frozen=True)
class Owner:
    """A process that claimed a run.

    `start` is the process's start time in clock ticks since boot; with `boot` (the kernel's boot id) and
    `namespace` (of pids: containers number their own) it names one process for good. They are None where
    the system does not tell. `since` is the time of the claim in seconds since 1970, `job` the scheduler's.
    """

    host: str
    pid: int
    start: int | None
    boot: str | None
    namespace: str | None
    since: float
    job: str | None = None

    @classmethod
    def from_json(cls, raw: Any) -> "Owner | None":
        """The owner in a claim or status file; None if the file does not hold a whole one."""
        try:
            return cls(**raw)
        except TypeError:
            return None


class Presence(StrEnum):
    """What this machine can say about a process."""

    here = "here"  # running or stopped on this machine
    gone = "gone"  # it was on this machine, in this boot, and has ended
    unknown = "unknown"  # on another machine, or in another container


def this_process() -> Owner:
    """The owner that this process is."""
    pid = os.getpid()
    found = _stat(pid)
    return Owner(
        host=socket.gethostname(),
        pid=pid,
        start=None if found is None else found[1],
        boot=boot_id(),
        namespace=_namespace(),
        since=time.time(),
        job=os.environ.get("SLURM_JOB_ID"),
    )


def presence(owner: Owner) -> Presence:
    """Is the process still there? Only answered where the system can tell it from a later one."""
    if owner.start is None or owner.host != socket.gethostname():
        return Presence.unknown
    boot = boot_id()
    if boot != owner.boot:
        # The same host was started again since, unless it is another machine of the same name: the
        # heartbeat decides.
        return Presence.unknown
    if owner.namespace != _namespace():
        return Presence.unknown
    found = _stat(owner.pid)
    if found is None or found[1] != owner.start or found[0] in "ZXx":
        return Presence.gone
    return Presence.here


def is_stopped(owner: Owner) -> bool:
    """Is the process halted by SIGSTOP or a debugger?"""
    found = _stat(owner.pid)
    return found is not None and found[1] == owner.start and found[0] in "Tt"


def end_process(owner: Owner, patience: float = 10.0) -> bool:
    """Kill a process that is `here` and wait for its end; False if it is not ours to kill or lingers."""
    deadline = time.monotonic() + patience
    if presence(owner) is not Presence.here:
        return True
    try:
        os.kill(owner.pid, signal.SIGKILL)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    while presence(owner) is Presence.here:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def boot_id() -> str | None:
    """The kernel's name for the time since this machine was started; None where it has none."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


def _namespace() -> str | None:
    try:
        return os.readlink(PROC / "self/ns/pid")
    except OSError:
        return None


def _stat(pid: int) -> tuple[str, int] | None:
    """State letter and start time of a process, from /proc/<pid>/stat; None if there is no such process."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()  # the name before it may hold spaces and brackets
    return fields[0], int(fields[19])
