"""Tiny runs for the training tests."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ablate.config import Config, dump, parse, run_id
from ablate.data import TokenData, fingerprint, prepare
from ablate.record import Claim, RunFolder, create_run, read_series
from ablate.train import Outcome, train

TINY: dict[str, dict[str, Any]] = {
    "model": {"layers": 2, "width": 32, "heads": 2, "context": 16},
    "data": {"source": "synthetic", "tokens": 20_000, "vocab_size": 64, "val_tokens": 512},
    "optim": {"steps": 24, "batch": 8},
    "probe": {"every": 4},
    "eval": {"every": 6},
    "run": {"device": "cpu", "checkpoint_every": 5},
}


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    """Not `setup_process`: it flushes denormals, and other tests of this process draw such floats."""
    torch.set_num_threads(1)


@dataclass(frozen=True)
class Bench:
    """Makes configurations, folders and runs below one root."""

    root: Path

    def config(self, changes: Mapping[str, Mapping[str, Any]] | None = None, **rest: Any) -> Config:
        changes = changes or {}
        sections = {name: {**TINY.get(name, {}), **changes.get(name, {})} for name in {*TINY, *changes}}
        return parse({**sections, **rest})

    def folder(self, config: Config, study: str = "t") -> RunFolder:
        name = run_id(config, fingerprint(config.data))
        return create_run(self.root, study, "run", name, dump(config))

    def data(self, config: Config) -> TokenData:
        return prepare(config.data, config.model.context)

    def train(self, config: Config, study: str = "t", **how: Any) -> tuple[RunFolder, Outcome]:
        folder = self.folder(config, study)
        claim = Claim.take(folder)
        how.setdefault("announce", lambda _: None)
        outcome = train(folder, claim, config, self.data(config), **how)
        claim.finish("done" if outcome.ending != "preempted" else "preempted")
        return folder, outcome


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


Rows = dict[str, NDArray[np.float64]]


@pytest.fixture
def rows_of() -> Callable[[RunFolder], Rows]:
    """All compared rows of a run by cadence; timings are outside every comparison."""

    def read(folder: RunFolder) -> Rows:
        return {cadence: read_series(folder.metrics(cadence)).values_RC for cadence in ("", "val", "probe")}

    return read


@pytest.fixture
def same() -> Callable[[Rows, Rows], bool]:
    def equal(a: Rows, b: Rows) -> bool:
        return all(np.array_equal(a[cadence], b[cadence], equal_nan=True) for cadence in a)

    return equal
