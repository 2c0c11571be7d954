"""A study under fire: kills of runs, launcher and zygote, a halted run, a full disk; then one relaunch."""

import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ablate.config import UserError
from ablate.record import RunFolder, State, find_runs, read_status
from ablate.sweep import Task, Terms, launch, pool
from ablate.sweep import freeze as freeze_plan
from ablate.sweep import plan as make_plan

SECONDS = 60.0
RUNS = 12


class Fire:
    """A sweep that is killed and started again, and everything that happens to it meanwhile."""

    def __init__(self, request: list[str], marked: Any, seed: int) -> None:
        self.request, self.marked, self.chance = request, marked, random.Random(seed)
        self.struck: list[str] = []
        self.done_twice: list[str] = []
        self.done: dict[str, int] = {}
        self.filled = False  # has a run met a full disk?
        self.launcher = self.start(preexec_fn=_small_disk)

    def start(self, **how: Any) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "ablate", "sweep", *self.request, "sweep.jobs=2", "sweep.retries=1"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **how)

    def victim(self, kind: str) -> int | None:
        """A process of this kind; runs have the command line of the zygote, whose children they are."""
        zygotes = [p for p in self.marked() if b"ablate.worker.zygote" in _read(p, "cmdline")]
        runs = [p for p in zygotes if _parent(p) in zygotes or _parent(p) == 1]
        if kind == "launcher":
            return self.launcher.pid if self.launcher.poll() is None else None
        # A zygote is killed only once it has given birth: else, on a busy machine, none would ever get there.
        found = runs if kind == "run" or not runs else [p for p in zygotes if p not in runs]
        return self.chance.choice(found) if found else None

    def strike(self, kind: str) -> None:
        pid = self.victim("run" if kind == "halt" else kind)
        if pid is None:
            return
        try:
            os.kill(pid, signal.SIGSTOP if kind == "halt" else signal.SIGKILL)
        except ProcessLookupError:
            return
        self.struck.append(kind)

    def look(self, folders: list[RunFolder]) -> None:
        """Note what is done; done runs must never be begun again."""
        for folder in folders:
            try:
                status = read_status(folder)
            except UserError:
                continue
            self.filled = self.filled or "is full" in (status.reason or "")
            if folder.name in self.done and status.attempt != self.done[folder.name]:
                self.done_twice.append(folder.name)
            if status.state is State.done:
                self.done[folder.name] = status.attempt


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _parent(pid: int) -> int:
    text = _read(pid, "stat").decode(errors="replace")
    return int(text[text.rindex(")") + 2 :].split()[1]) if ")" in text else 0


def _small_disk() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, resource.RLIM_INFINITY))


@pytest.mark.slow
def test_a_study_under_fire_ends_as_the_undisturbed_one(
    tiny: list[str], recorder: Any, same_rows: Any, marked: Any, tmp_path: Path
) -> None:
    request = [*tiny, "optim.steps=500", "run.checkpoint_every=60", f"seed=range(0,{RUNS})"]
    calm = freeze_plan(make_plan([*request, "study=calm"]))
    launch([Task(f) for f in calm], recorder(), Terms(jobs=2))
    fire = Fire(request, marked, seed=1)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        time.sleep(fire.chance.uniform(0.5, 3.0))
        fire.look(find_runs(tmp_path / "runs", "t"))
        fire.strike(fire.chance.choices(["run", "zygote", "launcher"], [6, 2, 1 if fire.filled else 0])[0])
        if "halt" not in fire.struck and time.monotonic() > end - SECONDS / 2:
            fire.strike("halt")
        if fire.launcher.poll() is not None and time.monotonic() < end:
            fire.launcher = fire.start()
    fire.launcher.kill()
    fire.launcher.wait()
    assert {"run", "zygote", "launcher", "halt"} <= set(fire.struck), fire.struck
    assert fire.filled
    last = fire.start()
    assert last.wait(300) == 0
    folders = find_runs(tmp_path / "runs", "t")
    fire.look(folders)
    assert fire.done_twice == []
    assert [read_status(f).state for f in folders] == [State.done] * RUNS
    by_id = {f.id: f for f in calm}
    assert all(same_rows(f, by_id[f.id]) for f in folders)


@pytest.mark.slow
def test_a_run_that_gives_no_sign_of_life_is_ended_and_tried_again(
    tiny: list[str], recorder: Any, rows: Any, pid_of: Any, marked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "SILENCE_S", 9.0)
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
