"""Tiny runs through the command line, in the test's process (their workers are processes of their own)."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ablate.cli import main

TINY = (
    "model=tiny", "model.context=16", "data=synthetic", "data.tokens=4000", "data.vocab_size=32",
    "data.val_tokens=256", "optim.batch=4", "optim.steps=12",
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """Exit code and what was printed."""

    code: int
    out: str
    err: str


Ablate = Callable[..., Outcome]


@pytest.fixture
def ablate(capfd: pytest.CaptureFixture[str]) -> Ablate:
    """Run a command: `ablate("train", *overrides)`."""

    def command(*words: str) -> Outcome:
        capfd.readouterr()
        code = main(words)
        captured = capfd.readouterr()
        return Outcome(code, captured.out, captured.err)

    return command


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Overrides of a run of 12 steps; the test works in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return (*TINY, "study=t")
