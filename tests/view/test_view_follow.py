"""Following a run that is being written."""

import io
import re
from pathlib import Path

import pytest

from ablate.config import dump, parse
from ablate.record import RunFolder, State, write_json
from ablate.sweep import Result
from ablate.view import Follower, Progress, last_row, run_names

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
    folders = [RunFolder(tmp_path / f"made-{i:012x}") for i in range(runs)]
    configs = {}
    for seed, folder in enumerate(folders):
        configs[folder.name] = parse({"optim": {"steps": 100}, "seed": seed})
        folder.path.mkdir()
        folder.config.write_text(dump(configs[folder.name]))
    out = io.StringIO()
    return Progress(configs, out, lambda: clock[0]), folders, out


def test_runs_are_called_as_in_the_table() -> None:
    def named(*changes: dict[str, object]) -> list[str]:
        configs = {f"words-{i:012x}": parse(change) for i, change in enumerate(changes)}
        return list(run_names(configs).values())

    assert named(
        {"model": {"bias": "none"}, "optim": {"lr": 0.01}}, {"model": {"bias": "all"}, "optim": {"lr": 0.1}}
    ) == ["bias=none lr=0.01", "bias=all lr=0.1"]
    assert named({"seed": 0}, {"seed": 3}) == ["seed=0", "seed=3"]
    assert named({"seed": 7}) == ["00000000"]
    text = {"data": {"source": "text", "paths": ["a"]}}, {"data": {"source": "text", "paths": ["b"]}}
    assert all(name.startswith("0000") for name in named(*text)), "the configurations alone do not tell them"
    again = run_names({"words-0123456789ab/reruns/002": parse({})})
    assert list(again.values()) == ["01234567/reruns/002"]


def test_an_interrupted_run_without_a_reason_gets_no_colon(tmp_path: Path) -> None:
    progress, (first, _), out = quiet_progress(tmp_path, [1.0])
    for reason in (None, "", " \n"):
        progress.ended(Result(first, State.preempted, reason))
    assert {line.partition("] ")[2] for line in out.getvalue().splitlines()} == {"seed=0: preempted"}


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
    assert lines[0] == "[1/2] seed=0: started"
    between = [line for line in lines if "step" in line]
    assert 5 <= len(between) <= 10
    assert "loss 6.000" in between[0]
    steps = [int(re.search(r"step (\d+)/", line)[1]) for line in between]
    early = {step for step, line in zip(steps, between, strict=True) if "so far" not in line}
    assert early == {step for step in steps if step <= 20}
    assert 0 < len(early) < len(between)
    assert all(line.startswith("[1/2] seed=0: step ") for line in between)
    assert "tokens/s" in between[0]
    assert "left" in between[0]
    assert "[1/2] seed=0: stable, final val 3.250" in lines
    assert "[2/2] seed=1: failed: the worker was killed by SIGSEGV" in lines
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
    assert line.startswith("0/20 runs finished: seed=0 50/100 loss 5.500; seed=1 50/")
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
    assert "seed=1: stable, final val 3.250" in shown
    assert "[1/2] seed=0" in shown
