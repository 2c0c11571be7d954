"""Series by column beside the text: the same rows, believed only while the text is the one they are from."""

import math
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ablate.record import (
    Claim,
    DiskFull,
    Run,
    RunFolder,
    Series,
    SeriesWriter,
    State,
    cache,
    compare_series,
    read_series,
)

COLUMNS = ("step", "train/loss", "grad/norm")
MakeFolder = Callable[[], RunFolder]
NAMES = st.text(min_size=1, max_size=5).filter(lambda name: name != "step" and name.isprintable())


@pytest.fixture(autouse=True)
def _eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns for every file, however small and new; they may be larger than so small a text."""
    for name in ("WORTHWHILE", "ENOUGH"):
        monkeypatch.setattr(cache, name, 0)
    monkeypatch.setattr(cache, "SETTLED_NS", -(10**18))
    monkeypatch.setattr(cache, "SHARE", math.inf)


class Texts:
    """Counts the text files that are really read."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __call__(self, path: Path) -> Series:
        self.read.append(path.name)
        return read_series(path)

    def take(self) -> list[str]:
        taken, self.read = self.read, []
        return taken


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> Texts:
    counter = Texts()
    monkeypatch.setattr(cache, "read_series", counter)
    return counter


def record(folder: RunFolder, rows: int = 400, state: State | None = State.done) -> RunFolder:
    """A run with so many rows, 7 digits and more a value."""
    claim = Claim.take(folder)
    with SeriesWriter(claim, "", COLUMNS, 0) as writer:
        writer.append([[i, 1 / (i + 3), float("nan") if i % 7 == 5 else -i / 3] for i in range(rows)])
    if state is not None:
        claim.finish(state)
    return folder


def same(a: Series, b: Series) -> bool:
    """All of two series, bit for bit, and in the same layout."""
    return (a.columns, a.torn, a.values_RC.shape, a.values_RC.strides, a.values_RC.tobytes()) == (
        b.columns, b.torn, b.values_RC.shape, b.values_RC.strides, b.values_RC.tobytes(),
    )  # fmt: skip


def test_rows_are_read_from_the_columns_once_they_are_there(folder: RunFolder, texts: Texts) -> None:
    text = read_series(record(folder).metrics())
    assert same(Run(folder).series(), text)
    assert texts.take() == ["metrics.jsonl"]
    assert same(Run(folder).series(), text)
    assert texts.take() == []
    assert sorted(p.name for p in folder.path.iterdir() if "parquet" in p.name) == ["metrics.parquet"]
    assert compare_series(Run(folder).series(), text) is None
    table = pq.read_table(folder.path / "metrics.parquet")
    assert table.column_names == list(COLUMNS)
    assert {field.type for field in table.schema} == {pa.float64()}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.lists(NAMES, max_size=4, unique=True),
    attempts=st.lists(st.lists(st.floats(), max_size=6), min_size=1, max_size=3),
    torn=st.sampled_from(["", "[3,", "\n", "{", "[1,2,3"]),
)
def test_rows_are_the_same_with_and_without_columns(
    names: list[str], attempts: list[list[float]], torn: str, new_folder: MakeFolder
) -> None:
    folder = new_folder()
    for values in attempts:
        claim = Claim.take(folder)
        with SeriesWriter(claim, "val", ("step", *names), 0) as writer:
            writer.append([[i, *[x] * len(names)] for i, x in enumerate(values)])
        with folder.metrics("val").open("a") as file:
            file.write(torn)
        claim.finish(State.preempted)
    source = cache.Source.of(folder.metrics("val"))
    text = read_series(folder.metrics("val"))
    columns = folder.path / "metrics.val.parquet"
    columns.write_bytes(cache.encoded(text, source))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "_content", lambda path, _: path.read_bytes())
        found = cache.load_columns(columns, source)
    assert found is not None
    assert same(found, text)


def grown(path: Path) -> None:
    with path.open("a") as file:
        file.write("[1000,1.0,2.0]\n")


def edited(path: Path) -> None:
    """One digit of the text, size unchanged."""
    path.write_bytes(path.read_bytes().replace(b"[1,0.25,", b"[1,0.75,"))


@pytest.mark.parametrize("change", [grown, edited])
def test_columns_of_another_text_are_not_believed(
    folder: RunFolder, texts: Texts, change: Callable[[Path], None]
) -> None:
    Run(record(folder)).series()
    change(folder.metrics())
    texts.take()
    assert same(Run(folder).series(), read_series(folder.metrics()))
    assert texts.take() == ["metrics.jsonl"]
    assert same(Run(folder).series(), read_series(folder.metrics()))
    assert texts.take() == []


def test_a_new_attempt_is_read_from_its_text(folder: RunFolder, texts: Texts) -> None:
    Run(record(folder, state=State.preempted)).series()
    texts.take()
    record(folder, rows=300, state=None)
    assert len(Run(folder).series()) == 300
    before = (folder.path / "metrics.parquet").read_bytes()
    assert len(Run(folder).series()) == 300
    assert texts.take() == ["metrics.jsonl"] * 2
    assert (folder.path / "metrics.parquet").read_bytes() == before


