"""Series files: exact, append-only by attempt, tolerant of torn ends."""

import json
import math
import os
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ablate.config import UserError
from ablate.record import Claim, Owner, RunFolder, SeriesWriter, State, Superseded, read_series

COLUMNS = ("step", "train/loss", "grad/norm")
MakeFolder = Callable[[], RunFolder]
several = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def bits(x: float) -> bytes:
    """The float's bits, with one NaN for all."""
    return b"nan" if math.isnan(x) else struct.pack("<d", x)


def row_of(step: int) -> list[float | int]:
    """The row that every attempt writes at a step."""
    return [step, 1.0 / (step + 3), math.nan if step % 7 == 5 else -step * 0.1]


@several
@given(values=st.lists(st.lists(st.floats(), min_size=2, max_size=2), max_size=20))
def test_every_float_comes_back_bit_for_bit(values: list[list[float]], new_folder: MakeFolder) -> None:
    folder = new_folder()
    with SeriesWriter(Claim.take(folder), "", COLUMNS, 0) as writer:
        writer.append([[i, *pair] for i, pair in enumerate(values)])
    found = read_series(folder.metrics())
    assert found.columns == COLUMNS
    assert found.torn == 0
    assert found.steps.tolist() == list(range(len(values)))
    assert [[bits(x) for x in row[1:]] for row in found.values_RC.tolist()] == [
        [bits(x) for x in pair] for pair in values
    ]


def test_the_file_is_a_header_and_one_array_a_row(folder: RunFolder) -> None:
    with SeriesWriter(Claim.take(folder), "val", ("step", "val/loss"), 0) as writer:
        writer.append([[0, 6.25], [5, math.inf]])
        writer.append([[10, math.nan], [20, -math.inf]])
    assert folder.metrics("val").read_text().splitlines() == [
        '{"schema":1,"columns":["step","val/loss"],"attempt":1,"from_step":0}',
        "[0,6.25]",
        '[5,"Infinity"]',
        '[10,"NaN"]',
        '[20,"-Infinity"]',
    ]


def test_a_batch_is_one_write(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[bytes] = []
    real = os.write

    def counted(fd: int, data: bytes) -> int:
        writes.append(bytes(data))
        return real(fd, data)

    with SeriesWriter(Claim.take(folder), "", COLUMNS, 0) as writer:
        monkeypatch.setattr(os, "write", counted)
        writer.append([row_of(i) for i in range(50)])
        writer.append([])
    assert len(writes) == 1
    assert writes[0].count(b"\n") == 50
    assert writes[0].endswith(b"\n")


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, int, int | None]]:
    """Attempts as (first step, rows, bytes of a torn row behind them or None)."""
    attempts = []
    on_disk = 0
    for _ in range(draw(st.integers(1, 5))):
        first = draw(st.integers(0, on_disk))
        count = draw(st.integers(0, 6))
        torn = draw(st.none() | st.integers(1, 5))
        attempts.append((first, count, torn))
        on_disk = first + count
    return attempts


@several
@given(history=histories())
def test_any_history_of_attempts_reads_as_the_plain_model(
    history: list[tuple[int, int, int | None]], new_folder: MakeFolder
) -> None:
    folder = new_folder()
    path = folder.metrics()
    model: dict[int, tuple[int, int]] = {}  # step → (attempt, step)
    torn_lines = 0
    for attempt, (first, count, torn) in enumerate(history, start=1):
        claim = Claim.take(folder)
        writer = SeriesWriter(claim, "", COLUMNS, first)
        model = {s: row for s, row in model.items() if s < first}
        for step in range(first, first + count):
            writer.append([[step, attempt, 0.5]])
            model[step] = (attempt, step)
        writer.close()
        claim.finish(State.preempted)
        if torn is not None:
            with path.open("ab") as file:
                file.write(orjson.dumps([first + count, attempt, 0.5])[:torn])
            torn_lines += 1
    found = read_series(path)
    assert found.torn == torn_lines
    assert found.steps.tolist() == sorted(model)
    assert found.column("train/loss").tolist() == [model[s][0] for s in sorted(model)]


def test_rows_of_an_older_attempt_below_a_newer_header_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    head = '{{"schema":1,"columns":["step","x"],"attempt":{},"from_step":{}}}'
    lines = [
        head.format(2, 0),
        "[0,2]",
        "[1,2]",
        head.format(1, 0),
        "[0,1]",
        "[1,1]",
        head.format(3, 2),
        "[2,3]",
    ]
    path.write_text("\n".join(lines) + "\n")
    assert read_series(path).values_RC.tolist() == [[0, 2], [1, 2], [2, 3]]


