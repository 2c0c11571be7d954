"""What goes into a launch and what comes out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ablate.config import Config, Device, OnFailure
from ablate.record import RunFolder, State


@dataclass(frozen=True)
class Task:
    """One run to carry out. `timeout`: seconds one attempt may take; `gpu`: does it take one, if there is?"""

    folder: RunFolder
    timeout: float | None = None
    threads: int = 1
    gpu: bool = False

    @classmethod
    def of(cls, folder: RunFolder, config: Config) -> "Task":
        """The task that a run's present configuration describes."""
        run = config.run
        return cls(folder, run.timeout, run.threads, run.device is not Device.cpu)


@dataclass(frozen=True)
class Terms:
    """How a launch goes about its tasks. `jobs`: runs at once (None: one per core or GPU); `wait`: for runs
    that another process trains, instead of reporting them as `running`.
    """

    jobs: int | None = None
    retries: int = 1
    on_failure: OnFailure = OnFailure.carry_on
    wait: bool = True

    @classmethod
    def of(cls, config: Config) -> "Terms":
        """The terms that a request's configuration asks for."""
        return cls(config.sweep.jobs, config.sweep.retries, config.sweep.on_failure)


@dataclass(frozen=True)
class Result:
    """What became of one run handed to the launcher.

    `reason`: the cause, for a run that is not done; `log`: the last lines that a failed one printed.
    """

    folder: RunFolder
    state: State
    reason: str | None = None
    log: str = ""


class Watch(Protocol):
    """Whoever follows a launch: called from the launcher's loop, must return quickly."""

    def tick(self, at_work: Sequence[RunFolder]) -> None:
        """The runs at work now (called several times a second)."""

    def ended(self, result: Result) -> None:
        """A run has ended."""

    def note(self, text: str) -> None:
        """Something happened that people should know: a new try, a wait."""


class WorkerError(RuntimeError):
    """The process that runs are forked from cannot start, or keeps dying: a fault of the machine or the
    installation.
    """
