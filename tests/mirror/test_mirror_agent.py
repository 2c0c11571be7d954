"""A W&B sweep whose agent starts `ablate train`: the example of the documentation, end to end."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.mirror.backend.server import Backend

from ablate.mirror import rows_of
from ablate.record import Run, State, find_runs, read_status

pytestmark = [pytest.mark.wandb, pytest.mark.slow]
EXAMPLE = Path(__file__).parents[2] / "docs" / "wandb_sweep.yaml"
TINY = (
    "model=tiny", "model.context=16", "data=synthetic", "data.tokens=4000", "data.vocab_size=32",
    "data.val_tokens=256", "optim.batch=4",
)  # fmt: skip
WAIT_S = 600.0  # a limit, not an expectation


def wandb(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "wandb", *words],
        cwd=folder, capture_output=True, text=True, timeout=WAIT_S, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def small(example: dict[str, Any]) -> dict[str, Any]:
    """The example with a tiny model, and four of its runs."""
    head, tail = example["command"][:-1], example["command"][-1]
    parameters = {**example["parameters"], "optim.steps": {"value": 20}, "seed": {"value": 0}}
    parameters["optim.lr"] = {"values": example["parameters"]["optim.lr"]["values"][:2]}
    return {**example, "command": [*head, *TINY, tail], "parameters": parameters}


def test_an_agent_trains_each_combination_into_its_own_run(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "ablate").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ablate "$@"\n')
    (tools / "ablate").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "sweep.yaml").write_text(
        yaml.safe_dump(small(yaml.safe_load(EXAMPLE.read_text())), sort_keys=False)
    )
    made = wandb(tmp_path, "sweep", "--project", "swept", "sweep.yaml")
    agent = re.search(r"wandb agent (\S+)", made)
    assert agent is not None, made
    wandb(tmp_path, "agent", agent[1])

    folders = find_runs(tmp_path / "runs", "agents")
    assert Counter(read_status(folder).state for folder in folders) == {State.done: 4}
    runs = {run.config["run_id"]: run for run in backend.runs("swept") if run.fields["jobType"] == "train"}
    assert sorted(run.name for run in runs.values()) == ["grid0001", "grid0002", "grid0003", "grid0004"]
    assert {run.fields["sweep"] for run in runs.values()} == {"sweep1"}
    assert not backend.store.unknown
    for folder in folders:
        run, record = runs[folder.id], Run(folder)
        rows = rows_of(record, record.config.tracker.rows, ended=True)
        assert run.column("train/loss") == [row["train/loss"] for row in rows if "train/loss" in row]
        assert len(run.rows) == len(rows)
        assert run.config["axis_lr"] == record.config.optim.lr
        assert run.summary["verdict"] == record.summary["verdict"]
