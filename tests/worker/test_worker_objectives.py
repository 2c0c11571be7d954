"""Encoders and encoder_decoders through real worker processes: killed, resumed, and nobody can tell."""

import time
from typing import Any

import pytest

from ablate.record import RunFolder, State, read_json, read_series, read_status

OBJECTIVES = {"masked": "encoder", "prefix": "encoder_decoder", "span": "encoder_decoder"}


@pytest.mark.slow  # tests/train does the same without processes
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_killed_and_resumed_is_the_uninterrupted_run(
    queued: Any, start: Any, work: Any, same_rows: Any, objective: str
) -> None:
    changes = {
        "model": {"stack": OBJECTIVES[objective]},
        "data": {"objective": objective},
        "optim": {"steps": 240},
    }
    whole, folder = (queued(changes, study=study) for study in ("whole", "killed"))
    assert work(whole) == (0, "")
    process = start(folder)
    while process.poll() is None and not _rows(folder) > 12:  # beyond the first checkpoint
        time.sleep(0.005)
    process.kill()
    process.communicate()
    assert read_status(folder).state is State.killed
    assert work(folder) == (0, "")
    assert same_rows(folder, whole)
    assert read_json(whole.meta)["config"]["data.objective"] == objective
    assert read_json(whole.summary)["verdict"] != "diverged"
    loss = read_series(whole.metrics("val")).column("val/loss")
    assert loss[-1] < loss[0]


def _rows(folder: RunFolder) -> int:
    return len(folder.metrics().read_bytes().splitlines()) if folder.metrics().exists() else 0
