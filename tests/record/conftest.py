"""Run folders to write into."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ablate.config import dump, parse
from ablate.record import RunFolder, create_run

RUN_ID = "0123456789ab"


@pytest.fixture(scope="session")
def config_text() -> str:
    """A whole configuration, 20 steps long."""
    return dump(parse({"optim": {"steps": 20, "warmup": 2}}))


@pytest.fixture
def folder(tmp_path: Path, config_text: str) -> RunFolder:
    """A queued run."""
    return create_run(tmp_path, "study", "slug", RUN_ID, config_text)


@pytest.fixture
def new_folder(tmp_path: Path) -> Callable[[], RunFolder]:
    """As many queued runs as asked for, with a configuration that nobody reads."""
    count = iter(range(1_000_000))

    def make() -> RunFolder:
        return create_run(tmp_path, "many", "slug", f"{next(count):012x}", "unread: true\n")

    return make
