"""Carry out frozen runs: several at once, each in a process of its own, and nothing left behind.

The run folders are the only word between launcher and runs: the launcher hands over their paths and reads
their status files. docs/sweeps.md says what a death, a timeout or an interruption leads to.
"""

import contextlib
import signal
from collections.abc import Iterator, Sequence

from ablate.sweep.pool import POLL_S, Pool
from ablate.sweep.task import Result, Task, Terms, Watch, WorkerError

__all__ = ["Interrupted", "Result", "Task", "Terms", "Watch", "WorkerError", "launch"]


class Interrupted(Exception):
    """The launch was stopped from outside; `results` tells how far it got, `signal` by what."""

    def __init__(self, results: Sequence[Result], number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.results, self.number = tuple(results), number


def launch(
    tasks: Sequence[Task], watch: Watch, terms: Terms | None = None, poll: float = POLL_S
) -> tuple[Result, ...]:
    """Train every run; a failed one stops the others only with `on_failure: stop`.

    Runs that another process trains are left to it and looked at again until they have ended.
    Raises WorkerError when the process that runs are forked from cannot start or keeps dying; Interrupted on
    SIGINT or SIGTERM, after the runs have stopped: they are left preempted, with checkpoints. A second signal
    kills them.
    """
    signals: list[int] = []
    with _noted(signals):
        pool = Pool(tasks, watch, terms or Terms(), poll, signals)
        pool.work()
    if signals:
        raise Interrupted(pool.queue.results, signals[0])
    return tuple(pool.queue.results)


@contextlib.contextmanager
def _noted(signals: list[int]) -> Iterator[None]:
    """SIGINT and SIGTERM are only written down while the launcher works."""

    def note(number: int, _frame: object) -> None:
        signals.append(number)

    old = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
