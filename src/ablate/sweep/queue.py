"""The runs that wait for a slot, and what every kind of ending leads to."""

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from ablate.config import OnFailure, UserError
from ablate.record import RunFolder, State, read_status
from ablate.sweep.faults import MACHINE, ending, log_tail, settle
from ablate.sweep.task import Result, Task, Terms, Watch
from ablate.sweep.wire import ExitCode
from ablate.sweep.zygote import Process

SILENCE_S = 60.0  # without a heartbeat a run's process counts as hung, without an answer the zygote
BACKOFF_S = 2.0  # before the first new try; doubled for each further one
LOOK_S = 1.0  # between two looks at runs that other processes train, or at taken GPUs


class Why(Enum):
    """Why a run was asked to stop, or killed."""

    stop = "stop"  # the whole launch stops
    timeout = "timeout"
    silence = "silence"
    zygote = "zygote"  # its zygote died


@dataclass
class Waiting:
    """A run to begin. `faults`: times its process was killed; `after`: monotonic time of the next try."""

    task: Task
    faults: int = 0
    after: float = 0.0

    @property
    def folder(self) -> RunFolder:
        return self.task.folder


@dataclass
class AtWork:
    """A run in a slot. `pid` is None until the zygote has answered, `process` also if it was gone by then."""

    waiting: Waiting
    since: float
    pid: int | None = None
    process: Process | None = None
    why: Why | None = None
    deadline: float | None = None  # to be killed then
    orphan: bool = False  # its zygote is gone: its end is seen by its handle alone
    beat: tuple[float, float] = (0.0, 0.0)  # heartbeat's time stamp, and when that was first seen

    @property
    def folder(self) -> RunFolder:
        return self.waiting.folder


class Queue:
    """Runs to begin, runs in other hands, and results. Once it is `closed` no run is begun or waited for.

    `stop` is called after a failure with `on_failure: stop`.
    """

    def __init__(self, tasks: Sequence[Task], watch: Watch, terms: Terms, stop: Callable[[], None]) -> None:
        self.watch, self.terms, self.stop = watch, terms, stop
        self.results: list[Result] = []
        self.waiting = [Waiting(task) for task in tasks]
        self.elsewhere: list[Waiting] = []
        self.closed = False
        self.next_look = 0.0

    @property
    def pending(self) -> bool:
        """Is there a run to begin or to wait for?"""
        return not self.closed and bool(self.waiting or self.elsewhere)

    def next(self) -> Waiting | None:
        """The first run whose time has come and that nobody else is at."""
        now = time.monotonic()
        for waiting in [w for w in self.waiting if w.after <= now]:
            state = read_status(waiting.folder).state
            if state not in (State.done, State.running):
                return waiting
            self.waiting.remove(waiting)
            if state is State.done:
                self._report(Result(waiting.folder, state))
            else:
                self._leave(waiting)
        return None

    def ended(self, at: AtWork, code: int | None, refusal: str | None) -> None:
        """A run's process is gone; `code` is None where the zygote could not tell it any more.

        `refusal`: why it did not take the run up, if it said so.
        """
        status = read_status(at.folder)
        mine = status.owner is not None and status.owner.pid == at.pid
        if status.state is State.done:
            self._report(Result(at.folder, status.state))
        elif status.state is State.running and not mine:
            self._leave(at.waiting, "taken over by")
        elif code == ExitCode.elsewhere:
            self._leave(at.waiting)
        elif code == ExitCode.refused:
            self._report(Result(at.folder, status.state, refusal))
        elif mine and status.state is State.failed:
            self._report(Result(at.folder, State.failed, status.reason, log_tail(at.folder)))
        else:
            self._cut_short(at, code, mine and status.state is State.preempted)

    def fault(self, waiting: Waiting, cause: str) -> None:
        """The machine's doing: try again after a while, `retries` times."""
        waiting.faults += 1
        if waiting.faults > self.terms.retries:
            tries = f", {waiting.faults} times" if waiting.faults > 1 else ""
            self._fail(waiting, cause + tries)
            return
        pause = BACKOFF_S * 2 ** (waiting.faults - 1)
        waiting.after = time.monotonic() + pause
        self.waiting.insert(0, waiting)
        self.watch.note(f"{waiting.folder.name}: {cause}; trying again in {pause:g} s")

    def look_elsewhere(self) -> None:
        """Runs that other processes train: done, failed, or given up and now ours."""
        if self.closed or time.monotonic() < self.next_look:
            return
        self.next_look = time.monotonic() + LOOK_S
        for waiting in list(self.elsewhere):
            status = read_status(waiting.folder)
            if status.state is State.running:
                continue
            self.elsewhere.remove(waiting)
            if status.state is State.done:
                self._report(Result(waiting.folder, State.done))
            elif status.state is State.failed:
                self._report(Result(waiting.folder, State.failed, status.reason, log_tail(waiting.folder)))
            else:
                self.waiting.append(waiting)

    def _cut_short(self, at: AtWork, code: int | None, preempted: bool) -> None:
        """A run that neither came to its end nor failed by itself."""
        match at.why:
            case Why.stop:
                state = read_status(at.folder).state
                if state is not State.queued:
                    self._report(Result(at.folder, state))
            case Why.timeout:
                seconds = at.waiting.task.timeout
                self._fail(at.waiting, f"timed out after {seconds:g} s (run.timeout)")
            case Why.zygote:
                self.waiting.insert(0, at.waiting)
            case Why.silence:
                self.fault(at.waiting, f"gave no sign of life for {SILENCE_S:.0f} s and was killed")
            case None if preempted or code == -signal.SIGTERM:
                self._report(Result(at.folder, State.preempted, "stopped by a signal from outside the sweep"))
            case None:
                cause = f"the run's process {ending(code or 0)}"
                if code is not None and -code in MACHINE:
                    self.fault(at.waiting, cause + (" (out of memory?)" if code == -signal.SIGKILL else ""))
                else:
                    self._fail(at.waiting, cause)

    def _fail(self, waiting: Waiting, cause: str) -> None:
        try:
            state = settle(waiting.folder, cause)
        except (UserError, OSError) as error:
            state, cause = State.failed, f"{cause}; its status could not be written: {error}"
        if state is None:
            self._leave(waiting)
        elif state is State.done:
            self._report(Result(waiting.folder, state))
        else:
            self._report(Result(waiting.folder, state, cause, log_tail(waiting.folder)))

    def _leave(self, waiting: Waiting, how: str = "being trained by") -> None:
        """Leave a run to the process that has it."""
        owner = read_status(waiting.folder).owner
        who = "another process" if owner is None else f"process {owner.pid} on {owner.host}"
        if self.closed or not self.terms.wait:
            self._report(Result(waiting.folder, State.running, f"{how} {who}"))
            return
        self.watch.note(f"{waiting.folder.name}: {how} {who}, left to it")
        self.elsewhere.append(waiting)

    def _report(self, result: Result) -> None:
        self.results.append(result)
        self.watch.ended(result)
        fault = result.state not in (State.done, State.preempted, State.running)
        if fault and self.terms.on_failure is OnFailure.stop and not self.closed:
            self.stop()
