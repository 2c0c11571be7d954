"""The launcher's loop: slots, the queue, and what every kind of ending leads to."""

import os
import select
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from ablate.config import OnFailure, UserError
from ablate.record import RunFolder, State, read_status
from ablate.sweep import slots
from ablate.sweep.faults import MACHINE, ending, log_tail, settle
from ablate.sweep.task import Result, Task, Terms, Watch, WorkerError
from ablate.sweep.wire import ExitCode
from ablate.sweep.zygote import Process, Zygote, wait_ended

POLL_S = 0.2  # between two rounds, unless something happens earlier
GRACE_S = 120.0  # for a run asked to stop: it finishes its step and writes a checkpoint
TIMEOUT_GRACE_S = 20.0  # the same for one whose time is over
SILENCE_S = 60.0  # without a heartbeat a run's process counts as hung, without an answer the zygote
BACKOFF_S = 2.0  # before the first new try; doubled for each further one
LOOK_S = 1.0  # between two looks at runs that other processes train, or at taken GPUs
DEATHS = 5  # of zygotes in a row, without a run that ended in between


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
    """A run in a slot. `process` is None until the zygote has answered."""

    waiting: Waiting
    since: float
    process: Process | None = None
    why: Why | None = None
    deadline: float | None = None  # to be killed then
    refusal: str | None = None
    orphan: bool = False  # its zygote is gone: its end is seen by its handle alone
    beat: tuple[float, float] = (0.0, 0.0)  # heartbeat's time stamp, and when that was first seen

    @property
    def folder(self) -> RunFolder:
        return self.waiting.folder


