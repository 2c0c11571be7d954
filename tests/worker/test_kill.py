"""kill −9 at random moments, resume, and nobody can tell."""

import random
import time
from typing import Any

import pytest

from ablate.record import RunFolder, State, read_status


def kill_and_resume(queued: Any, start: Any, work: Any, kills: int, seed: int) -> tuple[RunFolder, int]:
    """A run killed `kills` times soon after it began to write; how many kills found it at work."""
    chance, folder, struck = random.Random(seed), queued(study=f"killed{seed}"), 0
    for _ in range(kills):
        process = start(folder)
        before = folder.metrics().read_bytes() if folder.metrics().exists() else b""
        while process.poll() is None and _untouched(folder, before):
            time.sleep(0.001)
        time.sleep(chance.uniform(0.0, 0.25))
        process.kill()
        process.communicate()
        struck += read_status(folder).state is State.killed
    assert work(folder)[0] == 0
    return folder, struck


def _untouched(folder: RunFolder, before: bytes) -> bool:
    return not folder.metrics().exists() or folder.metrics().read_bytes() == before


def check(queued: Any, start: Any, work: Any, kills: int, seed: int) -> RunFolder:
    folder, struck = kill_and_resume(queued, start, work, kills, seed)
    assert struck > 0
    assert read_status(folder).state is State.done
    return folder


def test_killed_and_resumed_rows_are_those_of_the_uninterrupted_run(
    queued: Any, start: Any, work: Any, same_rows: Any, whole: RunFolder
) -> None:
    assert same_rows(check(queued, start, work, kills=2, seed=0), whole)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
def test_killed_many_times(
    queued: Any, start: Any, work: Any, same_rows: Any, whole: RunFolder, seed: int
) -> None:
    assert same_rows(check(queued, start, work, kills=6, seed=seed), whole)
