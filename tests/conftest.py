"""What every test shares: one thread, a cache folder of the session's own, and a comparison of runs."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_CACHE = "ABLATE_CACHE"
_OWNER = "ABLATE_TEST_CACHE_OWNER"

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["WANDB_MODE"] = "disabled"  # only the mirror's own tests start it


def pytest_configure(config: pytest.Config) -> None:
    """Share one fresh cache among the parallel workers, which inherit the controller's environment."""
    if _OWNER not in os.environ:
        os.environ[_CACHE] = tempfile.mkdtemp(prefix="ablate-test-cache-")
        os.environ[_OWNER] = str(os.getpid())


def pytest_unconfigure(config: pytest.Config) -> None:
    if os.environ.get(_OWNER) == str(os.getpid()):
        shutil.rmtree(Path(os.environ[_CACHE]), ignore_errors=True)


@pytest.fixture
def same_rows() -> Callable[[Any, Any], bool]:
    """Do two runs (their folders) have the same rows in every compared cadence?"""
    import numpy as np  # only once the number of threads stands in the environment

    from ablate.record import read_series

    def equal(a: Any, b: Any) -> bool:
        pairs = [(read_series(a.metrics(c)), read_series(b.metrics(c))) for c in ("", "val", "probe")]
        return all(
            x.columns == y.columns and np.array_equal(x.values_RC, y.values_RC, equal_nan=True)
            for x, y in pairs
        )

    return equal
