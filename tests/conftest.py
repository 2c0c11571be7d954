"""Settings that every test shares: one thread, and a cache folder of the session's own."""

import os
import shutil
import tempfile
from pathlib import Path

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
