"""Launches with a mirror: said once, refused early, never in the way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ablate.mirror import read_ledger
from ablate.record import State, find_runs, read_status

pytestmark = [pytest.mark.wandb, pytest.mark.usefixtures("no_account")]
SMALL = [
    "model=tiny",
    "data.source=synthetic",
    "data.tokens=20000",
    "data.vocab_size=64",
    "data.val_tokens=256",
]
WAIT_S = 300.0  # only so that a hang ends


def ablate(root: Path, *words: str, **env: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "ablate", *words, f"run.root={root / 'runs'}", "study=w"]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
        cwd=root,
        env={**os.environ, **env},
    )


def test_online_without_a_key_is_refused_before_anything_is_begun(tmp_path: Path) -> None:
    for command in ("train", "sweep"):
        done = ablate(tmp_path, command, *SMALL, "optim.steps=4", "tracker.mode=online")
        assert done.returncode == 2
        assert "no W&B API key" in done.stderr
        assert find_runs(tmp_path / "runs") == []


@pytest.mark.slow
def test_a_sweep_mirrors_its_runs_and_says_where_once(tmp_path: Path) -> None:
    words = ["sweep", *SMALL, "optim.steps=30", "model.bias=none,all", "tracker.finish_timeout=300"]
    done = ablate(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if line.startswith("W&B")]
    assert len(said) == 2
    assert said[0].startswith("W&B: offline (no API key was found)")
    assert said[1].startswith("W&B: 2 mirrored")
    runs = find_runs(tmp_path / "runs", "w")
    assert all((ledger := read_ledger(run.path)) and ledger.offline for run in runs)
    names = [path.name for path in (tmp_path / "runs/w/wandb").glob("offline-run-*")]
    assert len(names) == 3
    assert any("study-w" in name for name in names)
    again = ablate(tmp_path, *words)
    assert again.returncode == 0
    assert "W&B" not in again.stdout, "nothing to train, nothing to mirror"


@pytest.mark.slow
def test_a_mirror_that_cannot_work_does_not_reach_training(tmp_path: Path) -> None:
    """The service is not there, and the mirror's folder cannot be made."""
    home = tmp_path / "runs" / "w"
    home.mkdir(parents=True)
    (home / "wandb").write_text("in the way")
    words = ["train", *SMALL, "optim.steps=10", "tracker.finish_timeout=1"]
    key = {"WANDB_API_KEY": "k" * 40, "WANDB_BASE_URL": "http://127.0.0.1:9"}
    done = ablate(tmp_path, *words, **key)
    assert done.returncode == 0, done.stderr
    assert "W&B: not mirrored" in done.stdout
    (home / "wandb").unlink()
    done = ablate(tmp_path, *words, "seed=1", **key)
    assert done.returncode == 0, done.stderr
    assert all(read_status(run).state is State.done for run in find_runs(tmp_path / "runs", "w"))
