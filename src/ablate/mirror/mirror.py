"""The mirror of a study: looks at its run folders, again and again if asked, and brings W&B up to date.

Nothing of the record is written but `mirror.json`. One mirror a study: it claims `wandb/.mirror/` like a run.
"""

import math
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from ablate.config import TrackerMode, UserError
from ablate.mirror import offline, online, service
from ablate.mirror.job import ENDED, Job, job_sources
from ablate.mirror.ledger import Condition, Ledger, Sent, read_ledger, wandb_home, write_ledger
from ablate.mirror.online import Line
from ablate.mirror.pace import Pace
from ablate.mirror.service import CoreDied, Trouble, Unreachable
from ablate.mirror.study import send, study_id, study_page
from ablate.record import Run, RunFolder, State, find_runs
from ablate.view import Arms, RunFacts, read_facts, study_results

LOOK_S = 2.0  # between two looks, at least
SHARE = 20  # a look may take at most one part in this of the time
AWAY_S = 15.0  # between two tries while the service does not answer
DEATHS, DEATHS_S = 3, 600.0  # of wandb-core within so many seconds: more are not survived
Sources = dict[str, tuple[int, int]]


@dataclass(eq=False)
class Mirror:
    """What one mirror process knows. `say` gets a line for each event worth telling."""

    root: Path
    study: str
    mode: TrackerMode
    finish_timeout: float
    say: Callable[[str], None]
    pace: Pace = field(default_factory=Pace)
    _known: dict[RunFolder, tuple[Sources, RunFacts]] = field(default_factory=dict)
    _clean: dict[RunFolder, tuple[Sources, str]] = field(default_factory=dict)
    _lines: dict[RunFolder, Line] = field(default_factory=dict)
    _given_up: dict[RunFolder, str] = field(default_factory=dict)
    _deaths: list[float] = field(default_factory=list)
    _away: tuple[float, str] | None = None  # since when the service has not answered, and what was said
    _next_try: float = 0.0
    _paced: bool = False  # rows wait for their turn: no further run is opened meanwhile

    @property
    def home(self) -> Path:
        return wandb_home(self.root, self.study)

    def watch(self, over: Callable[[], bool]) -> None:
        """Look until it is `over`, then a last time (`settle`)."""
        while not over():
            began = time.monotonic()
            self.look(final=False)
            pause = max(LOOK_S, SHARE * (time.monotonic() - began))
            until = time.monotonic() + pause
            while time.monotonic() < until and not over():
                time.sleep(0.2)
        self.settle()

    def settle(self, deadline: float = math.inf) -> None:
        """Look until everything that has ended is in W&B, given up, or the service stays away too long; or
        until `deadline`, by the monotonic clock.
        """
        while self.look(final=True) and time.monotonic() < deadline:
            if self._away is not None and time.monotonic() - self._away[0] > self.finish_timeout:
                self.say(f"left as it is: {self._away[1]}")
                return
            time.sleep(0.5)

    def look(self, final: bool) -> bool:
        """Bring every run as far as it can be now; is anything left to do?

        `final`: no launcher is at work, so runs that were cut short are mirrored as they are.
        """
        self._paced = False
        runs = self._read()
        arms = Arms.of([seen for _, seen in runs.values()])
        left = False
        for folder, (sources, seen) in runs.items():
            if not self._wanted(seen, final) or folder in self._given_up:
                continue
            label = f"{arms.label(seen)} {[factor.key for factor in arms.factors]}"
            if self._clean.get(folder) == (sources, label):
                continue
            if self._mirror(Job.of(seen, arms, sources), final):
                self._clean[folder] = (sources, label)
            elif folder not in self._given_up:
                left = left or seen.state in ENDED
        return left

    def counts(self) -> tuple[Counter[str], dict[str, str]]:
        """The study's runs by condition, and by name why those are not clean (of the mode at hand)."""
        found: Counter[str] = Counter()
        troubles = {}
        for folder in find_runs(self.root, self.study):
            ledger = read_ledger(folder.path)
            sent = None if ledger is None else ledger.of(self.mode)
            if sent is None:
                continue
            found[str(sent.state)] += 1
            if sent.state is not Condition.clean:
                troubles[folder.name] = f"{sent.state}: {sent.why or 'under way'}"
        return found, troubles

    def study_run(self) -> None:
        """Bring the study's own W&B run up to date: one that a sweep asked for, and of which nothing runs."""
        seen = [facts for _, facts in self._known.values()]
        if not (self.root / self.study / "requests").is_dir() or self._away is not None:
            return
        if any(run.state == State.running for run in seen):
            return
        own = read_ledger(self.home) or Ledger(study_id(self.study))
        try:
            results = study_results(self.root, self.study)
            tracker = Run(results.runs[-1].folder).config.tracker
            page = study_page(results, self.root, self.study, tracker)
            before = own.of(self.mode)
            if before is not None and before.state is Condition.clean and before.digest == page.digest:
                return
            sent = send(page, results, self.root, own, self.mode, self.finish_timeout)
            write_ledger(self.home, own.having(self.mode, sent))
            self.say(f"{self.study}: page, tables and figures, {sent.where}")
        except (Trouble, UserError, OSError) as error:
            self.say(f"{self.study}: the study's own run was not written: {error}")
        except Exception as error:  # noqa: BLE001  the runs themselves are up
            traceback.print_exc()
            self.say(f"{self.study}: the study's own run was not written: {type(error).__name__}: {error}")

    def close(self) -> bool:
        """Let go of the runs that go on elsewhere; False if the service is away and would be waited for."""
        lines, self._lines = list(self._lines.values()), {}
        if self._away is not None:
            return False
        for line in lines:
            online.close(line)
        return True

    def write_troubles(self) -> None:
        """Say in the study's own mirror.json which runs are not clean, for `ablate ls` and `status`."""
        own = read_ledger(self.home) or Ledger(study_id(self.study))
        troubles = self.counts()[1]
        if own.troubles == troubles:
            return
        try:
            write_ledger(self.home, replace(own, troubles=troubles))
        except (UserError, OSError) as error:
            self.say(f"{self.study}: mirror.json could not be written: {error}")

    def _read(self) -> dict[RunFolder, tuple[Sources, RunFacts]]:
        """Every run's facts; read anew where a file has changed, and while it is at work (it may be dead)."""
        found = {}
        for folder in find_runs(self.root, self.study):
            sources = job_sources(folder)
            known = self._known.get(folder)
            if known is None or known[0] != sources or known[1].state == State.running:
                known = (sources, read_facts(folder))
            found[folder] = known
        self._known = found
        return found

    def _wanted(self, seen: RunFacts, final: bool) -> bool:
        if seen.state == State.done:
            return True
        if self.mode is TrackerMode.online and seen.state == State.running:
            return not final  # whoever trains it has a mirror of its own
        return final and seen.state in ENDED

    def _mirror(self, job: Job, final: bool) -> bool:
        """Bring one run up to date; True if it is clean."""
        online_ = self.mode is TrackerMode.online
        try:
            if job.up_to_date(self.mode) and (online_ or offline.is_there(job, self.home)):
                return True
            waits = self._paced and job.folder not in self._lines
            if online_ and (waits or time.monotonic() < self._next_try):
                return False
            sent = (
                self._advance(job, final) if online_ else offline.replay(job, self.home, self.finish_timeout)
            )
        except CoreDied as error:
            self._core_died(job, str(error))
            return False
        except Unreachable as error:
            self._unreachable(job, str(error))
            return False
        except (Trouble, UserError, OSError) as error:  # a damaged record, no room, …
            self._give_up(job, str(error))
            return False
        except Exception as error:  # noqa: BLE001  one run must not keep the others out
            traceback.print_exc()
            self._give_up(job, f"{type(error).__name__}: {error}")
            return False
        self._away = None
        self._write(job, sent)
        if sent.state is Condition.clean:
            self.say(f"{job.folder.name}: {len(job.rows)} rows, {sent.where}")
        return sent.state is Condition.clean

    def _advance(self, job: Job, final: bool) -> Sent:
        """Send what is missing of an online run, and end it if it has ended."""
        build = self.home / ".mirror" / "build"
        line = self._lines.get(job.folder)
        if line is not None and line.over:  # ended, and the service did not have everything: once more
            online.drop_files(self._lines.pop(job.folder).opened)
            line = None
        if line is not None and not line.fits(job):
            online.drop(self._lines.pop(job.folder))
            line = online.open_line(job, build, self.finish_timeout, line.generation + 1)
        if line is None:
            line = online.open_line(job, build, self.finish_timeout)
        if job.folder not in self._lines:
            self._lines[job.folder] = line
            self.say(f"{job.folder.name}: {line.opened.url}")
        whole = online.feed(line, job.rows, self.pace)
        self._paced = self._paced or not whole
        if whole and job.ended and (job.done or final):
            sent = online.finish(line, job)
            del self._lines[job.folder]
            return sent
        handed = job.rows[: line.next]
        return job.sent(Condition.partial, None, handed, line.opened.url, line.generation)

    def _core_died(self, job: Job, why: str) -> None:
        """Every open run died with it; they are opened again when they are looked at next."""
        service.restart()
        self._lines.clear()
        now = time.monotonic()
        self._deaths = [*(then for then in self._deaths if now - then < DEATHS_S), now]
        if len(self._deaths) > DEATHS:
            self._give_up(job, why)
        else:
            self.say(f"{job.folder.name}: {why}; going on with a new one")

    def _unreachable(self, job: Job, why: str) -> None:
        now = time.monotonic()
        self._next_try = now + AWAY_S
        if self._away is None:
            self.say(f"{job.folder.name}: {why}; trying again")
            self._away = (now, why)
        self._note(job, Condition.partial, why)

    def _give_up(self, job: Job, why: str) -> None:
        self._given_up[job.folder] = why
        self.say(f"{job.folder.name}: given up: {why}")
        line = self._lines.pop(job.folder, None)
        if line is not None:
            online.close(line)
        self._note(job, Condition.degraded, why)
        self.write_troubles()

    def _note(self, job: Job, state: Condition, why: str) -> None:
        """Remember the trouble beside what was sent before."""
        before = job.ledger.of(self.mode)
        if before is None:
            before = Sent(state, why, job.seen.attempt, 0, None, "", "", None, {}, time.time())
        self._write(job, replace(before, state=state, why=why, updated=time.time()))

    def _write(self, job: Job, sent: Sent) -> None:
        before = job.ledger.of(self.mode)
        if before is not None and sent.state is not Condition.clean:
            news = replace(sent, updated=before.updated, sources=before.sources)
            if news == before:
                return
        try:
            write_ledger(job.folder.path, job.ledger.having(self.mode, sent))
        except (UserError, OSError) as error:
            self.say(f"{job.folder.name}: mirror.json could not be written: {error}")
