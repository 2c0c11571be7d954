"""Following a run that is being written."""

import io
from pathlib import Path

import pytest

from ablate.config import dump, parse
from ablate.record import RunFolder, State, write_json
from ablate.sweep import Result
from ablate.view import Follower, Progress, last_row

HEADER = '{"schema":1,"columns":["step","train/loss"],"attempt":1,"from_step":0}\n'
SUMMARY = {"verdict": "stable", "reasons": [], "final/val/loss": 3.25}
SUMMARY |= {"final/val/step": 100, "planned_steps": 100}
FULL_HEADER = HEADER.replace('"train/loss"', '"train/loss","train/unigram","grad/norm"')


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "step", "loss"),
    [
        (HEADER + "[0,6.25]\n[1,6.0]\n", 1, 6.0),
        (HEADER + "[0,6.25]\n[1,6.", 0, 6.25),
        (HEADER + '[0,6.25]\n[1,"NaN"]\n', 1, float("nan")),
        (HEADER + "[0,1.5]\n[1,2.5]\n" + HEADER.replace("step\":0", "step\":1") + "[1,3.5]\n", 1, 3.5),
    ],
)  # fmt: skip
def test_the_newest_complete_row(tmp_path: Path, text: str, step: int, loss: float) -> None:
    row = last_row(write(tmp_path / "m.jsonl", text))
    assert row is not None
    assert row.step == step
    assert row.get("train/loss") == pytest.approx(loss, nan_ok=True)


@pytest.mark.parametrize("text", ["", HEADER, HEADER[:20], HEADER + "[0,", HEADER + "[0,1,2]\n", "[0,1]\n"])
def test_no_row_yet(tmp_path: Path, text: str) -> None:
    assert last_row(write(tmp_path / "m.jsonl", text)) is None
    assert last_row(tmp_path / "absent.jsonl") is None


def test_a_long_file_is_read_from_its_end(tmp_path: Path) -> None:
    rows = "".join(f"[{t},{t / 7!r}]\n" for t in range(20_000))
    row = last_row(write(tmp_path / "m.jsonl", HEADER + rows))
    assert row is not None
    assert row.get("train/loss") == 19_999 / 7


def test_speed_and_time_left(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    follower = Follower(folder, steps=101)
    follower.look(0.0)
    assert (follower.step, follower.eta()) == (0, None)
    write(folder.metrics(), HEADER + "[0,6.0]\n")
    follower.look(10.0)
    assert (follower.step, follower.speed()) == (1, None)
    write(folder.metrics(), HEADER + "[0,6.0]\n[20,5.0]\n")
    follower.look(20.0)
    assert (follower.step, follower.loss, follower.speed(), follower.eta()) == (21, 5.0, 2.0, 40.0)


def quiet_progress(
    tmp_path: Path, clock: list[float], runs: int = 2
) -> tuple[Progress, list[RunFolder], io.StringIO]:
    config = parse({"optim": {"steps": 100}})
    folders = [RunFolder(tmp_path / f"made-{i:012x}") for i in range(runs)]
    for folder in folders:
        folder.path.mkdir()
        folder.config.write_text(dump(config))
    out = io.StringIO()
    return Progress({f.name: config for f in folders}, out, lambda: clock[0]), folders, out


def test_lines_without_a_terminal_are_few_and_tell_what_failed(tmp_path: Path) -> None:
    clock = [100.0]
    progress, (first, second), out = quiet_progress(tmp_path, clock)
    with progress:
        for step in range(100):
            clock[0] += 1.0
            rows = "".join(f"[{t},6.0,5.0,1.0]\n" for t in range(step + 1))
            write(first.metrics(), FULL_HEADER + rows)
            progress.tick([first])
        write_json(
            first.summary,
            {
                "verdict": "stable",
                "reasons": [],
                "final/val/loss": 3.25,
                "final/val/step": 100,
                "planned_steps": 100,
            },
        )
        progress.ended(Result(first, State.done))
        progress.tick([second])
        progress.ended(Result(second, State.failed, "the worker was killed by SIGSEGV", "last\x1b[2J words"))
    lines = out.getvalue().splitlines()
    assert lines[0] == f"[1/2] {first.name}: started"
    between = [line for line in lines if "step" in line]
    assert 5 <= len(between) <= 10
    assert "loss 6.000" in between[0]
    assert "so far" in between[0]
    assert "tokens/s" in between[0]
    assert "left" in between[0]
    assert f"[1/2] {first.name}: stable, val 3.250" in lines
    assert f"[2/2] {second.name}: failed: the worker was killed by SIGSEGV" in lines
    assert lines[-1] == "    last\\x1b[2J words"


def test_several_at_work_share_a_line_that_tells_the_time_left(tmp_path: Path) -> None:
    clock = [100.0]
    progress, folders, out = quiet_progress(tmp_path, clock, runs=20)
    with progress:
        progress.tick(folders[:12])
        for i, folder in enumerate(folders[:12]):
            write(folder.metrics(), HEADER + "".join(f"[{t},{5 + i}.5]\n" for t in range(50)))
        clock[0] += 20.0
        progress.tick(folders[:12])
        progress.note("trying again")
    line, note = out.getvalue().splitlines()
    assert line.startswith("0/20 runs finished: made-000000000000 50/100 loss 5.500; made-000000000001 50/")
    assert "; and 4 more" in line
    assert line.endswith("46.7 s left") or line.endswith("47 s left"), line  # 600 of 2000 steps in 20 s
    assert note == "trying again"


def test_time_left_counts_only_what_this_launch_trains(tmp_path: Path) -> None:
    clock = [100.0]
    progress, (other, resumed), _ = quiet_progress(tmp_path, clock)
    for attempt in (1, 2):
        resumed.claim(attempt).touch()
    (resumed.checkpoint / "step-000080").mkdir(parents=True)
    write(resumed.metrics(), HEADER + "".join(f"[{t},5.5]\n" for t in range(81)))
    progress.tick([resumed])
    clock[0] += 10.0
    progress.tick([resumed])
    write(resumed.metrics(), HEADER + "".join(f"[{t},5.5]\n" for t in range(90)))
    clock[0] += 10.0
    progress.tick([resumed])
    assert progress.eta(clock[0]) == pytest.approx((100 + 10) * 20.0 / 10)
    write_json(other.summary, SUMMARY)
    progress.ended(Result(other, State.done))  # by another process
    assert progress.eta(clock[0]) == pytest.approx(10 * 20.0 / 10)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_bars_and_keeps_the_failures(tmp_path: Path) -> None:
    clock = [100.0]
    progress, (first, second), _ = quiet_progress(tmp_path, clock)
    progress.stream = out = Terminal()
    write(first.metrics(), FULL_HEADER + "[0,6.0,5.0,1.0]\n[1,5.5,5.0,1.0]\n")
    write_json(second.summary, SUMMARY)
    with progress:
        progress.tick([first])
        assert progress.live is not None
        progress.live.refresh()
        progress.ended(Result(first, State.failed, "killed [bold]by[/] somebody", "last words"))
        clock[0] += 1.0
        progress.tick([second])
        progress.live.refresh()
        progress.ended(Result(second, State.done))
    shown = out.getvalue()
    assert "1/2 runs finished (1 failed)" in shown
    assert "killed [bold]by[/] somebody" in shown
    assert "last words" in shown
    assert "loss 5.500" in shown
    assert "stable, val 3.250" in shown
