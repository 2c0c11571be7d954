"""The launcher with real workers: deaths, refusals, interruptions."""

import os
import signal
from pathlib import Path

import pytest

from ablate.record import Claim, Run, RunFolder, State, read_series, read_status
from ablate.sweep import Interrupted, Result, WorkerError, freeze, launch, plan

POLL_S = 0.02


class Recorder:
    """A watch that remembers, and may do something when a run is seen at work."""

    def __init__(self, at_work: object = None) -> None:
        self.results: list[Result] = []
        self.at_work = at_work

    def tick(self, folder: RunFolder) -> None:
        if callable(self.at_work):
            self.at_work(folder)

    def ended(self, result: Result) -> None:
        self.results.append(result)


def owner_pid(folder: RunFolder) -> int:
    owner = read_status(folder).owner
    assert owner is not None
    return owner.pid


def rows(folder: RunFolder) -> int:
    return len(read_series(folder.metrics()))


def test_a_killed_worker_takes_only_its_run_along(tiny: list[str]) -> None:
    first, long, last = freeze(plan([*tiny, "optim.steps=11,150,12"]))

    def kill_on_long(folder: RunFolder) -> None:
        if folder == long and rows(long) > 5:
            os.kill(owner_pid(long), signal.SIGKILL)

    watch = Recorder(kill_on_long)
    results = launch([first, long, last], watch, POLL_S)
    assert [(r.folder, r.state) for r in results] == [
        (first, State.done), (long, State.failed), (last, State.done),
    ]  # fmt: skip
    assert results[1].reason == "the worker was killed by SIGKILL"
    assert "attempt 1" in results[1].log
    assert read_status(long).state is State.failed
    assert watch.results == list(results)


def test_interrupting_the_launch_preempts_the_run_and_leaves_the_rest(tiny: list[str]) -> None:
    long, rest = freeze(plan([*tiny, "optim.steps=20000,12"]))

    def interrupt(folder: RunFolder) -> None:
        if rows(folder) > 5:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Interrupted) as stopped:
        launch([long, rest], Recorder(interrupt), POLL_S)
    assert signal.getsignal(signal.SIGINT) is before
    assert stopped.value.number == signal.SIGINT
    assert [(r.folder, r.state) for r in stopped.value.results] == [(long, State.preempted)]
    assert read_status(rest).state is State.queued
    assert any(long.checkpoint.glob("step-*"))
    assert rows(long) > 5


def test_no_run_stops_another(tiny: list[str]) -> None:
    """Taken by somebody else, edited, done meanwhile, failing: each is told, and the last one is trained."""
    taken, edited, done, broken, good = freeze(plan([*tiny, "seed=0,1,2,3,4"]))
    claim = Claim.take(taken)
    edited.config.write_text(edited.config.read_text().replace("lr: 0.003", "lr: 0.004"))
    Claim.take(done).finish(State.done)
    broken.checkpoint.mkdir()
    (broken.checkpoint / "weights.pkl").write_bytes(b"")
    watch = Recorder()
    results = {r.folder: r for r in launch([taken, edited, done, broken, good], watch, POLL_S)}
    assert len(watch.results) == 5
    assert results[taken].state is State.running
    assert str(claim.owner.pid) in (results[taken].reason or "")
    assert results[edited].state is State.queued
    assert "describes run" in (results[edited].reason or "")
    assert (results[done].state, results[done].reason) == (State.done, None)
    assert results[broken].state is State.failed
    assert "weights.pkl" in (results[broken].reason or "")
    assert "weights.pkl" in results[broken].log
    assert results[good].state is State.done


def test_a_worker_that_cannot_start_is_an_error_that_says_why(
    tiny: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder,) = freeze(plan(tiny))
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise ImportError('libtorch is broken')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    watch = Recorder()
    with pytest.raises(WorkerError, match="libtorch is broken"):
        launch([folder], watch, POLL_S)
    assert watch.results == []
    assert read_status(folder).state is State.queued
    assert Run(folder).summary is None
