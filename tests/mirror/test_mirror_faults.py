"""Faults while a run trains: the mirror holds out, loses and doubles nothing, and says what it gave up.

Slow: W&B's client sends rows every 15 seconds.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.mirror.backend.faults import Kind
from tests.mirror.backend.server import Backend
from tests.mirror.mirror_studies import Made
from tests.mirror.test_mirror_sync import ablate, stored, whole

from ablate.mirror import Condition, read_ledger
from ablate.mirror.ledger import Sent
from ablate.record import RunFolder, find_runs

pytestmark = [pytest.mark.wandb, pytest.mark.slow]
WAIT_S = 300.0  # a limit, not an expectation
STEPS = 120
Process = subprocess.Popen[bytes]


def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.2)


def rows_there(backend: Backend, folder: RunFolder) -> int:
    return sum(len(run.rows) for run in backend.runs(folder.study) if run.name.endswith(folder.id))


def sent(folder: RunFolder) -> Sent:
    ledger = read_ledger(folder.path)
    assert ledger is not None
    assert ledger.online is not None
    return ledger.online


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Starts a mirror that watches study `s`; its output goes to `mirror.log`."""
    started: list[Process] = []

    def start(*words: str) -> Process:
        command = [sys.executable, "-m", "ablate", "wandb", "mirror", "s", "--watch", "--root", str(tmp_path)]
        with open(tmp_path / "mirror.log", "ab") as log:
            process = subprocess.Popen([*command, *words], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    ("kind", "code"),
    [(Kind.status, 500), (Kind.status, 429), (Kind.drop, 0), (Kind.hang, 0), (Kind.partial, 0), (None, 0)],
)
def test_a_fault_that_passes_loses_and_doubles_nothing(
    backend: Backend, tmp_path: Path, watch: Callable[..., Process], kind: Kind | None, code: int
) -> None:
    """`None`: nobody listens for a while."""
    made = Made.queued(tmp_path, 1, steps=STEPS).begin().write(40)
    with made.beating():
        process = watch()
        until(lambda: rows_there(backend, made.folder), "the first rows")
        if kind is None:
            backend.down()
        else:
            fault = backend.fail("stream", kind, code)
        made.write(80)
        if kind is None:
            time.sleep(20)
            backend.up()
        else:
            until(lambda: fault.calls, "a request that fails")
            backend.faults.clear()
        made.write(STEPS).end()
    assert process.wait(WAIT_S) == 0, (tmp_path / "mirror.log").read_text()
    assert sent(made.folder).state is Condition.clean
    assert whole(stored(backend, made.folder), made.folder)
    assert len(backend.runs("s")) == 1


@pytest.mark.parametrize("code", [401, 403, 404])
def test_a_refusal_amid_a_run_is_told_and_sync_completes_it(
    backend: Backend, tmp_path: Path, watch: Callable[..., Process], code: int
) -> None:
    made = Made.queued(tmp_path, 1, steps=STEPS).begin().write(40)
    with made.beating():
        process = watch("--finish-timeout", "5")
        until(lambda: rows_there(backend, made.folder), "the first rows")
        fault = backend.fail("stream", code=code)
        made.write(80)
        until(lambda: fault.calls, "a request that is refused")
        made.write(STEPS).end()
    assert process.wait(WAIT_S) == 1
    assert sent(made.folder).state is not Condition.clean
    assert sent(made.folder).why
    backend.faults.clear()
    done = ablate("sync", "s", root=tmp_path)
    assert done.returncode == 0, done.stdout
    assert whole(stored(backend, made.folder, sent(made.folder).generation), made.folder)


def test_an_outage_at_the_end_is_not_waited_out(
    backend: Backend, tmp_path: Path, watch: Callable[..., Process]
) -> None:
    made = Made.queued(tmp_path, 1, steps=STEPS).begin().write(40)
    with made.beating():
        process = watch("--finish-timeout", "3")
        until(lambda: rows_there(backend, made.folder), "the first rows")
        backend.down()
        made.write(STEPS).end()
    assert process.wait(WAIT_S) == 1
    assert sent(made.folder).state is Condition.partial
    backend.up()
    assert ablate("sync", "s", root=tmp_path).returncode == 0
    assert whole(stored(backend, made.folder), made.folder)


def test_a_training_killed_and_resumed_is_one_clean_run(backend: Backend, tmp_path: Path) -> None:
    command = [
        sys.executable, "-m", "ablate", "train", "model=tiny", "model.context=16", "data=synthetic",
        "data.tokens=4000", "data.vocab_size=32", "data.val_tokens=256", "optim.batch=4", "optim.steps=1500",
        "tracker.mode=online", "tracker.rows=100000", "study=s", f"run.root={tmp_path}/runs",
    ]  # fmt: skip
    first = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def rows_on_disk() -> int:
        return sum(folder.metrics().read_bytes().count(b"\n") for folder in find_runs(tmp_path / "runs", "s")
                   if folder.metrics().exists())  # fmt: skip

    until(lambda: rows_on_disk() > 300, "a run under way")
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_S)
    assert again.returncode == 0, again.stderr
    done = ablate("sync", "s", root=tmp_path / "runs")
    assert done.returncode == 0, done.stdout
    (folder,) = find_runs(tmp_path / "runs", "s")
    assert whole(stored(backend, folder, sent(folder).generation), folder)
    assert [run.fields["jobType"] for run in backend.runs("s")] == ["train"]