def test_a_run_that_goes_on_never_meets_pyarrow(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("columns were looked for")

    record(folder, state=None)
    for name in ("load_columns", "encoded"):
        monkeypatch.setattr(cache, name, never)
    assert len(Run(folder).series()) == 400


def test_a_process_that_reads_little_reads_text(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "ENOUGH", 10**12)
    Run(record(folder)).series()
    assert not (folder.path / "metrics.parquet").exists()


def test_leaving_columns_takes_a_share_of_the_time_that_reading_takes(
    new_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_appetite", cache.Appetite())
    folders = [record(new_folder()) for _ in range(3)]
    monkeypatch.setattr(cache, "SHARE", 0.0)
    for folder in folders:
        assert len(Run(folder).series()) == 400
    assert [(folder.path / "metrics.parquet").exists() for folder in folders] == [True, False, False]
    monkeypatch.setattr(cache, "SHARE", math.inf)
    Run(folders[1]).series()
    assert (folders[1].path / "metrics.parquet").exists()


def test_a_text_that_may_still_change_unseen_gets_no_columns(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "SETTLED_NS", 60 * 10**9)
    Run(record(folder)).series()
    assert not (folder.path / "metrics.parquet").exists()
    before = time.time() - 61
    os.utime(folder.metrics(), (before, before))
    Run(folder).series()
    assert (folder.path / "metrics.parquet").exists()


def test_a_text_replaced_while_it_is_read_gets_no_columns(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(path: Path) -> Series:
        found = read_series(path)
        grown(path)
        return found

    record(folder)
    monkeypatch.setattr(cache, "read_series", meanwhile)
    Run(folder).series()
    assert not (folder.path / "metrics.parquet").exists()


def flipped(path: Path, place: float) -> None:
    """One bit wrong, so far into the file."""
    data = bytearray(path.read_bytes())
    data[int(place * (len(data) - 1))] ^= 4
    path.write_bytes(data)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1))
def test_no_wrong_bit_goes_unnoticed(place: float, new_folder: MakeFolder) -> None:
    folder = record(new_folder())
    text = read_series(folder.metrics())
    columns = folder.path / "metrics.parquet"
    columns.write_bytes(cache.encoded(text, cache.Source.of(folder.metrics())))
    assert columns.stat().st_size < folder.metrics().stat().st_size  # a larger one is not looked at
    flipped(columns, place)
    assert same(Run(folder).series(), text)


def foreign(values: pa.Array, facts: bytes | None) -> Callable[[Path], None]:
    """A sound parquet file that is none of ours."""

    def write(path: Path) -> None:
        table = pa.table({"step": values})
        pq.write_table(table.replace_schema_metadata(None if facts is None else {cache.KEY: facts}), path)

    return write


def _pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"PAR1" + b"\xff" * 100 + b"PAR1"),
        lambda path: path.write_bytes(b"PAR1" + struct.pack("<i", 2**31 - 1) + b"PAR1"),
        lambda path: path.write_bytes(b"\0" * 10**6),
        foreign(pa.array([0.0, 1.0]), None),
        foreign(pa.array([0.0, 1.0]), b"[]"),
        foreign(pa.array([0.0, 1.0]), b"{}"),
        foreign(pa.array([0.0, 1.0]), b"\xff"),
        foreign(pa.array(["a"]), b"{}"),
        foreign(pa.array([[1.0]]), b"{}"),
        _pipe,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to(path),
    ],
)
def test_what_is_none_of_ours_is_made_anew(
    folder: RunFolder, texts: Texts, make: Callable[[Path], None]
) -> None:
    text = read_series(record(folder).metrics())
    make(folder.path / "metrics.parquet")
    assert same(Run(folder).series(), text)
    assert texts.take() == ["metrics.jsonl"]
    assert same(Run(folder).series(), text)
    assert texts.take() == []


def test_a_forged_stamp_does_not_help_other_rows(folder: RunFolder) -> None:
    text = read_series(record(folder).metrics())
    source = cache.Source.of(folder.metrics())
    columns = folder.path / "metrics.parquet"
    columns.write_bytes(cache.encoded(text, source))
    facts = pq.read_metadata(columns).metadata
    for rows in (400, 10**5):  # as many, and more than the text can hold
        table = pa.table({name: np.zeros(rows) for name in COLUMNS})
        pq.write_table(table.replace_schema_metadata(facts), columns)
        assert same(Run(folder).series(), text)


def test_a_folder_in_place_of_the_columns_is_left_alone(folder: RunFolder) -> None:
    text = read_series(record(folder).metrics())
    (folder.path / "metrics.parquet").mkdir()
    assert same(Run(folder).series(), text)
    assert [p.name for p in folder.path.iterdir() if p.name.startswith(".")] == []


@pytest.mark.parametrize("error", [DiskFull(Path("x")), PermissionError("read-only")])
def test_where_nothing_can_be_written_the_text_is_read(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise error

    text = read_series(record(folder).metrics())
    monkeypatch.setattr(cache, "replace_file", refused)
    assert same(Run(folder).series(), text)


def test_a_read_only_folder_costs_no_encoding(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(cache, "encoded", None)
    assert len(Run(record(folder)).series()) == 400
