"""The loopback backend: what plain W&B clients send arrives there, whole and in order."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
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
