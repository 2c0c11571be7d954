"""The process that has loaded torch and forks one clean child for each run.

    python -m ablate.worker.zygote SOCKET        started by the launcher, which owns the other end

It runs no operation and never touches CUDA, so a child begins as a fresh process would, without the seconds
of importing. A fork copies only the calling thread: there must be no other (OpenMP starts its own with the
first operation). The protocol stands in `ablate.sweep.wire`.
"""

import contextlib
import faulthandler
import gc
import importlib
import io
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from ablate.sweep.wire import REASON_CHARACTERS, ExitCode, receive, send
from ablate.worker.process import follow_parent, wait_passively

GRACE_S = 120.0  # for runs asked to stop because the launcher is gone: they finish a step, write a checkpoint

# What a run imports sooner or later: the optimizer's constructor the second, for a second of CPU time.
NEEDED = ("ablate.worker.run", "torch._dynamo", "safetensors.torch", "numpy.ctypeslib", "numpy.ma")


def main(argv: Sequence[str]) -> int:
    """Serve until the launcher closes its end or SIGTERM comes; no child outlives this call."""
    follow_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sock = socket.socket(fileno=int(argv[0]))
    sock.set_inheritable(False)
    surroundings = _prepare()
    Zygote(sock, surroundings).serve()
    return 0


def _prepare() -> Mapping[str, Any]:
    """Load what runs need, and find out what is the same for all of them."""
    from ablate.record import environment

    # Before the imports, as the launcher took it: an edit made from here on is told by its sha.
    surroundings = environment()
    wait_passively()
    for name in NEEDED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # collections in the children leave these pages shared
    return surroundings


class Zygote:
    """Forks, reaps and reports."""

    def __init__(self, sock: socket.socket, surroundings: Mapping[str, Any]) -> None:
        self.sock, self.surroundings = sock, surroundings
        self.children: set[int] = set()
        self.stopping = False
        self.wake_in, self.wake_out = os.pipe()
        for end in (self.wake_in, self.wake_out):
            os.set_blocking(end, False)

    def serve(self) -> None:
        signal.set_wakeup_fd(self.wake_out, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._stop)
        self._say({"ready": os.getpid()})
        while not self.stopping:
            ready, _, _ = select.select([self.sock.fileno(), self.wake_in], [], [])
            self._reap()
            if self.sock.fileno() in ready and not self.stopping:
                self._request()
        self._end_children()

    def _stop(self, *_: object) -> None:
        self.stopping = True

    def _request(self) -> None:
        try:
            message, files = receive(self.sock)
        except ConnectionError:
            message, files = None, []
        if message is None:
            self.stopping = True
            return
        try:
            self._fork(message["run"], message["env"])
        finally:
            for descriptor in files:  # the child holds the lease from here on
                os.close(descriptor)

    def _fork(self, path: str, env: Mapping[str, str]) -> None:
        _assert_single_thread()
        sys.stdout.flush()
        sys.stderr.flush()
        # No signal may reach the child while it still has the zygote's handlers.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
        try:
            parent = os.getpid()
            try:
                pid = os.fork()
            except OSError as error:
                self._say({"unstarted": path, "reason": f"no process can be started: {error.strerror}"})
                return
            if pid == 0:
                self._child(parent, path, env)
            self.children.add(pid)
            self._say({"started": path, "pid": pid})
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT})

    def _child(self, parent: int, path: str, env: Mapping[str, str]) -> NoReturn:
        code = int(ExitCode.failed)
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            os.close(self.wake_in)
            os.close(self.wake_out)
            follow_parent(parent)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT})
            os.environ.update(env)
            sys.argv = [sys.argv[0], path]
            code = _carry_out(self.sock, Path(path), self.surroundings)
        except SystemExit as end:
            print(end, file=sys.stderr)
        except BaseException:  # noqa: BLE001  whatever it is, the child must not become a second zygote
            import traceback

            traceback.print_exc()
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)  # without the interpreter's slow way out: everything is on disk

    def _reap(self) -> None:
        """Report the children that ended; what they left running in their process group ends with them."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.wake_in, 4096)
        for pid in list(self.children):
            # Still a zombie here, so that the number of its group cannot be anybody else's.
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                continue
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            self.children.discard(pid)
            self._say({"ended": pid, "code": os.waitstatus_to_exitcode(status)})

    def _end_children(self) -> None:
        self._say({"stopping": os.getpid()})
        deadline = time.monotonic() + GRACE_S
        for pid in self.children:
            os.kill(pid, signal.SIGTERM)
            os.kill(pid, signal.SIGCONT)  # a halted one would not notice
        while self.children:
            select.select([self.wake_in], [], [], 0.2)
            self._reap()
            if time.monotonic() > deadline:
                for pid in self.children:
                    os.kill(pid, signal.SIGKILL)

    def _say(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # nobody listens: the children are still to be ended
            send(self.sock, message)


def _carry_out(sock: socket.socket, folder: Path, surroundings: Mapping[str, Any]) -> int:
    from ablate.record import RunFolder
    from ablate.train import Interrupts
    from ablate.worker.run import carry_out

    faulthandler.enable()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # the log is read while the run goes on

    def refuse(reason: str) -> None:
        with contextlib.suppress(OSError):
            send(sock, {"refused": os.getpid(), "reason": reason[:REASON_CHARACTERS]})

    with Interrupts() as interrupts:
        end = carry_out(RunFolder(folder), interrupts, surroundings, refuse)
    return int(ExitCode[end.name])


def _assert_single_thread() -> None:
    assert threading.active_count() == 1, threading.enumerate()
    tasks = os.listdir("/proc/self/task")
    assert len(tasks) == 1, f"{len(tasks)} threads: a fork would lose all but one"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
