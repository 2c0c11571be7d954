"""Tiny run folders, and real worker processes on them."""

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ablate.config import Config, dump, parse, run_id
from ablate.data import fingerprint
from ablate.record import RunFolder, create_run

TINY: dict[str, dict[str, Any]] = {
    "model": {"layers": 2, "width": 32, "heads": 2, "context": 16},
    "data": {"source": "synthetic", "tokens": 20_000, "vocab_size": 64, "val_tokens": 512},
    "optim": {"steps": 60, "batch": 8},
    "probe": {"every": 4},
    "eval": {"every": 15},
    "run": {"device": "cpu", "checkpoint_every": 11},
}
Make = Callable[..., RunFolder]


@pytest.fixture(scope="session")
def config_of() -> Callable[[Mapping[str, Mapping[str, Any]]], Config]:
    def make(changes: Mapping[str, Mapping[str, Any]]) -> Config:
        return parse({name: {**TINY.get(name, {}), **changes.get(name, {})} for name in {*TINY, *changes}})

    return make


@pytest.fixture
def queued(tmp_path: Path, config_of: Any) -> Make:
    """A run folder in state queued."""

    def make(
        changes: Mapping[str, Mapping[str, Any]] | None = None, study: str = "t", code_sha: str | None = None
    ) -> RunFolder:
        config = config_of(changes or {})
        name = run_id(config, fingerprint(config.data))
        return create_run(tmp_path, study, "run", name, dump(config), code_sha)

    return make


@pytest.fixture(scope="session")
def start() -> Callable[..., "subprocess.Popen[str]"]:
    """Starts `python -m ablate.worker` on folders."""

    def begin(*folders: RunFolder, flags: Sequence[str] = (), **how: Any) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "ablate.worker", *flags, *(str(f.path) for f in folders)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)

    return begin


@pytest.fixture(scope="session")
def work(start: Any) -> Callable[..., tuple[int, str]]:
    """Runs a worker to its end: exit code and stderr."""

    def run(*folders: RunFolder, **how: Any) -> tuple[int, str]:
        process = start(*folders, **how)
        _, errors = process.communicate(timeout=120)
        return process.returncode, errors

    return run


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory, config_of: Any, work: Any) -> RunFolder:
    """An uninterrupted run of the configuration that `queued` has by default."""
    config = config_of({})
    name = run_id(config, fingerprint(config.data))
    folder = create_run(tmp_path_factory.mktemp("whole"), "whole", "run", name, dump(config))
    assert work(folder) == (0, "")
    return folder
