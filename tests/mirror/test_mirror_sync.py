"""`ablate wandb sync` against the loopback backend: every row arrives, once, or it says what did not."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.mirror.backend.faults import Kind
from tests.mirror.backend.server import Backend
from tests.mirror.backend.store import HISTORY, StoredRun
from tests.mirror.mirror_studies import Made, study

from ablate.mirror import read_ledger, rows_of, wandb_home, wandb_id
from ablate.mirror.check import first_difference
from ablate.record import Claim, Heartbeat, Run, RunFolder, read_json, write_json

pytestmark = pytest.mark.wandb
WAIT_S = 300.0  # a limit, not an expectation
Done = subprocess.CompletedProcess[str]


def ablate(*words: str, root: Path) -> Done:
    command = [sys.executable, "-m", "ablate", "wandb", *words, "--root", str(root)]
    return subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, stdin=subprocess.DEVNULL)


def stored(backend: Backend, folder: RunFolder, generation: int = 0) -> StoredRun:
    return backend.run(folder.study, wandb_id(folder.name) + (f"-{generation + 1}" if generation else ""))


def whole(run: StoredRun, folder: RunFolder) -> bool:
    """The rows of the record and no others, in order, each at its own step; nothing skipped."""
    record = Run(folder)
    rows = rows_of(record, record.config.tracker.rows, ended=True)
    plain = [{key: value for key, value in row.items() if not key.startswith("_")} for row in run.rows]
    return plain == rows and run.column("_step") == run.column("train/step") and run.gaps == 0


def test_offline_runs_go_up_whole_and_once(backend: Backend, tmp_path: Path) -> None:
    runs = study(tmp_path)
    assert ablate("mirror", "s", "--mode", "offline", root=tmp_path).returncode == 0
    assert not backend.store.requests
    done = ablate("sync", "s", root=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 of 4 runs are up, 4 of them compared" in done.stdout
    assert all(whole(stored(backend, made.folder), made.folder) for made in runs)
    assert len(list(wandb_home(tmp_path, "s").glob("offline-run-*/*.synced"))) >= len(runs)
    begun = {name: run.begun for name, run in backend.store.runs.items()}
    again = ablate("sync", root=tmp_path)
    assert again.returncode == 0
    assert "4 of 4 runs are up" in again.stdout
    assert {name: run.begun for name, run in backend.store.runs.items()} == begun


def test_without_a_key_it_is_one_error_and_no_request(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Made.queued(tmp_path, 1).whole()
    monkeypatch.delenv("WANDB_API_KEY")
    done = ablate("sync", "s", root=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: no W&B API key")
    assert "try: wandb login, or WANDB_API_KEY=" in done.stderr
    assert not backend.store.requests


def test_nothing_to_sync_is_an_error(backend: Backend, tmp_path: Path) -> None:
    Made.queued(tmp_path, 1).whole()
    assert ablate("sync", "nope", root=tmp_path).returncode == 2
    done = ablate("sync", root=tmp_path)  # the study was never mirrored, nor is it named
    assert done.returncode == 2
    assert "ablate wandb sync STUDY" in done.stderr


@pytest.mark.parametrize("summary_ahead", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_lost_rows_are_sent_again(backend: Backend, tmp_path: Path, summary_ahead: bool) -> None:
    """Behind those that are there; into a new run where W&B's client, going by the summary, skips them."""
    made = Made.queued(tmp_path, 1).whole()
    assert ablate("sync", "s", root=tmp_path).returncode == 0
    run = stored(backend, made.folder)
    del run.lines[HISTORY][25:]
    if not summary_ahead:
        run.summary["_step"] = 24
    done = ablate("sync", "s", root=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "lost rows: 25 there" in done.stdout
    assert whole(stored(backend, made.folder, generation=int(summary_ahead)), made.folder)
    assert len(backend.runs("s")) == 1, "what was begun again was deleted"


def test_a_run_that_holds_something_else_is_begun_again(backend: Backend, tmp_path: Path) -> None:
    made = Made.queued(tmp_path, 1).whole()
    assert ablate("sync", "s", root=tmp_path).returncode == 0
    lines = stored(backend, made.folder).lines[HISTORY]
    lines[7] = lines[7].replace('"train/loss":', '"train/loss":1')
    done = ablate("sync", "s", root=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "at step 7, train/loss is" in done.stdout
    assert ("s", wandb_id(made.folder.name)) in backend.store.deleted
    assert whole(stored(backend, made.folder, generation=1), made.folder)


def test_a_run_whose_address_was_damaged_is_found_again(backend: Backend, tmp_path: Path) -> None:
    made = Made.queued(tmp_path, 1).whole()
    assert ablate("sync", "s", root=tmp_path).returncode == 0
    raw = read_json(made.folder.path / "mirror.json")
    raw["online"]["where"] = "file:///etc"
    write_json(made.folder.path / "mirror.json", raw)
    done = ablate("sync", "s", root=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "1 of 1 runs are up, 1 of them compared" in done.stdout
    assert whole(stored(backend, made.folder), made.folder)
    assert len(backend.runs("s")) == 1


@pytest.mark.slow
def test_what_the_service_will_not_take_is_named_and_goes_up_later(backend: Backend, tmp_path: Path) -> None:
    made = Made.queued(tmp_path, 1).whole()
    other = Made.queued(tmp_path, 2, bias="all").whole()
    backend.fail("UpsertBucket", code=403)
    refused = ablate("sync", "s", "--timeout", "30", root=tmp_path)
    assert refused.returncode == 1
    assert refused.stdout.count("degraded: ") == 2
    assert "403" in refused.stdout
    backend.faults.clear()
    assert ablate("sync", "s", root=tmp_path).returncode == 0
    assert all(whole(stored(backend, run.folder), run.folder) for run in (made, other))


def test_a_study_that_another_mirror_is_at_is_left_alone(backend: Backend, tmp_path: Path) -> None:
    Made.queued(tmp_path, 1).whole()
    place = RunFolder(wandb_home(tmp_path, "s") / ".mirror")
    place.path.mkdir(parents=True)
    Claim.take(place)
    with Heartbeat(place):
        done = ablate("sync", "s", root=tmp_path)
    assert done.returncode == 1
    assert "is mirroring s" in done.stdout
    assert not backend.store.requests


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "kind", "code"),
    [
        ("stream", Kind.status, 500),
        ("stream", Kind.status, 429),
        ("stream", Kind.drop, 0),
        ("stream", Kind.hang, 0),
        ("stream", Kind.partial, 0),
        ("stream", Kind.lossy, 0),
        ("stream", Kind.status, 401),
        ("stream", Kind.status, 403),
        ("stream", Kind.status, 404),
        ("UpsertBucket", Kind.status, 500),
        ("RunResumeStatus", Kind.hang, 0),
    ],
)
def test_a_lasting_fault_ends_in_time_and_is_healed(
    backend: Backend, tmp_path: Path, where: str, kind: Kind, code: int
) -> None:
    made = Made.queued(tmp_path, 1, tracker={"finish_timeout": 3.0}).whole()
    backend.fail(where, kind, code)
    began = time.monotonic()
    failed = ablate("sync", "s", "--timeout", "5", root=tmp_path)
    assert failed.returncode == 1, failed.stdout
    assert "degraded: " in failed.stdout
    assert time.monotonic() - began < WAIT_S
    backend.faults.clear()
    done = ablate("sync", "s", root=tmp_path)
    assert done.returncode == 0, done.stdout
    ledger = read_ledger(made.folder.path)
    assert ledger is not None
    assert ledger.online is not None
    assert whole(stored(backend, made.folder, ledger.online.generation), made.folder)
    assert len(backend.runs("s")) == 1, "what was begun again was deleted"


@pytest.mark.slow
def test_what_wandb_sync_has_brought_up_is_not_doubled(backend: Backend, tmp_path: Path) -> None:
    made = Made.queued(tmp_path, 1).whole()
    assert ablate("mirror", "s", "--mode", "offline", root=tmp_path).returncode == 0
    plain = [sys.executable, "-m", "wandb", "sync", str(wandb_home(tmp_path, "s"))]
    assert subprocess.run(plain, cwd=tmp_path, capture_output=True, timeout=WAIT_S).returncode == 0
    assert whole(stored(backend, made.folder), made.folder)
    assert ablate("sync", "s", root=tmp_path).returncode == 0
    assert subprocess.run(plain, cwd=tmp_path, capture_output=True, timeout=WAIT_S).returncode == 0
    assert whole(stored(backend, made.folder), made.folder)


def test_rows_are_compared_value_by_value() -> None:
    ours = [{"train/step": 0, "a": 1.0}, {"train/step": 3, "a": 0.1, "b": 2.0}]
    theirs = [{"train/step": 0, "a": 1, "_step": 0}, {"train/step": 3, "a": 0.1, "b": 2.0, "_runtime": 9.0}]
    assert first_difference(ours, theirs) is None
    assert first_difference(ours, theirs[:1]) == "1 rows there, 2 here"
    assert first_difference(ours[:1], theirs) == "2 rows there, 1 here"
    for wrong in ({"a": 0.1000001}, {"a": None}, {"a": "0.1"}, {"b": True}, {"train/step": 4}):
        assert first_difference(ours, [theirs[0], {**theirs[1], **wrong}]) is not None
