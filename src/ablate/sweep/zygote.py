"""The launcher's hold on its zygote, and on the processes that were forked from it."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import IO, Any

from ablate.sweep.faults import last_lines
from ablate.sweep.wire import receive, send

CLOSE_S = 150.0  # more than the zygote allows its children
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Zygote:
    """`python -m ablate.worker.zygote`, out of the terminal's process group: Ctrl-C reaches the launcher
    alone. It ends, and its children with it, when the launcher does.
    """

    def __init__(self) -> None:
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  read back after the zygote's end
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            # No library may start a thread of its own in there; a run sets its number of threads itself.
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ablate.worker.zygote", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=self.errors,
                stderr=self.errors,
                pass_fds=[theirs.fileno()],
                env={**os.environ, **ONE_THREAD},
                process_group=0,
            )
        ours.setblocking(False)
        self.sock = ours
        self.ready = self.stopping = False

    @property
    def serves(self) -> bool:
        """Does it take requests: begun, and not asked to stop by somebody?"""
        return self.ready and not self.stopping

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def start(self, path: str, env: dict[str, str], files: Sequence[int] = ()) -> bool:
        """Ask for a run; False if the zygote cannot hear it."""
        try:
            send(self.sock, {"run": path, "env": env}, files)
        except OSError:
            return False
        return True

    def messages(self) -> Iterator[dict[str, Any]]:
        """What has arrived."""
        while True:
            try:
                message, _ = receive(self.sock)
            except (BlockingIOError, ConnectionError):
                return
            if message is None:
                return
            self.ready = self.ready or "ready" in message
            yield message

    def printed(self) -> str:
        """The end of what the zygote, or a child before it had a log, wrote."""
        self.errors.seek(0)
        return last_lines(self.errors.read().decode(errors="replace"))

    def close(self, patience: float = CLOSE_S) -> None:
        """Let it end its children and itself; past `patience` seconds it is killed."""
        self.sock.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(patience)
        if self.alive:
            self.process.kill()
            self.process.wait()
        self.errors.close()


class Process:
    """A forked run's process, by a handle that cannot come to mean another one."""

    def __init__(self, pid: int) -> None:
        """Raises ProcessLookupError if it is gone already."""
        self.pid = pid
        self.handle = os.pidfd_open(pid)

    @property
    def alive(self) -> bool:
        return not select.select([self.handle], [], [], 0)[0]

    def send(self, number: signal.Signals) -> None:
        """Send a signal; a process that is gone is no error."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, number)

    def ask_to_stop(self) -> None:
        """SIGTERM, noticed even if the process is halted."""
        self.send(signal.SIGTERM)
        self.send(signal.SIGCONT)

    def close(self) -> None:
        os.close(self.handle)


def wait_ended(processes: Sequence[Process], patience: float) -> bool:
    """Wait until all are gone; False if some are not after `patience` seconds."""
    deadline = time.monotonic() + patience
    while any(p.alive for p in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
