"""A W&B backend of the test's own, and an environment in which clients talk to it and to nothing else."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.mirror.backend.server import KEY, Backend


@pytest.fixture
def no_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No key, no settings of a person's own, nothing but this folder to write to (it is returned)."""
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("NETRC", str(home / "netrc"))
    for name in ("CACHE", "CONFIG", "DATA"):
        monkeypatch.setenv(f"WANDB_{name}_DIR", str(home / name.lower()))
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    return home


@pytest.fixture
def backend(no_account: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Backend]:
    """A fresh backend; processes that the test starts use it, with its key."""
    server = Backend()
    monkeypatch.setenv("WANDB_BASE_URL", server.url)
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    try:
        yield server
    finally:
        server.close()
