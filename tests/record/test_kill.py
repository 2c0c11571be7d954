"""kill -9 of real writers at random moments: every step is read exactly once, with the right values."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from ablate.record import Claim, RunFolder, State, read_series, read_status

LAST = 4000  # far more steps than a writer gets to before it is killed

WRITER = """
    import sys, time
    from pathlib import Path
    import numpy as np
    from ablate.record import Claim, RunFolder, SeriesWriter, read_series

    def row(step):
        return [step, float(np.sin(step)), float("nan") if step % 5 == 0 else step / 3, *[step * 0.1] * 400]

    folder = RunFolder(Path(sys.argv[1]))
    start, last, pause = int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    claim = Claim.take(folder)
    columns = ["step", "a", "b", *(f"c{i}" for i in range(400))]
    writer = SeriesWriter(claim, "", columns, start)
    print("ready", flush=True)
    for step in range(start, last, 2):
        writer.append([row(step), row(step + 1)])
        time.sleep(pause)
"""


def start_writer(folder: RunFolder, start: int, last: int, pause: float) -> "subprocess.Popen[str]":
    arguments = [str(folder.path), str(start), str(last), str(pause)]
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), *arguments], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def check_rows(folder: RunFolder, count: int) -> None:
    found = read_series(folder.metrics())
    steps = np.arange(count)
    assert np.array_equal(found.steps, steps)
    assert np.array_equal(found.column("a"), np.sin(steps))
    assert np.array_equal(found.column("b"), np.where(steps % 5 == 0, np.nan, steps / 3), equal_nan=True)
    assert np.array_equal(found.column("c399"), steps * 0.1)


@pytest.mark.parametrize("seed", range(2))
def test_killed_writers_and_their_successors_leave_each_step_once(folder: RunFolder, seed: int) -> None:
    rng = random.Random(seed)
    start = 0
    for _ in range(4):
        writer = start_writer(folder, start, LAST, pause=0.0005)
        time.sleep(rng.uniform(0.0, 0.08))
        writer.kill()
        writer.communicate()
        assert writer.returncode == -signal.SIGKILL
        assert read_status(folder).state is State.killed
        rows = len(read_series(folder.metrics()))
        check_rows(folder, rows)
        start = rng.randint(max(0, rows - 30), rows) // 2 * 2  # the newest checkpoint lies a little before
    writer = start_writer(folder, start, start + 20, pause=0)
    writer.communicate(timeout=30)
    assert writer.returncode == 0
    check_rows(folder, start + 20)


def test_a_writer_that_was_only_halted_cannot_disturb_its_successor(folder: RunFolder) -> None:
    """Halted, believed dead on another machine, superseded, and set going again."""
    writer = start_writer(folder, 0, LAST, pause=0.0005)
    time.sleep(0.05)
    writer.send_signal(signal.SIGSTOP)
    rows = len(read_series(folder.metrics()))
    for path in (folder.status, folder.claim(1)):
        path.write_text(path.read_text().replace(os.uname().nodename, "elsewhere"))
        os.utime(path, (0, 0))
    successor = start_writer(folder, rows // 2 * 2, rows // 2 * 2 + 200, pause=0.0005)
    writer.send_signal(signal.SIGCONT)
    writer.communicate(timeout=30)
    assert writer.returncode == 1  # Superseded
    successor.communicate(timeout=30)
    assert successor.returncode == 0
    check_rows(folder, rows // 2 * 2 + 200)
    with pytest.raises(ValueError, match="superseded"):
        Claim(folder, 1, Claim.take(folder).owner).check()
