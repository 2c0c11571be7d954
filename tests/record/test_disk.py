"""A full disk ends in one clear error and a run that can go on; JSON files are replaced whole."""

import contextlib
import errno
import json
import math
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablate.config import UserError
from ablate.record import (
    Claim,
    DiskFull,
    RunFolder,
    SeriesWriter,
    State,
    create_run,
    finite,
    read_json,
    read_series,
    read_status,
    write_json,
)

COLUMNS = ("step", "x")


class Disk:
    """os.write on a disk with little room: takes what fits, then refuses."""

    def __init__(self, room: int, code: int) -> None:
        self.room, self.code, self.real = room, code, os.write

    def __call__(self, fd: int, data: bytes) -> int:
        if self.room == 0:
            raise OSError(self.code, os.strerror(self.code))
        taken = self.real(fd, data[: min(self.room, 7)])  # short writes, too
        self.room -= taken
        return taken


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
@pytest.mark.parametrize("room", [0, 1, 10, 18])
def test_a_batch_that_does_not_fit_leaves_nothing_of_itself(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, room: int, code: int
) -> None:
    writer = SeriesWriter(Claim.take(folder), "", COLUMNS, 0)
    writer.append([[0, 0.5]])
    before = folder.metrics().read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", Disk(room, code))
        with pytest.raises(DiskFull, match=r"metrics\.jsonl: the disk") as caught:
            writer.append([[1, 0.25], [2, 0.125]])
    assert isinstance(caught.value.__cause__, OSError)
    assert folder.metrics().read_bytes() == before
    writer.append([[1, 0.25]])  # room again
    assert read_series(folder.metrics()).values_RC.tolist() == [[0, 0.5], [1, 0.25]]


def test_a_short_write_is_continued(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = SeriesWriter(Claim.take(folder), "", COLUMNS, 0)
    monkeypatch.setattr(os, "write", Disk(10_000, errno.ENOSPC))
    writer.append([[i, i / 3] for i in range(20)])
    assert read_series(folder.metrics()).column("x").tolist() == [i / 3 for i in range(20)]


def test_other_faults_come_as_they_are(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = SeriesWriter(Claim.take(folder), "", COLUMNS, 0)
    before = folder.metrics().read_bytes()
    monkeypatch.setattr(os, "write", Disk(5, errno.EIO))
    with pytest.raises(OSError, match="Input/output error"):
        writer.append([[0, 1.0]])
    assert folder.metrics().read_bytes() == before


def test_a_resume_that_finds_the_disk_full_leaves_the_old_file(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Claim.take(folder)
    with SeriesWriter(first, "", COLUMNS, 0) as writer:
        writer.append([[0, 0.5], [1, 0.25]])
    first.finish(State.preempted)
    before = folder.metrics().read_bytes()
    second = Claim.take(folder)
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", Disk(30, errno.ENOSPC))
        with pytest.raises(DiskFull):
            SeriesWriter(second, "", COLUMNS, 1)
    assert folder.metrics().read_bytes() == before
    assert not list(folder.path.glob(".metrics*"))


@pytest.mark.parametrize("room", [0, 20])
def test_a_claim_on_a_full_disk_is_given_back(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", Disk(room, errno.ENOSPC))
        with pytest.raises(DiskFull):
            Claim.take(folder)
    assert read_status(folder).state is State.queued
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", Disk(300, errno.ENOSPC))  # the claim fits, the status does not
        with pytest.raises(DiskFull, match=r"status\.json"):
            Claim.take(folder)
    assert read_status(folder).state is State.queued
    assert Claim.take(folder).attempt == 1


LIMITED = """
    import resource, sys
    from pathlib import Path
    from ablate.record import Claim, DiskFull, RunFolder, SeriesWriter
    writer = SeriesWriter(Claim.take(RunFolder(Path(sys.argv[1]))), "", ("step", "x"), 0)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5003, 5003))
    try:
        for step in range(0, 10**6, 3):
            writer.append([[step + i, (step + i) / 7] for i in range(3)])
    except DiskFull as error:
        print(step, error)
"""


def test_a_real_size_limit_ends_in_disk_full_and_a_resumable_run(folder: RunFolder) -> None:
    script = [sys.executable, "-c", textwrap.dedent(LIMITED), str(folder.path)]
    done = subprocess.run(script, capture_output=True, text=True, check=True)
    reached = int(done.stdout.split()[0])
    assert str(folder.metrics()) in done.stdout
    check_resumable(folder, reached)


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB, where this user may mount one."""
    place = tmp_path / "tiny"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("no right to mount a file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_real_full_disk_ends_in_disk_full_and_a_resumable_run(tiny_disk: Path, config_text: str) -> None:
    folder = create_run(tiny_disk, "study", "slug", "0123456789ab", config_text)
    claim = Claim.take(folder)
    ballast = tiny_disk / "ballast"
    ballast.write_bytes(b"x" * 40_000)
    step = 0
    writer = SeriesWriter(claim, "", COLUMNS, 0)
    with contextlib.suppress(DiskFull):
        while step < 10**6:
            writer.append([[step + i, (step + i) / 7] for i in range(3)])
            step += 3
    with pytest.raises(DiskFull):
        writer.append([[step + i, 0.5] for i in range(100)])
    writer.close()
    with pytest.raises(DiskFull):
        claim.finish(State.failed, "disk full")
    assert read_status(folder).state is State.running  # the old file stands, whole
    ballast.unlink()
    claim.finish(State.failed, "disk full")
    check_resumable(folder, step)


def check_resumable(folder: RunFolder, reached: int) -> None:
    """All batches before the full disk are there, nothing of the one that failed, and a resume goes on."""
    found = read_series(folder.metrics())
    assert reached > 100
    assert found.torn == 0
    assert found.steps.tolist() == list(range(reached))
    with SeriesWriter(Claim.take(folder), "", COLUMNS, reached) as writer:
        writer.append([[reached, reached / 7]])
    again = read_series(folder.metrics())
    assert again.column("x").tolist() == [i / 7 for i in range(reached + 1)]


def test_json_files_are_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "summary.json"
    write_json(path, {"a": 1})
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", Disk(5, errno.ENOSPC))
        with pytest.raises(DiskFull, match=r"summary\.json"):
            write_json(path, {"a": 2})
    assert read_json(path) == {"a": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["summary.json"]


def test_json_says_nan_and_never_null(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    odd = {
        "nan": math.nan,
        "inf": [math.inf, -math.inf],
        "numpy": np.float32(0.5),
        "array": np.array([1.5, np.nan]),
        "int": np.int64(3),
        "tuple": (1, None, True),
        "path": tmp_path,
        "state": State.done,
        "bool": np.bool_(True),
    }
    write_json(path, odd)
    assert json.loads(path.read_text()) == {
        "nan": "NaN",
        "inf": ["Infinity", "-Infinity"],
        "numpy": 0.5,
        "array": [1.5, "NaN"],
        "int": 3,
        "tuple": [1, None, True],
        "path": str(tmp_path),
        "state": "done",
        "bool": True,
    }


@given(
    st.recursive(
        st.floats() | st.integers() | st.text() | st.none(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
        max_leaves=6,
    )
)
def test_finite_leaves_strict_json(obj: object) -> None:
    json.dumps(finite(obj), allow_nan=False)


def test_a_broken_json_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "meta.json"
    path.write_text("{")
    with pytest.raises(UserError, match=r"meta\.json is not valid JSON"):
        read_json(path)
