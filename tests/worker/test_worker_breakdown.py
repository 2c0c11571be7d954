"""A run that breaks down with finite values, from its worker to a closer look at it."""

import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ablate.worker.run
from ablate.cli import main
from ablate.config import dump, run_id
from ablate.data import fingerprint
from ablate.record import Run, RunFolder, State, create_run, read_json, read_series, read_status
from ablate.train import Interrupts
from ablate.train.checkpoint import RING, steps
from ablate.worker.run import End, carry_out

EVERY, STEPS = 4, 80
CONSTANT = {"clip": 0, "warmup": 60, "schedule": "constant", "steps": STEPS}
EXPLODES: dict[str, Any] = {"optim": {**CONSTANT, "lr": 1}, "run": {"checkpoint_every": EVERY}}
COLLAPSES: dict[str, Any] = {
    **EXPLODES,
    "optim": {**CONSTANT, "lr": 0.3},
    "model": {"placement": "post"},
}


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Callable[[RunFolder], End]:
    """Carries out a folder in this process, whose settings stay as they are."""
    monkeypatch.setattr(ablate.worker.run, "setup_process", lambda _: None)

    def carry(folder: RunFolder) -> End:
        with Interrupts() as interrupts:
            return carry_out(folder, interrupts, refuse=print)

    return carry


@pytest.fixture(scope="module")
def exploded(tmp_path_factory: pytest.TempPathFactory, config_of: Any, work: Any) -> RunFolder:
    """A run that explodes in the middle, trained by a worker process without interruption."""
    config = config_of(EXPLODES)
    name = run_id(config, fingerprint(config.data))
    folder = create_run(tmp_path_factory.mktemp("exploded"), "t", "run", name, dump(config))
    assert work(folder) == (0, "")
    return folder


@pytest.fixture
def ablate_command(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def command(*words: str) -> tuple[int, str]:
        capfd.readouterr()
        code = main(words)
        return code, capfd.readouterr().out

    return command


def newest_before(onset: int) -> int:
    return (onset - 1) // EVERY * EVERY


def test_what_stays_of_an_explosion_is_where_a_closer_look_begins(
    exploded: RunFolder, ablate_command: Any
) -> None:
    folder = exploded
    summary = read_json(folder.summary)
    onset = summary["onset_step"]
    assert (summary["verdict"], summary["first_bad_step"]) == ("diverged", None)
    assert onset == Run(folder).verdict().onset
    assert EVERY < onset < STEPS - 4 * EVERY, "the ring would have kept it"
    start = newest_before(onset)
    assert steps(folder.checkpoint) == [start]
    command = shown_command(ablate_command, folder, onset, f"the checkpoint of step {start}")
    code, out = ablate_command(*command)
    assert code == 0, out
    assert f"beginning at the checkpoint of step {start}, probing every step" in out
    assert f"exact: {STEPS - start} rows" in out
    again = RunFolder(folder.reruns / "001")
    assert list(read_series(again.metrics("probe")).steps)[-(STEPS - start) :] == list(range(start, STEPS))
    assert f"around step {onset}" in ablate_command("show", str(again.path))[1]


def shown_command(ablate_command: Any, folder: RunFolder, onset: int, begins: str) -> list[str]:
    """The command that the page of a run suggests, without `ablate`."""
    code, out = ablate_command("show", str(folder.path))
    assert code == 0
    assert re.search(rf"^broke down +at step {onset}$", out, re.MULTILINE)
    assert f"begins at {begins}" in out
    (line,) = re.findall(r"ablate (rerun \S+ --from-step \d+)$", out, re.MULTILINE)
    words = str(line).split()
    assert words == ["rerun", str(folder.path), "--from-step", str(onset - 1)]
    return words


def test_what_stays_of_a_collapse(queued: Any, here: Any) -> None:
    folder = queued(COLLAPSES)
    assert here(folder) is End.done
    summary = read_json(folder.summary)
    assert summary["verdict"] == "collapsed"
    assert EVERY < summary["onset_step"] < STEPS - 4 * EVERY
    assert steps(folder.checkpoint) == [newest_before(summary["onset_step"])]


def test_a_healthy_run_keeps_its_weights_alone(whole: RunFolder, ablate_command: Any) -> None:
    summary = read_json(whole.summary)
    assert (summary["verdict"], summary["onset_step"]) == ("stable", None)
    assert steps(whole.checkpoint) == []
    assert (whole.checkpoint / "final" / "model.safetensors").is_file()
    out = ablate_command("show", str(whole.path))[1]
    assert "broke down" not in out
    assert "--from-step" not in out


def test_where_no_checkpoint_is_left_the_page_says_so(
    exploded: RunFolder, tmp_path: Path, ablate_command: Any
) -> None:
    folder = RunFolder(tmp_path / "t" / exploded.path.name)
    shutil.copytree(exploded.path, folder.path, ignore=shutil.ignore_patterns("step-*"))
    onset = read_json(folder.summary)["onset_step"]
    shown_command(ablate_command, folder, onset, "step 0: no checkpoint remains")


def test_killed_and_resumed_it_pins_the_same(
    queued: Any, start: Any, work: Any, same_rows: Any, exploded: RunFolder
) -> None:
    folder, kept = queued(EXPLODES, study="killed"), steps(exploded.checkpoint)
    process = start(folder)
    # By then the ring has passed it: after the resume it has to be known by the rows on the disk.
    while process.poll() is None and len(read_series(folder.metrics())) <= kept[0] + 4 * EVERY:
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert read_status(folder).state is State.killed
    present = steps(folder.checkpoint)
    assert kept[0] in present[:-RING]
    assert work(folder)[0] == 0
    assert f"resuming at step {present[-1]}" in folder.stdout.read_text()
    assert same_rows(folder, exploded)
    assert read_json(folder.summary) == read_json(exploded.summary)
    assert steps(folder.checkpoint) == kept
