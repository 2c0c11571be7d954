"""Sweeps: what runs, what is skipped, what a death costs; interruptions."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ablate.record import RunFolder, State, find_runs, read_series, read_status
from ablate.view import Progress

PATIENCE_S = 120


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


class Killer(Progress):
    """Kills the run with learning rate 0.1 when it is some rows along."""

    def tick(self, at_work: Sequence[RunFolder]) -> None:
        super().tick(at_work)
        for folder in at_work:
            owner = read_status(folder).owner
            if "lr=0.1-" in folder.name and len(read_series(folder.metrics())) > 5 and owner is not None:
                os.kill(owner.pid, signal.SIGKILL)


def test_a_sweep_survives_a_killed_run_and_completes_on_relaunch(
    ablate, tiny: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    request = ["sweep", *tiny, "optim.steps=150", "optim.lr=0.01,0.1,0.010,1.0"]
    with monkeypatch.context() as patch:
        patch.setattr("ablate.cli.work.Progress", Killer)
        shown = ablate(*request, "sweep.retries=0")
    assert shown.code == 1
    assert "4 runs asked for, 1 merged as duplicates, 3 to train" in shown.out
    assert re.search(r"\[[123]/3\] lr=0\.1: failed: the run's process was killed by SIGKILL", shown.out)
    assert "stdout.log" in shown.out
    assert [str(read_status(f).state) for f in by_lr()] == ["done", "failed", "done"]
    assert re.search(r"- +0\.1 +- +0/1 +failed", shown.out)

    shown = ablate(*request)
    assert shown.code == 0, shown.out + shown.err
    assert "2 of them done already (skipped), 1 to train" in shown.out
    assert [str(read_status(f).state) for f in by_lr()] == ["done", "done", "done"]
    assert len(read_series(by_lr()[1].metrics())) == 150

    before = [f.status.read_bytes() for f in by_lr()]
    shown = ablate(*request)
    assert (shown.code, [f.status.read_bytes() for f in by_lr()]) == (0, before)
    assert "3 of them done already (skipped), 0 to train" in shown.out
    table = shown.out.partition("study t\n")[2].splitlines()
    assert table[0].split("  ")[0] == "arm"
    assert [line.split()[1] for line in table[1:4]] == ["0.01", "0.1", "1"]
    assert all(re.search(r"(b0[01]_\w+|head) ×\S+( steps)?$", line) for line in table[1:4])
    check_requests()
    check_growing(ablate, request)


def by_lr() -> list[RunFolder]:
    return sorted(
        find_runs(Path("runs"), "t"), key=lambda f: float(f.name.partition("lr=")[2].partition("-")[0])
    )


def check_requests() -> None:
    requests = [json.loads(path.read_text()) for path in sorted(Path("runs/t/requests").iterdir())]
    assert len(requests) == 2, "a sweep with nothing to train asks for nothing"
    assert requests[0]["factors"] == {"optim.lr": [0.01, 0.1, 0.01, 1.0]}
    assert requests[0]["argv"][:2] == ["ablate", "sweep"]
    assert sorted(requests[0]["run_ids"]) == sorted(f.id for f in by_lr())
    assert requests[0]["base"]["optim"]["steps"] == 150


def check_growing(ablate, request: list[str]) -> None:
    shown = ablate(*request, "model.bias=none,all", "--plan")
    assert "2 arms × 3 learning rates × 1 seed" in shown.out
    assert len(re.findall(r"bias=all .* done +no$", shown.out, re.MULTILINE)) == 3
    assert len(re.findall(r"bias=none .* missing +yes$", shown.out, re.MULTILINE)) == 3


def start(*words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "ablate", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def training() -> bool:
    return any(len(read_series(f.metrics())) > 5 for f in find_runs(Path("runs")))


def test_ctrl_c_leaves_a_checkpoint_and_the_same_command_goes_on(ablate, tiny: tuple[str, ...]) -> None:
    process = start("train", *tiny, "optim.steps=400")
    wait_for(training)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "1 preempted" in err
    assert "go on with: ablate train" in err
    (folder,) = find_runs(Path("runs"))
    assert read_status(folder).state is State.preempted
    rows = len(read_series(folder.metrics()))
    assert 5 < rows < 400
    shown = ablate("train", *tiny, "optim.steps=400")
    assert shown.code == 0, shown.out + shown.err
    assert len(read_series(folder.metrics())) == 400
    assert f"resuming at step {rows}" in folder.stdout.read_text()


def test_a_killed_launcher_leaves_no_orphan_and_the_same_command_goes_on(
    ablate, tiny: tuple[str, ...]
) -> None:
    request = ("sweep", *tiny, "optim.steps=400", "seed=0,1", "sweep.jobs=2")
    process = start(*request)
    wait_for(training)
    process.kill()
    process.communicate()
    wait_for(lambda: not any(read_status(f).state is State.running for f in find_runs(Path("runs"))))
    assert any(any(f.checkpoint.glob("step-*")) for f in find_runs(Path("runs")))
    shown = ablate(*request)
    assert shown.code == 0, shown.out + shown.err
    assert [len(read_series(f.metrics())) for f in find_runs(Path("runs"))] == [400, 400]


def test_two_sweeps_at_once_share_the_work(tiny: tuple[str, ...]) -> None:
    request = ("sweep", *tiny, "optim.steps=100", "seed=range(0,6)", "sweep.jobs=1")
    sweeps = [start(*request) for _ in range(2)]
    shown = [process.communicate(timeout=PATIENCE_S) for process in sweeps]
    assert [process.returncode for process in sweeps] == [0, 0], shown
    folders = find_runs(Path("runs"), "t")
    assert [read_status(f).attempt for f in folders] == [1] * 6
    assert all(len(read_series(f.metrics())) == 100 for f in folders)
    assert all("[6/6]" in out for out, _ in shown), "each reports all runs"


@pytest.mark.slow
def test_sigterm_stops_the_launcher_like_ctrl_c(tiny: tuple[str, ...]) -> None:
    process = start("train", *tiny, "optim.steps=100000")
    wait_for(training)
    process.terminate()
    _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, "go on with" in err) == (143, True)
