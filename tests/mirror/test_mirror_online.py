"""The mirror online, against the loopback backend: nothing lost, nothing twice, whatever happens."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.mirror.backend.server import Backend
from tests.mirror.backend.store import StoredRun
from tests.mirror.mirror_studies import Made, study

from ablate.mirror import Condition, read_ledger, rows_of, wandb_id
from ablate.mirror.study import study_id
from ablate.record import Run, RunFolder, State

pytestmark = pytest.mark.wandb
WAIT_S = 300.0  # only so that a hang ends


def mirror(root: Path, name: str = "s", *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command(root, name, *words), capture_output=True, text=True, timeout=WAIT_S, check=False
    )


def command(root: Path, name: str, *words: str) -> list[str]:
    return [sys.executable, "-m", "ablate", "wandb", "mirror", name, "--root", str(root), *words]


def stored(backend: Backend, folder: RunFolder, generation: int = 0) -> StoredRun | None:
    number = f"-{generation + 1}" if generation else ""
    return backend.store.run(folder.study, wandb_id(folder.name) + number)


def expected(folder: RunFolder) -> list[dict[str, Any]]:
    run = Run(folder)
    return [dict(row) for row in rows_of(run, run.config.tracker.rows, ended=True)]


def received(run: StoredRun | None) -> list[dict[str, Any]]:
    """The rows as the service has them, wandb's own keys apart; each at its step."""
    assert run is not None
    assert run.gaps == 0
    assert [row["_step"] for row in run.rows] == [row["train/step"] for row in run.rows]
    return [{key: item for key, item in row.items() if not key.startswith("_")} for row in run.rows]


def whole(backend: Backend, folder: RunFolder, generation: int = 0) -> bool:
    return received(stored(backend, folder, generation)) == expected(folder)


@pytest.fixture
def watching(tmp_path: Path) -> Iterator["Watching"]:
    watch = Watching(tmp_path)
    yield watch
    watch.close()


