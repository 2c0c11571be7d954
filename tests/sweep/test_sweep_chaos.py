"""A study under fire: kills of runs, launcher and zygote, a halted run, a full disk; then one relaunch."""

import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ablate.record import RunFolder, State, find_runs, read_status
from ablate.sweep import Task, Terms, launch, queue
from ablate.sweep import freeze as freeze_plan
from ablate.sweep import plan as make_plan

SECONDS = 120.0
LONGEST_S = 600.0  # on a machine so busy that two minutes see few processes to strike at
PATIENCE_S = 900.0  # for the relaunch
DECK = {"run": 6, "zygote": 2, "launcher": 1}  # kinds of kills, drawn like cards
FEWEST = 4  # runs left to do; a study with fewer grows by as many when it is launched again
FULL_BYTES = 4_000  # how long a file can get while the disk is full: enough to say so, not to go on


class Fire:
    """A sweep that is killed and started again, and everything that happens to it meanwhile."""

    def __init__(self, request: list[str], root: Path, marked: Callable[[], list[int]], seed: int) -> None:
        self.request, self.root, self.marked = request, root, marked
        self.chance = random.Random(seed)
        self.deck: list[str] = []
        self.struck: Counter[str] = Counter()
        self.done: dict[str, int] = {}  # runs by name, with the attempt that did them
        self.done_twice: list[str] = []
        self.filled = False  # has a run met a full disk?
        self.runs = 0
        self.launcher = self.start()

    @property
    def complete(self) -> bool:
        """Has every kind of strike been dealt, and the disk been full?"""
        needed = {**DECK, "halt": 1}
        return self.filled and all(self.struck[kind] >= count for kind, count in needed.items())

    def seeds(self) -> str:
        return f"seed=range(0,{self.runs})"

    def start(self) -> "subprocess.Popen[bytes]":
        """Launch the study; one that is almost done becomes larger."""
        if self.runs - len(self.done) < FEWEST:
            self.runs += FEWEST
        command = [sys.executable, "-m", "ablate", "sweep", *self.request, self.seeds()]
        return subprocess.Popen(
            [*command, "sweep.jobs=2"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def rage(self, seconds: float) -> None:
        """Strike again and again, so long and until everything has happened. The disk is full from a quarter
        of the time on, until a run has met it.
        """
        begun, passed = time.monotonic(), 0.0
        while passed < seconds or (not self.complete and passed < LONGEST_S):
            time.sleep(self.chance.uniform(0.5, 3.0))
            self.look()
            self.limit_files(passed > seconds / 4 and not self.filled)
            if passed > seconds / 2 and not self.struck["halt"]:
                self.strike("halt")
            self.deck = self.deck or self.chance.sample(list(DECK), sum(DECK.values()), counts=DECK.values())
            if self.strike(self.deck[-1]):
                self.deck.pop()
            if self.launcher.poll() is not None:
                self.launcher = self.start()
            passed = time.monotonic() - begun
        self.limit_files(False)
        self.launcher.kill()
        self.launcher.wait()

    def victim(self, kind: str) -> int | None:
        """A process of this kind; a run leads a session of its own, its zygote does not."""
        if kind == "launcher":
            return self.launcher.pid if self.launcher.poll() is None else None
        forked = [p for p in self.marked() if b"ablate.worker.zygote" in _command(p)]
        runs = [p for p in forked if _session(p) == p]
        # A zygote is killed only once it has given birth: else, on a busy machine, none would ever get there.
        found = [p for p in forked if p not in runs and runs] if kind == "zygote" else runs
        return self.chance.choice(found) if found else None

    def strike(self, kind: str) -> bool:
        """Hit a process, if there is one of this kind."""
        pid = self.victim("run" if kind == "halt" else kind)
        if pid is None:
            return False
        try:
            os.kill(pid, signal.SIGSTOP if kind == "halt" else signal.SIGKILL)
        except ProcessLookupError:
            return False
        if kind == "launcher":
            self.launcher.wait()
        self.struck[kind] += 1
        return True

    def limit_files(self, full: bool) -> None:
        """The disk is full, or has room again, for every process of the study."""
        for pid in self.marked():
            try:
                resource.prlimit(
                    pid,
                    resource.RLIMIT_FSIZE,
                    (FULL_BYTES if full else resource.RLIM_INFINITY, resource.RLIM_INFINITY),
                )
            except ProcessLookupError:
                continue

    def look(self) -> None:
        """Note what is done; done runs must never be begun again."""
        for folder in find_runs(self.root, "t"):
            status = read_status(folder)
            self.filled = self.filled or "is full" in (status.reason or "")
            if folder.name in self.done and status.attempt != self.done[folder.name]:
                self.done_twice.append(folder.name)
            if status.state is State.done:
                self.done[folder.name] = status.attempt


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


@pytest.mark.slow
def test_a_study_under_fire_ends_as_the_undisturbed_one(
    tiny: list[str], recorder: Any, same_rows: Any, marked: Any, tmp_path: Path
) -> None:
    request = [*tiny, "optim.steps=500", "run.checkpoint_every=60"]
    fire = Fire(request, tmp_path / "runs", marked, seed=1)
    fire.rage(SECONDS)
    attempts = sum(read_status(f).attempt for f in find_runs(tmp_path / "runs", "t"))
    print(f"{dict(fire.struck)}, {len(fire.done)} of {fire.runs} runs done in {attempts} attempts")
    assert fire.complete, (fire.struck, fire.filled)
    assert fire.start().wait(PATIENCE_S) == 0
    assert marked() == []
    fire.look()
    assert fire.done_twice == []
    folders = find_runs(tmp_path / "runs", "t")
    assert [read_status(f).state for f in folders] == [State.done] * fire.runs
    assert all(not f.claim(read_status(f).attempt + 1).exists() for f in folders)
    calm = freeze_plan(make_plan([*request, fire.seeds(), "study=calm"]))
    launch([Task(f) for f in calm], recorder(), Terms(jobs=2))
    by_id = {f.id: f for f in calm}
    assert all(same_rows(f, by_id[f.id]) for f in folders)


@pytest.mark.slow
def test_a_run_that_gives_no_sign_of_life_is_ended_and_tried_again(
    tiny: list[str], recorder: Any, rows: Any, pid_of: Any, marked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "SILENCE_S", 9.0)
    (folder,) = freeze_plan(make_plan([*tiny, "optim.steps=150"]))

    def halt(_: RunFolder) -> None:
        if rows(folder) > 5:
            os.kill(pid_of(folder), signal.SIGSTOP)
            watch.at_work = None

    watch = recorder(halt)
    (result,) = launch([Task(folder)], watch, Terms(retries=1))
    assert result.state is State.done
    assert any("no sign of life" in note for note in watch.notes)
    assert (rows(folder), read_status(folder).attempt) == (150, 2)
