"""Runs in other hands, damaged states, and a disk without room: results and words, no tracebacks."""

import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from ablate.config import UserError
from ablate.record import Claim, DiskFull, RunFolder, State, read_json, read_status, write_json
from ablate.sweep import BROKEN, Task, Terms, broken_runs, faults, freeze, launch, plan
from ablate.sweep.zygote import Zygote

POLL_S = 0.02


@pytest.fixture
def folder(tiny: list[str]) -> RunFolder:
    (frozen,) = freeze(plan(tiny))
    return frozen


def test_a_run_in_other_hands_is_reported_if_nobody_waits_for_it(
    folder: RunFolder, recorder: Any, marked: Any
) -> None:
    claim = Claim.take(folder)
    (result,) = launch([Task(folder)], recorder(), Terms(wait=False), POLL_S)
    who = f"process {claim.owner.pid} on {claim.owner.host}"
    assert (result.state, result.reason) == (State.running, f"being trained by {who}")


def test_a_run_that_was_taken_over_is_a_result_and_no_death(
    tiny: list[str], recorder: Any, rows: Any, pid_of: Any, marked: Any
) -> None:
    (folder,) = freeze(plan([*tiny, "optim.steps=100000"]))
    taken: list[str] = []

    def take_over(at: RunFolder) -> None:
        if rows(at) > 3 and not taken:
            status = read_status(at)
            assert status.owner is not None
            me = replace(status.owner, pid=os.getpid(), start=None)  # as if from another machine
            write_json(at.claim(status.attempt + 1), vars(me))
            write_json(at.status, {**read_json(at.status), "attempt": status.attempt + 1, "owner": vars(me)})
            taken.append(f"taken over by process {me.pid} on {me.host}")

    watch = recorder(take_over)
    (result,) = launch([Task(folder)], watch, Terms(wait=False), POLL_S)
    assert (result.state, result.reason) == (State.running, taken[0])
    assert not watch.notes


@pytest.mark.parametrize("text", [None, "", "[]", '{"state":"pre'])
def test_a_damaged_status_is_written_anew(tiny: list[str], folder: RunFolder, text: str | None) -> None:
    Claim.take(folder).finish(State.preempted)
    folder.status.unlink() if text is None else folder.status.write_text(text)
    past = time.time() - 1000
    write_json(folder.claim(1), {**read_json(folder.claim(1)), "start": 1})  # a process that is gone
    os.utime(folder.claim(1), (past, past))
    assert [run.state for run in broken_runs(folder.path.parents[1], "t", BROKEN)] == [State.killed]
    assert freeze(plan(tiny)) == [folder]
    written = read_json(folder.status)
    assert (written["state"], written["attempt"], bool(written["code_sha"])) == ("running", 1, True)
    assert read_status(folder).state is State.killed


def test_a_full_disk_leaves_a_failed_run_and_no_exception(
    tiny: list[str], recorder: Any, rows: Any, pid_of: Any, marked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder,) = freeze(plan([*tiny, "optim.steps=100000"]))

    def full(*_: object, **__: object) -> Claim:
        raise DiskFull(folder.status)

    monkeypatch.setattr(faults.Claim, "take", full)
    watch = recorder(lambda at: os.kill(pid_of(at), signal.SIGKILL) if rows(at) > 3 else None)
    (result,) = launch([Task(folder)], watch, Terms(retries=0), POLL_S)
    assert result.state is State.failed
    assert re.search(r"killed by SIGKILL.*its status could not be written: .*is full", result.reason or "")


def test_a_start_that_is_heard_late_loses_nothing(
    folder: RunFolder, recorder: Any, marked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = Zygote.messages
    late: list[dict[str, Any]] = []

    def refusals_first(zygote: Zygote) -> Iterator[dict[str, Any]]:
        for message in heard(zygote):
            if "started" in message:
                late.append(message)
                continue
            if "ended" in message:
                yield late.pop()
            yield message

    monkeypatch.setattr(Zygote, "messages", refusals_first)
    shutil.rmtree(folder.path)
    (result,) = launch([Task(folder)], recorder(), Terms(retries=0), POLL_S)
    assert result.state is State.queued
    assert "No such file or directory" in (result.reason or "")


@pytest.mark.parametrize("text", [None, "model: [", "model: {width: x}"])
def test_a_run_whose_configuration_is_unreadable_is_named(folder: RunFolder, text: str | None) -> None:
    Claim.take(folder).finish(State.failed, "why not")
    folder.config.unlink() if text is None else folder.config.write_text(text)
    with pytest.raises(UserError, match=f"{folder.name} cannot be launched again") as caught:
        broken_runs(folder.path.parents[1], "t", BROKEN)
    assert "move that folder elsewhere" in str(caught.value)


def test_a_log_that_cannot_be_opened_fails_the_run(folder: RunFolder, recorder: Any, marked: Any) -> None:
    folder.stdout.mkdir()
    (result,) = launch([Task(folder)], recorder(), Terms(retries=0), POLL_S)
    assert (result.state, result.log) == (State.failed, "")
    assert read_status(folder).state is State.failed
