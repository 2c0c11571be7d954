"""The launcher's loop: slots, the zygote and what it says, and the watch over runs at work."""

import contextlib
import os
import select
import signal
import time
from collections.abc import Sequence

from ablate.sweep import queue, slots
from ablate.sweep.faults import ending
from ablate.sweep.queue import AtWork, Queue, Waiting, Why
from ablate.sweep.task import Task, Terms, Watch, WorkerError
from ablate.sweep.zygote import Process, Zygote, wait_ended

POLL_S = 0.2  # between two rounds, unless something happens earlier
GRACE_S = 120.0  # for a run asked to stop: it finishes its step and writes a checkpoint
TIMEOUT_GRACE_S = 20.0  # the same for one whose time is over
DEATHS = 5  # of zygotes in a row, without a run that ended in between


class Pool:
    """Everything a launch is doing. `signals` grows while it works: the first one asks the runs to stop, the
    second one kills them.
    """

    def __init__(
        self, tasks: Sequence[Task], watch: Watch, terms: Terms, poll: float, signals: Sequence[int]
    ) -> None:
        self.watch, self.poll, self.signals = watch, poll, signals
        self.queue = Queue(tasks, watch, terms, self._wind_down)
        self.working: list[AtWork] = []
        self.refusals: dict[int, str] = {}  # by process; one may be heard before its start
        self.zygote: Zygote | None = None
        self.deaths = 0
        self.results_then = 0  # at the last death
        self.killed = False
        self.told_of_gpus = False
        self.gpus = slots.gpus() if any(task.gpu for task in tasks) else ()
        threads = max((task.threads for task in tasks), default=1)
        jobs = terms.jobs or len(self.gpus) or slots.jobs_by_cores(threads)
        self.slots = min(jobs, len(self.gpus)) if self.gpus else jobs

    def work(self) -> None:
        """Until every run has ended, or the launch is stopped and those at work have ended."""
        try:
            while self.working or self.queue.pending:
                self._heed_signals()
                self._tend_zygote()
                self._begin_runs()
                self._listen()
                self._watch_over()
                self.queue.look_elsewhere()
                self.watch.tick([at.folder for at in self.working if at.process is not None])
        finally:
            self._close()

    def _heed_signals(self) -> None:
        if self.signals and not self.queue.closed:
            self._wind_down()
        if len(self.signals) > 1 and not self.killed:
            self.killed = True
            for at in self.working:
                at.deadline = 0.0

    def _wind_down(self) -> None:
        self.queue.closed = True
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
            if self.queue.waiting and not self.queue.closed:
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
        self.deaths = self.deaths + 1 if len(self.queue.results) == self.results_then else 1
        self.results_then = len(self.queue.results)
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
        while self.zygote is not None and self.zygote.serves and not self.queue.closed:
            waiting = self.queue.next() if len(self.working) < self.slots else None
            if waiting is None or not self._begin(waiting, self.zygote):
                return

    def _begin(self, waiting: Waiting, zygote: Zygote) -> bool:
        env: dict[str, str] = {}
        files: list[int] = []
        if self.gpus and waiting.task.gpu:
            leased = slots.lease(self.gpus)
            if leased is None:
                waiting.after = time.monotonic() + queue.LOOK_S
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
            self.queue.waiting.remove(waiting)
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
                        self.queue.fault(at.waiting, reason)
                case {"refused": pid, "reason": reason}:
                    self.refusals[pid] = reason
                case {"ended": pid, "code": code}:
                    for at in self._with(pid):
                        self._ended(at, code)
                case {"stopping": _}:
                    self._zygote_stops()

    def _of(self, path: str) -> list[AtWork]:
        return [at for at in self.working if at.pid is None and str(at.folder.path) == path]

    def _with(self, pid: int) -> list[AtWork]:
        return [at for at in self.working if at.pid == pid]

    def _started(self, path: str, pid: int) -> None:
        for at in self._of(path):
            at.pid, at.since = pid, time.monotonic()
            # If it is gone already, the zygote will tell its end, or has died itself.
            with contextlib.suppress(ProcessLookupError):
                at.process = Process(pid)
            if at.why is not None and at.process is not None:
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
                unanswered = now - max(at.since, at.beat[1]) > queue.SILENCE_S
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
        return now - at.beat[1] > queue.SILENCE_S

    def _ended(self, at: AtWork, code: int | None) -> None:
        self.working.remove(at)
        if at.process is not None:
            at.process.close()
        refusal = None if at.pid is None else self.refusals.pop(at.pid, None)
        self.queue.ended(at, code, refusal)

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
