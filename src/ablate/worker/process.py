"""What a worker does to its own process: its output goes to the run's log, and it ends with its parent."""

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PR_SET_PDEATHSIG = 1  # <sys/prctl.h>


def wait_passively() -> None:
    """Let OpenMP threads sleep while they wait, unless the environment says otherwise.

    Call it before torch is loaded. Threads that spin take the cores from one another as soon as there are
    more threads than free cores.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def follow_parent(parent: int | None = None) -> None:
    """Receive SIGTERM when the parent process dies, however it dies. Linux only: SystemExit elsewhere.

    `parent`: the process that should be the parent (None: the present one); SystemExit if it is gone.
    """
    parent = os.getppid() if parent is None else parent
    if sys.platform != "linux":
        raise SystemExit("following the parent process works on Linux only")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        raise SystemExit("the parent process is gone already")


@contextmanager
def output_to(log: Path) -> Iterator[None]:
    """Send stdout and stderr, those of C libraries included, to the end of `log` inside the block."""
    _flush()
    saved = os.dup(1), os.dup(2)
    opened = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.dup2(opened, 1)
        os.dup2(opened, 2)
        yield
    finally:
        _flush()
        os.dup2(saved[0], 1)
        os.dup2(saved[1], 2)
        for descriptor in (opened, *saved):
            os.close(descriptor)


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