class Pool:
    """Everything a launch is doing. `signals` grows while it works: the first one asks the runs to stop, the
    second one kills them.
    """

    def __init__(
        self, tasks: Sequence[Task], watch: Watch, terms: Terms, poll: float, signals: Sequence[int]
    ) -> None:
        self.watch, self.terms, self.poll, self.signals = watch, terms, poll, signals
        self.results: list[Result] = []
        self.waiting = [Waiting(task) for task in tasks]
        self.working: list[AtWork] = []
        self.elsewhere: list[Waiting] = []
        self.zygote: Zygote | None = None
        self.deaths = 0
        self.winding_down = self.killed = False
        self.next_look = 0.0
        self.told_of_gpus = False
        self.gpus = slots.gpus() if any(task.gpu for task in tasks) else ()
        threads = max((task.threads for task in tasks), default=1)
        jobs = terms.jobs or len(self.gpus) or slots.jobs_by_cores(threads)
        self.slots = min(jobs, len(self.gpus)) if self.gpus else jobs

    def work(self) -> None:
        """Until every run has ended, or the launch is stopped and those at work have ended."""
        try:
            while self.working or (not self.winding_down and (self.waiting or self.elsewhere)):
                self._heed_signals()
                self._tend_zygote()
                self._begin_runs()
                self._listen()
                self._watch_over()
                self._look_elsewhere()
                self.watch.tick([at.folder for at in self.working if at.process is not None])
        finally:
            self._close()

    def _heed_signals(self) -> None:
        if self.signals and not self.winding_down:
            self._wind_down()
        if len(self.signals) > 1 and not self.killed:
            self.killed = True
            for at in self.working:
                at.deadline = 0.0

    def _wind_down(self) -> None:
        self.winding_down = True
        for at in self.working:
            self._ask(at, Why.stop, GRACE_S)

    def _ask(self, at: AtWork, why: Why, grace: float) -> None:
        """Ask a run to stop, once; it is killed after `grace` seconds."""
        if at.why is None:
            at.why = why
            at.deadline = time.monotonic() + grace
            if at.process is not None:
                at.process.ask_to_stop()

    def _tend_zygote(self) -> None:
        """Start one where it is needed; notice that it died."""
        if self.zygote is None:
            if self.waiting and not self.winding_down:
                self.zygote = Zygote()
            return
        if self.zygote.alive:
            return
        self._hear()  # its last words
        code = self.zygote.process.returncode
        how, exited = ending(code), code >= 0 and not self.zygote.ready  # by itself, as when torch is broken
        printed = self.zygote.printed()
        self.zygote.close()
        self.zygote = None
        self.deaths += 1
        if exited or self.deaths > DEATHS:
            times = "" if exited else f", the {self.deaths}th in a row"
            raise WorkerError(f"the process that runs are forked from {how}{times}\n{printed}")
        self.watch.note(f"the process that runs are forked from {how}: {len(self.working)} at work resume")
        for at in list(self.working):
            at.orphan = True
            self._ask(at, Why.zygote, GRACE_S)  # the kernel has done so already
            if at.process is None:
                self._ended(at, None)

    def _begin_runs(self) -> None:
        while self.zygote is not None and self.zygote.serves and not self.winding_down:
            waiting = self._next() if len(self.working) < self.slots else None
            if waiting is None or not self._begin(waiting, self.zygote):
                return

    def _next(self) -> Waiting | None:
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

    def _begin(self, waiting: Waiting, zygote: Zygote) -> bool:
        env: dict[str, str] = {}
        files: list[int] = []
        if self.gpus and waiting.task.gpu:
            leased = slots.lease(self.gpus)
            if leased is None:
                waiting.after = time.monotonic() + LOOK_S
                if not self.told_of_gpus and not self.working:
                    self.told_of_gpus = True
                    self.watch.note("waiting for a GPU: other studies hold all of them")
                return False
            env[slots.VISIBLE] = leased[0]
            files.append(leased[1])
        sent = zygote.start(str(waiting.folder.path), env, files)
        for descriptor in files:
            os.close(descriptor)
        if sent:
            self.waiting.remove(waiting)
            self.working.append(AtWork(waiting, time.monotonic()))
        return sent

    def _listen(self) -> None:
        """Wait for news, at most one poll."""
        handles = [at.process.handle for at in self.working if at.orphan and at.process is not None]
        if self.zygote is not None:
            handles.append(self.zygote.sock.fileno())
        select.select(handles, [], [], self.poll)
        self._hear()
        for at in list(self.working):
            if at.orphan and at.process is not None and not at.process.alive:
                self._ended(at, None)

    def _hear(self) -> None:
        for message in self.zygote.messages() if self.zygote is not None else ():
            match message:
                case {"started": path, "pid": pid}:
                    self._started(path, pid)
                case {"unstarted": path, "reason": reason}:
                    for at in self._of(path):
                        self.working.remove(at)
                        self._fault(at.waiting, reason)
                case {"refused": pid, "reason": reason}:
                    for at in self._with(pid):
                        at.refusal = reason
                case {"ended": pid, "code": code}:
                    for at in self._with(pid):
                        self._ended(at, code)
                case {"stopping": _}:
                    self._zygote_stops()

    def _of(self, path: str) -> list[AtWork]:
        return [at for at in self.working if at.process is None and str(at.folder.path) == path]

    def _with(self, pid: int) -> list[AtWork]:
        return [at for at in self.working if at.process is not None and at.process.pid == pid]

    def _started(self, path: str, pid: int) -> None:
        for at in self._of(path):
            try:
                at.process = Process(pid)
            except ProcessLookupError:  # the zygote died, and nobody waits for the run any more
                self._ended(at, None)
                continue
            at.since = time.monotonic()
            if at.why is not None:
                at.process.ask_to_stop()

    def _zygote_stops(self) -> None:
        """Somebody asked the zygote to stop, and it asks its children: no more requests to this one."""
        assert self.zygote is not None
        self.zygote.stopping = True
        for at in self.working:
            self._ask(at, Why.zygote, GRACE_S)

    def _watch_over(self) -> None:
        """Timeouts, hung processes, and those that did not stop when asked."""
        now = time.monotonic()
        for at in self.working:
            if at.process is None or not at.process.alive:
                unanswered = now - max(at.since, at.beat[1]) > SILENCE_S
                if self.zygote is not None and not at.orphan and unanswered:
                    self.zygote.process.kill()
                if at.process is None:
                    continue
            timeout = at.waiting.task.timeout
            if timeout is not None and now - at.since > timeout:
                self._ask(at, Why.timeout, TIMEOUT_GRACE_S)
            if self._silent(at, now) and at.why is None:
                at.why, at.deadline = Why.silence, now
            if at.deadline is not None and now > at.deadline:
                at.process.send(signal.SIGKILL)

    def _silent(self, at: AtWork, now: float) -> bool:
        """Has the heartbeat stood still, by this process's clock (which a suspended machine stops)?"""
        try:
            stamp = at.folder.heartbeat.stat().st_mtime
        except OSError:
            stamp = 0.0
        if stamp != at.beat[0] or at.beat[1] < at.since:
            at.beat = stamp, now
        return now - at.beat[1] > SILENCE_S

    def _ended(self, at: AtWork, code: int | None) -> None:
        """A run's process is gone; `code` is None where the zygote could not tell it any more."""
        pid = None if at.process is None else at.process.pid
        self.working.remove(at)
        if at.process is not None:
            at.process.close()
        status = read_status(at.folder)
        mine = status.owner is not None and status.owner.pid == pid
        if status.state is State.done:
            self._report(Result(at.folder, status.state))
        elif status.state is State.running and not mine:
            self._leave(at.waiting, "taken over by")
        elif code == ExitCode.elsewhere:
            self._leave(at.waiting)
        elif code == ExitCode.refused:
            self._report(Result(at.folder, status.state, at.refusal))
        elif mine and status.state is State.failed:
            self._report(Result(at.folder, State.failed, status.reason, log_tail(at.folder)))
        else:
            self._cut_short(at, code, mine and status.state is State.preempted)

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
                self._fault(at.waiting, f"gave no sign of life for {SILENCE_S:.0f} s and was killed")
            case None if preempted or code == -signal.SIGTERM:
                self._report(Result(at.folder, State.preempted, "stopped by a signal from outside the sweep"))
            case None:
                cause = f"the run's process {ending(code or 0)}"
                if code is not None and -code in MACHINE:
                    self._fault(at.waiting, cause + (" (out of memory?)" if code == -signal.SIGKILL else ""))
                else:
                    self._fail(at.waiting, cause)

    def _fault(self, waiting: Waiting, cause: str) -> None:
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
        if self.winding_down or not self.terms.wait:
            self._report(Result(waiting.folder, State.running, f"{how} {who}"))
            return
        self.watch.note(f"{waiting.folder.name}: {how} {who}, left to it")
        self.elsewhere.append(waiting)

    def _look_elsewhere(self) -> None:
        """Runs that other processes train: done, failed, or given up and now ours."""
        if self.winding_down or time.monotonic() < self.next_look:
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

    def _report(self, result: Result) -> None:
        self.deaths = 0
        self.results.append(result)
        self.watch.ended(result)
        fault = result.state not in (State.done, State.preempted, State.running)
        if fault and self.terms.on_failure is OnFailure.stop and not self.winding_down:
            self._wind_down()

    def _close(self) -> None:
        """Leave no process behind, whatever ended the loop."""
        left = [at.process for at in self.working if at.process is not None]
        for process in left:
            process.ask_to_stop()
        if not wait_ended(left, GRACE_S if left else 0.0):
            for process in left:
                process.send(signal.SIGKILL)
        for process in left:
            process.close()
        if self.zygote is not None:
            self.zygote.close()
