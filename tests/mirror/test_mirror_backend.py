"""The loopback backend: what plain W&B clients send arrives there, whole and in order."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.mirror.backend.faults import Kind
from tests.mirror.backend.server import Backend

pytestmark = pytest.mark.wandb

ROWS = 40
LOGGING = f"""
import wandb
settings = wandb.Settings(
    silent=True, console="off", x_disable_stats=True, init_timeout=20, finish_timeout=20
)
with wandb.init(project="p", id="r", name="plain", group="g", job_type="train", tags=["a", "b"], notes="why",
                config={{"lr": 0.1, "model": {{"norm": "rms"}}}}, settings=settings) as run:
    for step in range({ROWS}):
        run.log({{"loss": 1 / (step + 1), "train/step": step}}, step=step)
    run.summary["verdict"] = "stable"
"""


def wandb_script(text: str, folder: Path, seconds: float = 60) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own, as W&B's client wants it."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        cwd=folder, capture_output=True, text=True, timeout=seconds,
    )  # fmt: skip


def test_plain_online_logging_lands_whole(backend: Backend, tmp_path: Path) -> None:
    done = wandb_script(LOGGING, tmp_path)
    assert done.returncode == 0, done.stderr
    run = backend.run("p", "r")
    assert run.column("train/step") == list(range(ROWS))
    assert run.column("_step") == list(range(ROWS))
    assert run.column("loss") == [1 / (step + 1) for step in range(ROWS)]
    assert (run.state, run.exit_code, run.gaps) == ("finished", 0, 0)
    assert run.summary["verdict"] == "stable"
    assert (run.config["lr"], run.config["model"]) == (0.1, {"norm": "rms"})
    fields = {key: run.fields[key] for key in ("displayName", "groupName", "jobType", "notes", "tags")}
    assert fields == {
        "displayName": "plain", "groupName": "g", "jobType": "train", "notes": "why", "tags": ["a", "b"],
    }  # fmt: skip
    assert not backend.store.unknown


@pytest.mark.slow
def test_tables_and_pages_are_kept(backend: Backend, tmp_path: Path) -> None:
    done = wandb_script(
        """
        import wandb
        with wandb.init(project="p", id="r", settings=wandb.Settings(silent=True, console="off")) as run:
            table = wandb.Table(columns=["arm", "val"], data=[["none", 3.5]])
            run.log({"table": table, "page": wandb.Html("<b>all of it</b>")}, step=0)
        """,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    run = backend.run("p", "r")
    (row,) = run.rows
    assert row["table"]["_type"] == "table-file"
    assert b"all of it" in run.files[row["page"]["path"]]
    (artifact,) = backend.store.artifacts.values()
    assert artifact["state"] == "COMMITTED"
    assert b"none" in artifact["files"]["table.table.json"]
    assert not backend.store.unknown


@pytest.mark.slow
def test_a_resumed_run_is_sent_what_is_missing_and_a_plain_sync_of_it_doubles_rows(
    backend: Backend, tmp_path: Path
) -> None:
    """Why `ablate wandb sync` resumes and does not leave it to `wandb sync`."""
    begin = LOGGING.replace(f"range({ROWS})", "range(10)")
    assert wandb_script(begin, tmp_path).returncode == 0
    whole = LOGGING.replace('project="p"', 'project="p", resume="allow"')
    assert wandb_script(whole, tmp_path).returncode == 0
    assert backend.run("p", "r").column("train/step") == list(range(ROWS))
    assert (
        wandb_script(LOGGING.replace('project="p"', 'project="p", mode="offline"'), tmp_path).returncode == 0
    )
    folders = sorted(map(str, tmp_path.glob("wandb/offline-run-*")))
    synced = subprocess.run(
        [sys.executable, "-m", "wandb", "sync", *folders], cwd=tmp_path, capture_output=True, timeout=60
    )
    assert synced.returncode == 0
    assert len(backend.run("p", "r").rows) == 2 * ROWS


@pytest.mark.slow
def test_a_deleted_id_is_refused(backend: Backend, tmp_path: Path) -> None:
    backend.store.deleted.add(("p", "r"))
    failed = wandb_script(LOGGING.replace("init_timeout=20", "init_timeout=3"), tmp_path)
    assert failed.returncode != 0
    assert ("p", "r") not in backend.store.runs


@pytest.mark.slow
@pytest.mark.parametrize("code", [401, 403, 404])
def test_refusals_at_the_beginning_are_told_at_once(backend: Backend, tmp_path: Path, code: int) -> None:
    backend.fail("UpsertBucket", code=code)
    failed = wandb_script(LOGGING, tmp_path)
    assert failed.returncode != 0
    assert str(code) in failed.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "code"),
    [(Kind.status, 500), (Kind.status, 429), (Kind.drop, 0), (Kind.partial, 0)],
)
def test_passing_faults_at_the_end_lose_nothing(
    backend: Backend, tmp_path: Path, kind: Kind, code: int
) -> None:
    """The client sends again, from the offset it knows of; rows kept the first time are not doubled."""
    fault = backend.fail("stream", kind, code, times=1)
    done = wandb_script(LOGGING, tmp_path)
    assert done.returncode == 0, done.stderr
    assert fault.calls > 1
    assert backend.run("p", "r").column("train/step") == list(range(ROWS))


def test_lost_rows_go_unnoticed_by_the_client(backend: Backend, tmp_path: Path) -> None:
    """Its exit code says nothing: whoever wants to know has to ask the service."""
    backend.fail("stream", Kind.lossy)
    assert wandb_script(LOGGING, tmp_path).returncode == 0
    assert len(backend.run("p", "r").rows) < ROWS
