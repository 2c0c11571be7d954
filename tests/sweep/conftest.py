"""Tiny runs of 12 steps on a synthetic source; watches; a look for processes that were left behind."""

import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from ablate.record import RunFolder, read_series, read_status
from ablate.sweep import Result

PATIENCE_S = 120.0


class Recorder:
    """A watch that remembers, and may do something when runs are seen at work."""

    def __init__(self, at_work: Callable[[RunFolder], None] | None = None) -> None:
        self.results: list[Result] = []
        self.notes: list[str] = []
        self.most = 0
        self.at_work = at_work

    def tick(self, at_work: Sequence[RunFolder]) -> None:
        self.most = max(self.most, len(at_work))
        for folder in at_work:
            if self.at_work is not None:
                self.at_work(folder)

    def ended(self, result: Result) -> None:
        self.results.append(result)

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def tiny(tmp_path: Path) -> list[str]:
    """Overrides of a run that takes a fraction of a second, under a root of the test's own."""
    return [
        "model=tiny", "model.context=16", "data=synthetic", "data.tokens=4000", "data.vocab_size=32",
        "data.val_tokens=256", "optim.batch=4", "optim.steps=12", "study=t", f"run.root={tmp_path / 'runs'}",
    ]  # fmt: skip


@pytest.fixture
def recorder() -> type[Recorder]:
    return Recorder


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[int]]]:
    """Processes started from here on, by a mark in their environment; none may be left at the test's end."""
    mark = f"ABLATE_TEST_MARK={uuid.uuid4().hex}"
    monkeypatch.setenv(*mark.split("="))

    def alive() -> list[int]:
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _bears(pid, mark)]

    yield alive
    wait_for(lambda: not alive())


def _bears(pid: int, mark: str) -> bool:
    try:
        return mark.encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


@pytest.fixture(name="wait_for")
def _wait_for() -> Callable[[Callable[[], bool]], None]:
    return wait_for


@pytest.fixture
def pid_of() -> Callable[[RunFolder], int]:
    """The process that has a run."""

    def pid(folder: RunFolder) -> int:
        owner = read_status(folder).owner
        assert owner is not None
        return owner.pid

    return pid


@pytest.fixture
def rows() -> Callable[[RunFolder], int]:
    """How many rows a run has."""
    return lambda folder: len(read_series(folder.metrics()))
