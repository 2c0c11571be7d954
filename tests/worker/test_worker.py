import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ablate.worker.run
from ablate.config import dump
from ablate.record import Claim, RunFolder, State, create_rerun, read_json, read_series, read_status
from ablate.train import Ending, Interrupts, Outcome
from ablate.train.checkpoint import steps
from ablate.worker.run import End, carry_out

NAN = {"optim": {"lr": 1e4, "warmup": 0, "clip": 0}, "verdict": {"patience": 5}}


def wait_for(what: Any, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.002)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Callable[[RunFolder], End]:
    """Carries out a folder in this process, whose settings stay as they are."""
    monkeypatch.setattr(ablate.worker.run, "setup_process", lambda _: None)

    def carry(folder: RunFolder) -> End:
        with Interrupts() as interrupts:
            return carry_out(folder, interrupts, refuse=print)

    return carry


def files(folder: RunFolder) -> list[tuple[str, bytes]]:
    return sorted((str(p), p.read_bytes()) for p in folder.path.rglob("*") if p.is_file())


def test_a_run_from_config_to_summary(whole: RunFolder) -> None:
    status, meta, summary = read_status(whole), read_json(whole.meta), read_json(whole.summary)
    assert (status.state, status.attempt) == (State.done, 1)
    assert meta["config"]["optim.lr"] == 3e-3
    assert meta["environment"]["code_sha"]
    assert (meta["device"], meta["threads"]) == ("cpu", 1)
    assert meta["data"]["unigram_entropy"] > meta["data"]["entropy_rate"]
    assert meta["model"]["biases"]["up"] == 2 * 128
    assert "blocks.0.mlp.up.weight" in meta["decay_groups"]["decayed"]
    assert meta["initial_loss"] == read_series(whole.metrics("val")).column("val/loss")[0]
    assert summary["verdict"] == "stable"
    assert summary["complete"] is True
    assert steps(whole.checkpoint) == []
    assert (whole.checkpoint / "final" / "model.safetensors").is_file()
    assert "attempt 1" in whole.stdout.read_text()


def test_a_failed_folder_does_not_stop_the_next_one(queued: Any, work: Any) -> None:
    broken, fine = queued(study="broken"), queued({"optim": {"steps": 5}})
    broken.checkpoint.mkdir()
    (broken.checkpoint / "model.pt").write_bytes(b"not ours")
    assert work(broken, fine)[0] == 1
    status = read_status(broken)
    assert status.state is State.failed
    assert "model.pt" in (status.reason or "")
    assert "Traceback" not in broken.stdout.read_text()
    assert "model.pt" in broken.stdout.read_text()
    assert read_status(fine).state is State.done


def test_a_done_folder_is_left_alone(whole: RunFolder, here: Any) -> None:
    before = files(whole)
    assert here(whole) is End.done
    assert files(whole) == before


def test_a_run_that_is_not_finite_is_done_and_diverged_with_a_finite_summary(queued: Any, here: Any) -> None:
    folder = queued({**NAN, "run": {"checkpoint_every": 1}})
    assert here(folder) is End.done

    def refuse(word: str) -> None:
        raise AssertionError(word)

    summary = json.loads(folder.summary.read_text(), parse_constant=refuse)
    assert summary["verdict"] == "diverged"
    assert summary["steps"] == summary["first_bad_step"] + 5
    assert read_status(folder).state is State.done
    assert steps(folder.checkpoint) == [s for s in [summary["first_bad_step"] - 1] if s > 0]


