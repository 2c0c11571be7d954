"""Carry out frozen runs, one after another, in one worker process that imports torch once.

The run folders are the only word between launcher and worker: the launcher hands over their paths and
reads their status files. A worker that dies takes only the run it was on with it; a new one goes on.
"""

import contextlib
import itertools
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Protocol

from ablate.record import Claim, RunFolder, State, Status, read_status

POLL_S = 0.2  # between two looks at the run folders
GRACE_S = 120.0  # for a worker asked to stop: it finishes its step and writes a checkpoint
BATCH = 500  # folders on one worker's command line (the kernel bounds its length)
LOOKAHEAD = 16  # folders looked at behind the current one, should the worker have passed some over
TAIL_LINES = 15
ENDED = frozenset({State.done, State.failed, State.preempted})


@dataclass(frozen=True)
class Result:
    """What became of one run handed to the launcher.

    `reason`: the cause, for a run that is not done; `log`: the last lines that a failed one printed.
    """

    folder: RunFolder
    state: State
    reason: str | None = None
    log: str = ""


class Watch(Protocol):
    """Whoever follows a launch: called from the launcher's loop, must return quickly."""

    def tick(self, folder: RunFolder) -> None:
        """`folder` is the run at work now (called several times a second)."""

    def ended(self, result: Result) -> None:
        """A run has ended."""


class WorkerError(RuntimeError):
    """The worker process cannot start or dies outside any run: a fault of the machine or the installation."""


class Interrupted(Exception):  # noqa: N818
    """The launch was stopped from outside; `results` tells how far it got, `signal` by what."""

    def __init__(self, results: Sequence[Result], number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.results, self.number = tuple(results), number


class _Stop(BaseException):
    def __init__(self, number: int) -> None:
        self.number = number


def launch(folders: Sequence[RunFolder], watch: Watch, poll: float = POLL_S) -> tuple[Result, ...]:
    """Train every folder in turn; a failed run never stops the others.

    Raises WorkerError when a worker dies without having touched any run, Interrupted on SIGINT or SIGTERM
    (after the worker has stopped: its run is left preempted, with a checkpoint).
    """
    results: list[Result] = []
    waiting = list(folders)
    with _stoppable():
        while waiting:
            shift = _Shift(waiting[:BATCH], watch, results)
            try:
                shift.work(poll)
            except _Stop as stop:
                shift.stop(poll)
                raise Interrupted(results, stop.number) from None
            waiting = shift.left() + waiting[BATCH:]
    return tuple(results)


class _Shift:
    """One worker process and the folders on its command line."""

    def __init__(self, folders: Sequence[RunFolder], watch: Watch, results: list[Result]) -> None:
        self.folders, self.watch, self.results = list(folders), watch, results
        self.before = [_stamp(read_status(folder)) for folder in self.folders]
        self.at = 0  # everything before this place has ended or was passed over
        self.passed: list[RunFolder] = []
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  read back after the worker's end
        self.process = start_worker(self.folders, self.errors)

    def work(self, poll: float) -> None:
        while self.process.poll() is None:
            self._advance()
            time.sleep(poll)
        self._settle()

    def stop(self, poll: float) -> None:
        """Ask the worker to stop and wait; a second signal, or a worker that lingers, ends it at once."""
        deadline = time.monotonic() + GRACE_S
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(_Stop):
            while self.process.poll() is None and time.monotonic() < deadline:
                time.sleep(poll)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._advance()

    def left(self) -> list[RunFolder]:
        """Folders this worker never came to; it is an error if those are all it was given."""
        if self.passed and len(self.passed) == len(self.folders):
            how = ending(self.process.returncode)
            raise WorkerError(f"the worker {how} before any run began\n{last_lines(self._stderr())}")
        return self.passed

    def _advance(self, ahead: int = LOOKAHEAD) -> None:
        """Move on past the runs that ended; report them and the one at work."""
        while self.at < len(self.folders):
            place, status = self._touched(ahead)
            if status is None:
                return
            self.passed += self.folders[self.at : place]
            self.at = place
            if status.state not in ENDED:
                if status.state is State.running:
                    self.watch.tick(self.folders[place])
                return
            self._ended(self.folders[place], status)
            self.at += 1

    def _touched(self, ahead: int) -> tuple[int, Status | None]:
        """The first folder from `at` on that this worker has taken up, and its status."""
        for place in range(self.at, min(self.at + ahead, len(self.folders))):
            status = read_status(self.folders[place])
            mine = status.owner is not None and status.owner.pid == self.process.pid
            if _stamp(status) != self.before[place] and (mine or status.state in ENDED):
                return place, status
        return self.at, None

    def _settle(self) -> None:
        """After the worker's end: the run it died on has failed; those it refused are reported too."""
        self._advance(len(self.folders))
        code = self.process.returncode
        if self.at < len(self.folders):
            folder = self.folders[self.at]
            owner = read_status(folder).owner
            if owner is not None and owner.pid == self.process.pid:
                Claim.take(folder).finish(State.failed, f"the worker {ending(code)}")
                self._ended(folder, read_status(folder))
                self.at += 1
        rest = self.passed + self.folders[self.at :]
        self.passed, self.at = [f for f in rest if not self._refused(f)], len(self.folders)

    def _ended(self, folder: RunFolder, status: Status) -> None:
        log = log_tail(folder) if status.state is State.failed else ""
        self._report(Result(folder, status.state, status.reason, log))

    def _refused(self, folder: RunFolder) -> bool:
        """Did the worker leave this run alone: done by somebody else meanwhile, or refused, as it printed?"""
        state, reason = read_status(folder).state, refusal(folder, self._stderr())
        if state is not State.done and reason is None:
            return False
        self._report(Result(folder, state, None if state is State.done else reason))
        return True

    def _report(self, result: Result) -> None:
        self.results.append(result)
        self.watch.ended(result)

    def _stderr(self) -> str:
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")


def start_worker(folders: Sequence[RunFolder], errors: IO[bytes]) -> "subprocess.Popen[bytes]":
    """`python -m ablate.worker` on these folders, out of the terminal's process group: Ctrl-C reaches the
    launcher alone, which then asks the worker to stop. The worker ends when the launcher does.
    """
    command = [sys.executable, "-m", "ablate.worker", "--follow-parent", *(str(f.path) for f in folders)]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, process_group=0)


def ending(code: int) -> str:
    """How a process ended, from its return code: `was killed by SIGKILL`, `exited with code 3`."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was killed by {name}"


def refusal(folder: RunFolder, printed: str) -> str | None:
    """Why the worker refused a run: the line it printed about it, and the indented ones below."""
    start = f"{folder.path}: "
    lines = printed.splitlines()
    for place, line in enumerate(lines):
        if line.startswith(start):
            more = itertools.takewhile(lambda text: text.startswith(" "), lines[place + 1 :])
            return "\n".join([line.removeprefix(start), *more])
    return None


def last_lines(text: str, count: int = TAIL_LINES) -> str:
    """The end of a log."""
    return "\n".join(text.rstrip().splitlines()[-count:])


def log_tail(folder: RunFolder) -> str:
    """The end of a run's stdout.log; empty when there is none."""
    try:
        with folder.stdout.open("rb") as log:
            log.seek(max(0, log.seek(0, 2) - 16_384))
            return last_lines(log.read().decode(errors="replace"))
    except FileNotFoundError:
        return ""


def _stamp(status: Status) -> tuple[State, int, float]:
    return status.state, status.attempt, status.updated


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    """SIGINT and SIGTERM raise _Stop while the launcher works."""

    def stop(number: int, _frame: object) -> None:
        raise _Stop(number)

    old = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
