"""How long a sweep takes: from measured runs, and with as many at once as the launch would have."""

import socket
from pathlib import Path

import pytest

from ablate.config import Config, dump, flatten, parse
from ablate.record import Claim, SeriesWriter, create_run, write_json
from ablate.sweep import estimate_time, slots
from ablate.view import time_words

STEPS = 100


@pytest.fixture(autouse=True)
def _one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "usable_cores", lambda: 1)
    monkeypatch.setenv(slots.GPUS_VARIABLE, "")


def config(seed: int = 0, jobs: int | None = None, steps: int = STEPS) -> Config:
    return parse({"seed": seed, "sweep": {"jobs": jobs}, "optim": {"steps": steps}})


def measure(root: Path, seconds: float) -> None:
    """A recorded run of this machine that took so many seconds a step."""
    folder = create_run(root, "s", "x", "0123456789ab", dump(config()))
    write_json(
        folder.meta, {"config": flatten(config()), "environment": {"host": socket.gethostname()}, "data": {}}
    )
    with SeriesWriter(Claim.take(folder), "timing", ("step", "seconds"), 0) as writer:
        writer.append([[10, 10 * seconds]])


@pytest.mark.parametrize(
    ("jobs", "runs", "words"),
    [
        (None, 6, "about 3 min 00 s, one run after another, by 1 run measured here"),
        (2, 6, "about 1 min 30 s, 2 runs at once, by 1 run measured here"),
        (4, 6, "about 45 s, 4 runs at once, by 1 run measured here"),
        (10, 3, "about 30 s, 3 runs at once, by 1 run measured here"),
    ],
)
def test_runs_at_once_share_the_time(tmp_path: Path, jobs: int | None, runs: int, words: str) -> None:
    measure(tmp_path, 0.3)
    assert time_words(estimate_time(tmp_path, [config(seed, jobs) for seed in range(runs)])) == words


def test_runs_of_unknown_time_are_not_in_the_estimate(tmp_path: Path) -> None:
    measure(tmp_path, 0.3)
    wide = [parse({"model": {"width": width}}) for width in (32, 128)]
    assert time_words(estimate_time(tmp_path, [config(), config(1), *wide])) == (
        "about 1 min 00 s for 2 of them, one run after another, by 1 run measured here; "
        "the time of the other 2 runs is unknown and comes on top"
    )


def test_no_study_is_over_before_its_longest_run(tmp_path: Path) -> None:
    measure(tmp_path, 0.3)
    time = estimate_time(tmp_path, [config(0, 2, 10), config(1, 2, 1000)])
    assert (time.seconds, time.elapsed) == pytest.approx((303.0, 300.0))


def test_gpus_limit_the_runs_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure(tmp_path, 0.3)
    monkeypatch.setenv(slots.GPUS_VARIABLE, "a,b")
    assert estimate_time(tmp_path, [config(seed, 8) for seed in range(6)]).slots == 2


def test_without_a_measured_run_there_is_no_time(tmp_path: Path) -> None:
    assert time_words(estimate_time(tmp_path, [config()])) == "time unknown until a run is measured"
    assert time_words(estimate_time(tmp_path, [])) == "no time"