def test_a_superseded_writer_stops(folder: RunFolder) -> None:
    old = SeriesWriter(Claim.take(folder), "", COLUMNS, 0)
    old.append([row_of(0), row_of(1)])
    supersede(folder)
    with pytest.raises(Superseded, match="attempt 1"):
        old.append([row_of(2)])


def test_a_superseded_attempt_does_not_even_begin_to_write(folder: RunFolder) -> None:
    old = Claim.take(folder)
    with SeriesWriter(supersede(folder), "", COLUMNS, 0) as new:
        new.append([row_of(0)])
    before = folder.metrics().read_bytes()
    with pytest.raises(Superseded):
        SeriesWriter(old, "", COLUMNS, 0)
    assert folder.metrics().read_bytes() == before


def test_a_superseded_writer_that_slips_past_its_check_changes_nothing(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = Claim.take(folder)
    old = SeriesWriter(claim, "", COLUMNS, 0)
    old.append([[0, 1.0, 1.0], [1, 1.0, 1.0]])
    new = SeriesWriter(supersede(folder), "", COLUMNS, 1)
    real = os.fstat
    with monkeypatch.context() as patched:  # halted between its checks and its write
        patched.setattr(Claim, "check", lambda self: None)
        patched.setattr(os, "fstat", lambda fd: os.stat_result((*real(fd)[:3], 1, *real(fd)[4:])))
        old.append([[2, 1.0, 1.0]])
    new.append([[1, 2.0, 2.0], [2, 2.0, 2.0]])
    assert read_series(folder.metrics()).column("train/loss").tolist() == [1.0, 2.0, 2.0]
    with pytest.raises(Superseded):
        old.append([[3, 1.0, 1.0]])


@pytest.mark.parametrize("when", ["before the newer deletes copies", "after the newer has opened"])
def test_an_older_attempt_that_opens_late_cannot_displace_the_newer(
    when: str, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newer attempt comes while the older one stands between its check and its rename."""
    old_claim = Claim.take(folder)
    newer: list[SeriesWriter] = []
    real_rename = os.rename

    def halted(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "rename", real_rename)
        claim = supersede(folder)
        if when.startswith("before"):
            real_rename(source, target)
        newer.append(SeriesWriter(claim, "", COLUMNS, 0))
        newer[0].append([row_of(0)])
        if when.startswith("after"):
            real_rename(source, target)

    monkeypatch.setattr(os, "rename", halted)
    if when.startswith("after"):
        with pytest.raises(Superseded):
            SeriesWriter(old_claim, "", COLUMNS, 0)
    else:
        old = SeriesWriter(old_claim, "", COLUMNS, 0)
        with pytest.raises(Superseded):
            old.append([row_of(0)])
    newer[0].append([row_of(1)])
    assert read_series(folder.metrics()).steps.tolist() == [0, 1]
    assert [json.loads(x)["attempt"] for x in folder.metrics().read_text().splitlines() if x[0] == "{"][
        -1
    ] == 2


def test_a_file_that_vanishes_while_it_is_written_is_an_error(folder: RunFolder) -> None:
    writer = SeriesWriter(Claim.take(folder), "", COLUMNS, 0)
    folder.metrics().unlink()
    with pytest.raises(UserError, match=r"metrics\.jsonl was removed"):
        writer.append([row_of(0)])


def test_a_resumed_attempt_must_have_the_same_columns(folder: RunFolder) -> None:
    first = Claim.take(folder)
    with SeriesWriter(first, "", COLUMNS, 0) as writer:
        writer.append([row_of(0), row_of(1)])
    first.finish(State.preempted)
    before = folder.metrics().read_bytes()
    second = Claim.take(folder)
    with pytest.raises(UserError, match=r"new: out/b00_q; missing: grad/norm"):
        SeriesWriter(second, "", ("step", "train/loss", "out/b00_q"), 1)
    assert folder.metrics().read_bytes() == before
    with SeriesWriter(second, "", ("step", "val/loss"), 0) as writer:  # from the start anything goes
        writer.append([[0, 2.5]])
    assert read_series(folder.metrics()).values_RC.tolist() == [[0, 2.5]]


def test_a_writer_refuses_steps_that_do_not_increase(folder: RunFolder) -> None:
    writer = SeriesWriter(Claim.take(folder), "", COLUMNS, 5)
    for steps in ([4], [5, 5], [7, 6]):
        with pytest.raises(AssertionError):
            writer.append([row_of(s) for s in steps])
    writer.append([row_of(5), row_of(8)])
    assert read_series(folder.metrics()).steps.tolist() == [5, 8]


HEAD = '{"schema":1,"columns":["step","x"],"attempt":1,"from_step":2}\n'


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[0,1]\n", "without a header"),
        (HEAD.replace(":1,", ":2,", 1), "unknown schema 2"),
        ('{"schema":1}\n', "without columns"),
        (HEAD + "[2,1]\n[4,1]\n[3,1]\n", "step 3 follows step 4"),
        (HEAD + "[2,1]\n[2,1]\n", "step 2 follows step 2"),
        (HEAD + "[1,1]\n", "step 1 in an attempt from step 2"),
        (HEAD + "[2.5,1]\n", "no whole number"),
        (HEAD + '["NaN",1]\n', "no whole number"),
        (HEAD + "[2,1]\n" + HEAD.replace('"x"', '"y"').replace(":2}", ":3}"), "columns change"),
    ],
)
def test_damage_that_no_attempt_leaves_behind_is_named(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text(text)
    with pytest.raises(UserError, match=complaint) as caught:
        read_series(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "line", ['{}', '{"schema":1}', '{"schema":1,"columns":[],"attempt":1,"from_step":0}',
             '{"schema":1,"columns":"step","attempt":1,"from_step":0}',
             '{"schema":1,"columns":["step"],"attempt":"x","from_step":0}',
             '{"schema":1,"columns":["step","x"],"attempt":1,"from_step":-1}', '{"schema":9}'],
)  # fmt: skip
def test_a_strange_header_is_named_and_void_once_the_run_begins_afresh(folder: RunFolder, line: str) -> None:
    first = Claim.take(folder)
    with SeriesWriter(first, "", COLUMNS, 0) as writer:
        writer.append([row_of(0), row_of(1)])
    first.finish(State.preempted)
    with folder.metrics().open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(UserError, match=r"sweep\.redo=true"):
        read_series(folder.metrics())
    with SeriesWriter(Claim.take(folder), "", COLUMNS, 0) as writer:
        writer.append([row_of(0)])
    assert read_series(folder.metrics()).steps.tolist() == [0]


@pytest.mark.parametrize("line", ["{}", '{"schema":1}', '{"schema":1,"columns":5}'])
def test_nobody_goes_on_below_a_header_without_columns(folder: RunFolder, line: str) -> None:
    first = Claim.take(folder)
    with SeriesWriter(first, "", COLUMNS, 0) as writer:
        writer.append([row_of(0)])
    first.finish(State.preempted)
    with folder.metrics().open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(UserError, match=r"without columns[^$]*sweep\.redo=true"):
        SeriesWriter(Claim.take(folder), "", COLUMNS, 1)


@pytest.mark.parametrize(
    "line", ["[3,", "[3]", "[3,1,2]", "[3,null]", '[3,"x"]', "[3,true]", "\0\0", "nonsense", '{"sch']
)
def test_lines_that_are_no_rows_are_left_out_and_counted(line: str, tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    resumed = HEAD.replace('"attempt":1', '"attempt":2').replace(":2}", ":3}")
    path.write_text(f"{HEAD}[2,0.5]\n{line}\n{resumed}[3,1.5]")
    found = read_series(path)
    assert found.values_RC.tolist() == [[2, 0.5], [3, 1.5]]
    assert found.torn == 1


def test_a_missing_or_empty_file_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    for name in ("missing.jsonl", "empty.jsonl"):
        found = read_series(tmp_path / name)
        assert (found.columns, found.values_RC.shape, found.torn) == (("step",), (0, 1), 0)
        assert found.steps.tolist() == []


def test_an_unknown_column_suggests_the_nearest(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"schema":1,"columns":["step","grad/norm"],"attempt":1,"from_step":0}\n[0,1]\n')
    series = read_series(path)
    assert np.array_equal(series.column("grad/norm"), [1.0])
    with pytest.raises(UserError, match="grad/norm"):
        series.column("grad_norm")


def supersede(folder: RunFolder) -> Claim:
    """A newer claim, as from another machine that believes this process dead."""
    status = json.loads(folder.status.read_text())
    attempt = status["attempt"] + 1
    owner = {**status["owner"], "host": "elsewhere"}
    folder.claim(attempt).write_text(json.dumps(owner))
    folder.status.write_text(json.dumps({**status, "attempt": attempt, "owner": owner}))
    return Claim(folder, attempt, Owner(**owner))