def test_a_foreign_config_is_refused_and_nothing_touched(
    queued: Any, here: Any, config_of: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = queued()
    folder.config.write_text(dump(config_of({"optim": {"lr": 0.5}})))
    before = files(folder)
    assert here(folder) is End.refused
    assert folder.id in capsys.readouterr().out
    assert files(folder) == before


def test_changed_code_is_refused_unless_allowed(
    queued: Any, here: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = queued(code_sha="0" * 64)
    assert here(refused) is End.refused
    assert "run.allow_code_change" in capsys.readouterr().out
    assert read_status(refused).state is State.queued
    assert here(queued({"run": {"allow_code_change": True}}, study="allowed", code_sha="0" * 64)) is End.done


def test_a_run_claimed_by_a_live_process_is_left_to_it(
    queued: Any, here: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = queued()
    claim = Claim.take(folder)
    assert here(folder) is End.elsewhere
    assert str(claim.owner.pid) in capsys.readouterr().out
    claim.check()


def test_asked_to_stop_it_is_preempted_and_resumes_to_the_same_rows(
    queued: Any, start: Any, work: Any, same_rows: Any, whole: RunFolder
) -> None:
    folder, next_one = queued(), queued(study="next")
    process = start(folder, next_one)
    wait_for(lambda: len(read_series(folder.metrics())) > 3)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 3
    assert (read_status(folder).state, read_status(next_one).state) == (State.preempted, State.queued)
    assert work(folder)[0] == 0
    assert same_rows(folder, whole)


@pytest.mark.parametrize("full", ["rows", pytest.param("checkpoint", marks=pytest.mark.slow)])
def test_a_full_disk_is_one_clear_error_and_the_run_resumes(
    queued: Any, work: Any, same_rows: Any, whole: RunFolder, full: str
) -> None:
    folder = queued({"run": {"checkpoint_every": 50 if full == "rows" else 11}})
    limit = len(whole.metrics().read_bytes()) // 2 if full == "rows" else 100_000

    def small_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    assert work(folder, preexec_fn=small_disk)[0] == 1
    status = read_status(folder)
    assert status.state is State.failed
    assert "full" in (status.reason or "")
    assert work(folder)[0] == 0
    assert same_rows(folder, whole)


def test_a_run_that_another_process_has_just_done_is_not_trained_again(
    queued: Any, here: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = queued()

    def slow_check(*_: object) -> None:
        Claim.take(folder).finish(State.done)

    monkeypatch.setattr(ablate.worker.run, "_check_identity", slow_check)
    assert here(folder) is End.done
    assert read_status(folder).attempt == 1


def test_out_of_memory_is_a_failure_with_a_reason(
    queued: Any, here: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def burst(*_: object, **__: object) -> None:
        raise MemoryError("cannot allocate 1 TB")

    monkeypatch.setattr(ablate.worker.run, "train", burst)
    folder = queued()
    assert here(folder) is End.failed
    assert read_status(folder).reason == "out of memory: cannot allocate 1 TB"
    assert "Traceback" in capsys.readouterr().err


def test_a_run_without_rows_is_not_done(queued: Any, here: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = Outcome(Ending.complete, 60, None)
    monkeypatch.setattr(ablate.worker.run, "train", lambda *_, **__: outcome)
    folder = queued()
    assert here(folder) is End.failed
    assert "step 0" in (read_status(folder).reason or "")


def test_no_room_for_the_heartbeat_is_a_failure(queued: Any, here: Any) -> None:
    folder = queued()
    folder.heartbeat.symlink_to(folder.path / "nowhere" / "heartbeat")
    assert here(folder) is End.failed
    assert "heartbeat" in (read_status(folder).reason or "")


@pytest.mark.parametrize(("asked", "found"), [({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE")])
def test_threads_sleep_while_they_wait(work: Any, tmp_path: Path, asked: dict[str, str], found: str) -> None:
    env = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"}
    _, printed = work(RunFolder(tmp_path), env={**env, **asked, "OMP_DISPLAY_ENV": "TRUE"})
    assert f"OMP_WAIT_POLICY = '{found}'" in printed


def test_threads_of_forked_runs_sleep_while_they_wait() -> None:
    env = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"}
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.close()
    with theirs:
        command = [sys.executable, "-m", "ablate.worker.zygote", str(theirs.fileno())]
        ended = subprocess.run(
            command,
            pass_fds=[theirs.fileno()],
            env={**env, "OMP_NUM_THREADS": "1", "OMP_DISPLAY_ENV": "TRUE"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert "OMP_WAIT_POLICY = 'PASSIVE'" in ended.stderr


def test_a_repetition_from_a_checkpoint_has_no_verdict_of_its_own(
    queued: Any, start: Any, whole: RunFolder, here: Any
) -> None:
    folder = queued({"run": {"keep": "ring"}})
    assert here(folder) is End.done
    repetition = create_rerun(folder, folder.config.read_text())
    last = steps(folder.checkpoint)[-1]
    place = f"step-{last:06d}"
    shutil.copytree(folder.checkpoint / place, repetition.checkpoint / place)
    assert here(repetition) is End.done
    assert not repetition.summary.exists()
    old, new = read_series(folder.metrics()), read_series(repetition.metrics())
    assert new.steps.tolist() == list(range(last, 60))
    assert np.array_equal(new.values_RC, old.values_RC[last:])


def test_bad_usage_is_code_2(work: Any) -> None:
    code, errors = work()
    assert code == 2
    assert "RUN_DIR" in errors
    assert os.environ.get("ABLATE_CACHE") is not None
