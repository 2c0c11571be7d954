"""The launcher with real runs: every kind of end, deaths, refusals, interruptions."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ablate.config import OnFailure
from ablate.record import Claim, Run, RunFolder, State, read_status
from ablate.sweep import Interrupted, Task, Terms, WorkerError, freeze, launch, plan
from ablate.sweep.slots import lease

POLL_S = 0.02
DIVERGING = ("optim.lr=1e4", "optim.warmup=0", "optim.clip=0", "verdict.patience=5")


def frozen(*overrides: str) -> RunFolder:
    (folder,) = freeze(plan(overrides))
    return folder


def spoil(folder: RunFolder) -> RunFolder:
    """Something in the folder on which the run's own code raises."""
    folder.meta.mkdir()
    return folder


def zygote() -> int:
    """The process that runs are forked from."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    (pid,) = [int(c) for c in children if b"ablate.worker.zygote" in Path(f"/proc/{c}/cmdline").read_bytes()]
    return pid


def test_every_kind_of_end_in_one_study(
    tiny: list[str], recorder: Any, rows: Any, pid_of: Any, marked: Any
) -> None:
    raising = spoil(frozen(*tiny, "seed=1"))
    crashing, killed, endless = (frozen(*tiny, "optim.steps=100000", f"seed={n}") for n in (2, 3, 4))
    diverging, good = frozen(*tiny, *DIVERGING, "seed=5"), frozen(*tiny, "seed=6")

    def strike(folder: RunFolder) -> None:
        if folder in (crashing, killed) and rows(folder) > 3 and read_status(folder).state is State.running:
            os.kill(pid_of(folder), signal.SIGSEGV if folder == crashing else signal.SIGKILL)

    tasks = [Task(f) for f in (raising, crashing, killed, diverging, good)] + [Task(endless, timeout=1.0)]
    watch = recorder(strike)
    results = {r.folder: r for r in launch(tasks, watch, Terms(jobs=2, retries=1), POLL_S)}
    assert len(watch.results) == 6
    assert watch.most == 2
    assert [results[f].state for f in (diverging, good)] == [State.done, State.done]
    assert (Run(diverging).summary or {})["verdict"] == "diverged"
    causes = {
        raising: "IsADirectoryError",
        crashing: "the run's process was killed by SIGSEGV",
        killed: "the run's process was killed by SIGKILL (out of memory?), 2 times",
        endless: "timed out after 1 s (run.timeout)",
    }
    for folder, cause in causes.items():
        assert results[folder].state is read_status(folder).state is State.failed
        assert cause in (results[folder].reason or "")
        assert cause in (read_status(folder).reason or "")
        assert cause in folder.stdout.read_text()
        assert cause in results[folder].log
    assert "Traceback" in raising.stdout.read_text()
    assert "Segmentation fault" in crashing.stdout.read_text()
    assert any(endless.checkpoint.glob("step-*")), "a timed-out run can go on"
    (note,) = [n for n in watch.notes if "trying again" in n]
    assert killed.name in note


def test_a_killed_zygote_costs_nothing_and_two_at_once_yield_the_same_rows(
    tiny: list[str], recorder: Any, rows: Any, same_rows: Any, marked: Any
) -> None:
    request = [*tiny, "optim.steps=60", "optim.lr=0.003,0.01,0.1"]
    alone = freeze(plan([*request, "study=alone"]))
    calm = recorder()
    assert all(r.state is State.done for r in launch([Task(f) for f in alone], calm, Terms(jobs=1), POLL_S))
    assert calm.most == 1
    folders = freeze(plan(request))
    struck: list[int] = []
    signals = [signal.SIGKILL, signal.SIGTERM]

    def strike(folder: RunFolder) -> None:
        if signals and rows(folder) > 5 and (pid := zygote()) not in struck:
            struck.append(pid)
            os.kill(pid, signals.pop())

    watch = recorder(strike)
    results = launch([Task(f) for f in folders], watch, Terms(jobs=2, retries=0), POLL_S)
    assert len(struck) == 2
    assert {(r.folder, r.state) for r in results} == {(f, State.done) for f in folders}
    # A run whose start the dying zygote did not tell any more is left to its process at first: another note.
    deaths = [note for note in watch.notes if note.startswith("the process that runs are forked from ")]
    ends = [note.partition(": ")[0].rpartition("from ")[2] for note in deaths]
    assert ends == ["exited with code 0", "was killed by SIGKILL"]
    assert max(read_status(f).attempt for f in folders) > 1, "an interrupted run goes on"
    assert all(same_rows(a, b) for a, b in zip(alone, folders, strict=True))


def test_interrupting_the_launch_preempts_the_runs_even_a_halted_one(
    tiny: list[str], recorder: Any, rows: Any, pid_of: Any, marked: Any
) -> None:
    halted, long, rest = freeze(plan([*tiny, "optim.steps=20000,20001,12"]))

    def interrupt(_: RunFolder) -> None:
        if min(rows(halted), rows(long)) > 5:
            os.kill(pid_of(halted), signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGINT)
            watch.at_work = None

    before = signal.getsignal(signal.SIGINT)
    watch = recorder(interrupt)
    with pytest.raises(Interrupted) as stopped:
        launch([Task(f) for f in (halted, long, rest)], watch, Terms(jobs=2), POLL_S)
    assert signal.getsignal(signal.SIGINT) is before
    assert stopped.value.number == signal.SIGINT
    assert {(r.folder, r.state) for r in stopped.value.results} == {
        (halted, State.preempted), (long, State.preempted),
    }  # fmt: skip
    assert read_status(rest).state is State.queued
    assert any(long.checkpoint.glob("step-*"))
    assert any(halted.checkpoint.glob("step-*"))
    assert not marked()


def test_a_second_signal_kills_at_once(tiny: list[str], recorder: Any, rows: Any, marked: Any) -> None:
    (long,) = freeze(plan([*tiny, "optim.steps=20000"]))

    def interrupt(_: RunFolder) -> None:
        if rows(long) > 5:
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted) as stopped:
        launch([Task(long)], recorder(interrupt), Terms(), POLL_S)
    (result,) = stopped.value.results
    assert result.state in (State.killed, State.preempted)
    assert not marked()


def test_no_run_stops_another(tiny: list[str], recorder: Any, marked: Any) -> None:
    """Taken by somebody else who dies, edited, done meanwhile: each is told, and the last one is trained."""
    taken, edited, done, good = freeze(plan([*tiny, "seed=0,1,2,4"]))
    script = "import sys; from ablate.record import *; from pathlib import Path\n"
    script += "Claim.take(RunFolder(Path(sys.argv[1]))); print(1, flush=True); sys.stdin.read()"
    other = subprocess.Popen(
        [sys.executable, "-c", script, str(taken.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert other.stdout is not None
    assert other.stdout.readline()
    edited.config.write_text(edited.config.read_text().replace("lr: 0.003", "lr: 0.004"))
    Claim.take(done).finish(State.done)

    class Watch(recorder):
        def ended(self, result: Any) -> None:
            super().ended(result)
            if len(self.results) == 3:
                other.kill()
                other.communicate()

    watch = Watch()
    tasks = [Task(f) for f in (taken, edited, done, good)]
    results = {r.folder: r for r in launch(tasks, watch, Terms(jobs=2), POLL_S)}
    assert any(f"process {other.pid}" in note and "left to it" in note for note in watch.notes)
    assert results[taken].state is State.done
    assert read_status(taken).attempt == 2
    assert results[edited].state is State.queued
    assert "describes run" in (results[edited].reason or "")
    assert (results[done].state, results[done].reason) == (State.done, None)
    assert results[good].state is State.done


def test_stop_on_failure_preempts_the_others(tiny: list[str], recorder: Any, marked: Any) -> None:
    long, broken, rest = freeze(plan([*tiny, "optim.steps=20000,12,13"]))
    spoil(broken)
    terms = Terms(jobs=2, on_failure=OnFailure.stop)
    results = launch([Task(f) for f in (long, broken, rest)], recorder(), terms, POLL_S)
    states = {r.folder: r.state for r in results}
    assert states[broken] is State.failed
    assert states.get(long, State.queued) in (State.preempted, State.killed, State.queued)
    assert rest not in states
    assert read_status(rest).state is State.queued


def test_runs_that_share_a_gpu_take_turns(
    tiny: list[str], recorder: Any, marked: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ABLATE_GPUS", "GPU-one")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folders = freeze(plan([*tiny, "seed=0,1"]))
    taken: list[bool] = []

    def look(folder: RunFolder) -> None:
        free = lease(["GPU-one"])
        if free is not None:
            os.close(free[1])
        if read_status(folder).state is State.running:
            taken.append(free is None)

    watch = recorder(look)
    results = launch([Task(f, gpu=True) for f in folders], watch, Terms(jobs=2), POLL_S)
    assert [r.state for r in results] == [State.done, State.done]
    assert watch.most == 1
    assert taken
    assert all(taken)


def test_a_zygote_that_cannot_start_is_an_error_that_says_why(
    tiny: list[str], recorder: Any, marked: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder,) = freeze(plan(tiny))
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise ImportError('libtorch is broken')")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    watch = recorder()
    with pytest.raises(WorkerError, match="libtorch is broken"):
        launch([Task(folder)], watch, Terms(), POLL_S)
    assert watch.results == []
    assert read_status(folder).state is State.queued
    assert Run(folder).summary is None