class Watching:
    """A launched mirror that the test starts, ends and kills."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, name: str = "s", timeout: float = 10.0) -> "subprocess.Popen[bytes]":
        words = command(self.root, name, "--mode", "online", "--launched", "--finish-timeout", str(timeout))
        log = open(self.root / f"mirror{len(self.processes)}.log", "wb")  # noqa: SIM115
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
        )
        self.processes.append(process)
        return process

    def end(self, process: "subprocess.Popen[bytes]", patience: float = WAIT_S) -> int:
        assert process.stdin is not None
        process.stdin.close()
        return process.wait(patience)

    def log(self) -> str:
        return "".join(path.read_text() for path in sorted(self.root.glob("mirror*.log")))

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def until(condition: Any, what: str, patience: float = WAIT_S) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.1)


def core_of(process: "subprocess.Popen[bytes]") -> int:
    """The pid of a mirror's wandb-core."""
    found = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(process.pid)], capture_output=True, text=True, check=False
    ).stdout
    pids = [int(line.split()[0]) for line in found.splitlines() if "wandb-core" in line]
    if not pids:
        every = subprocess.run(["ps", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout
        pids = [
            int(line.split()[0])
            for line in every.splitlines()
            if "wandb-core" in line and str(process.pid) in line
        ]
    assert pids, "no wandb-core"
    return pids[0]


def rows_there(backend: Backend, folder: RunFolder) -> int:
    run = stored(backend, folder)
    return 0 if run is None else len(run.rows)


def test_every_row_of_a_study_arrives_once_and_at_its_step(backend: Backend, tmp_path: Path) -> None:
    runs = study(tmp_path)
    done = mirror(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(whole(backend, made.folder) for made in runs)
    one = stored(backend, runs[0].folder)
    assert one is not None
    assert one.state == "finished"
    assert one.fields["groupName"] == "bias=none"
    assert one.fields["jobType"] == "train"
    assert one.config["axis_lr"] == 0.01
    assert one.config["model"]["bias"] == "none"
    assert one.summary["verdict"] == Run(runs[0].folder).summary["verdict"]
    assert one.summary["final/loss_capped"] == pytest.approx(Run(runs[0].folder).summary["final/val/loss"])
    page = backend.store.run("s", study_id("s"))
    assert page is not None
    assert page.fields["jobType"] == "study"
    assert page.summary["runs"] == 4
    assert any(name.endswith(".html") for name in page.files)
    begun = one.begun, page.begun
    again = mirror(tmp_path)
    assert again.returncode == 0
    assert all(whole(backend, made.folder) for made in runs)
    assert (one.begun, page.begun) == begun, "nothing was missing, nothing was opened"


@pytest.mark.slow
def test_a_run_that_diverged_has_finite_rows_and_a_marker(backend: Backend, tmp_path: Path) -> None:
    made = Made.queued(tmp_path, 1, lr=1.0).begin().write(12, bad=math.nan).end()
    assert mirror(tmp_path).returncode == 0
    run = stored(backend, made.folder)
    assert whole(backend, made.folder)
    assert run is not None
    assert "NaN" not in json.dumps(run.rows)
    assert run.column("status/diverged") == [0] * 11 + [1]
    assert run.summary["verdict"] == "diverged"
    assert run.summary["diverged_step"] == 11
    assert all(math.isfinite(x) for x in run.summary.values() if isinstance(x, float))


@pytest.mark.slow
def test_rows_arrive_while_a_run_trains(backend: Backend, watching: Watching) -> None:
    made = Made.queued(watching.root, 1).begin().write(20)
    with made.beating():
        process = watching.start()
        until(lambda: read_ledger(made.folder.path), "mirror.json")
        made.write(40).end()
    assert watching.end(process) == 0, watching.log()
    assert whole(backend, made.folder)


@pytest.mark.slow
def test_a_resumed_run_stays_one_run(backend: Backend, tmp_path: Path) -> None:
    made = Made.queued(tmp_path, 1).begin().write(25).end(State.preempted)
    assert mirror(tmp_path).returncode == 0
    run = stored(backend, made.folder)
    assert run is not None
    assert run.state in ("failed", "crashed", "finished")
    assert len(run.rows) == 25
    made.begin(from_step=20).write(40).end()
    assert mirror(tmp_path).returncode == 0
    assert whole(backend, made.folder)


@pytest.mark.slow
def test_rows_that_the_record_voids_begin_a_run_anew(backend: Backend, tmp_path: Path) -> None:
    made = Made.queued(tmp_path, 1).begin().write(25).end(State.preempted)
    mirror(tmp_path)
    made.begin(from_step=20).write(40, shift=0.5).end()
    assert mirror(tmp_path).returncode == 0
    assert stored(backend, made.folder) is None
    assert whole(backend, made.folder, generation=1)
    ledger = read_ledger(made.folder.path)
    assert ledger is not None
    assert ledger.online is not None
    assert ledger.online.generation == 1


@pytest.mark.slow
def test_a_killed_mirror_goes_on_where_the_service_is(backend: Backend, watching: Watching) -> None:
    made = Made.queued(watching.root, 1, steps=100).begin().write(40)
    with made.beating():
        first = watching.start()
        until(lambda: rows_there(backend, made.folder) > 0, "rows")
        made.write(60)
        time.sleep(3)
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        second = watching.start()
        made.write(100).end()
    assert watching.end(second) == 0, watching.log()
    assert whole(backend, made.folder)


@pytest.mark.slow
def test_the_death_of_wandb_core_is_survived(backend: Backend, watching: Watching) -> None:
    made = Made.queued(watching.root, 1, steps=100).begin().write(40)
    with made.beating():
        process = watching.start()
        until(lambda: read_ledger(made.folder.path), "mirror.json")
        os.kill(core_of(process), signal.SIGKILL)
        made.write(100).end()
    assert watching.end(process) == 0, watching.log()
    assert "going on with a new one" in watching.log()
    assert whole(backend, made.folder)


def test_no_key_is_one_clear_error(no_account: Path, tmp_path: Path) -> None:
    study(tmp_path)
    done = mirror(tmp_path, "s", "--mode", "online")
    assert done.returncode == 2
    assert "no W&B API key" in done.stderr
    assert len(done.stderr.splitlines()) <= 3


@pytest.mark.slow
def test_a_service_that_is_away_is_not_waited_for(backend: Backend, tmp_path: Path) -> None:
    made = Made.queued(tmp_path, 1).whole()
    with backend.outage():
        done = mirror(tmp_path, "s", "--finish-timeout", "1")
    assert done.returncode == 1
    ledger = read_ledger(made.folder.path)
    assert ledger is not None
    assert ledger.online is not None
    assert ledger.online.state is Condition.partial
    assert mirror(tmp_path).returncode == 0
    assert whole(backend, made.folder)


@pytest.mark.slow
def test_a_refusal_is_told_and_healed_later(backend: Backend, tmp_path: Path) -> None:
    made = Made.queued(tmp_path, 1).whole()
    backend.fail("stream", code=403)
    done = mirror(tmp_path, "s", "--finish-timeout", "5")
    assert done.returncode == 1, done.stdout
    ledger = read_ledger(made.folder.path)
    assert ledger is not None
    assert ledger.online is not None
    assert ledger.online.state is not Condition.clean
    backend.faults.clear()
    assert mirror(tmp_path).returncode == 0
    assert whole(backend, made.folder)


@pytest.mark.slow
def test_two_mirrors_of_a_study_do_not_meet(backend: Backend, watching: Watching) -> None:
    made = Made.queued(watching.root, 1).begin().write(20)
    with made.beating():
        first = watching.start()
        until(lambda: read_ledger(made.folder.path), "mirror.json")
        second = mirror(watching.root)
        assert second.returncode == 0
        assert f"process {first.pid}" in second.stdout
        made.write(40).end()
    assert watching.end(first) == 0
    assert whole(backend, made.folder)
