"""Writing a series file: a header line per attempt, then one JSON array a row.

    {"schema":1,"columns":["step","train/loss"],"attempt":1,"from_step":0}
    [0,6.2383246421813965]

Which attempt a row belongs to is told by the header above it, so no row of an older attempt may ever land
below a newer header. Checking the claim before each write is not enough: a process can be halted between
check and write. Therefore an attempt never appends to the file of the one before. It copies the file, adds
its header and moves the copy into place; a superseded writer keeps appending to the old file, which nobody
can see any more (and notices, because that file has lost its name).

Opening late is covered the same way. A writer (1) creates its copy under a name that holds its attempt's
number, (2) checks its claim, (3) deletes the copies of older attempts, (4) copies, (5) renames. If an older
writer passed its check, its copy existed before the newer claim did; so the newer one's step 3 either
finds the copy and deletes it, and the older rename fails, or comes after the rename, and step 4 copies its
result.
"""

import contextlib
import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import orjson

from ablate.config import UserError
from ablate.record.claim import Claim
from ablate.record.disk import nonfinite_word, sync_file, write_all

SCHEMA = 1
REDO = "sweep.redo=true, which trains the run afresh"
_HEADER_LINE = re.compile(rb"^\{.*\}$", re.MULTILINE)


class SeriesWriter:
    """Appends rows to one series file of a claimed run.

    `columns` begins with `step`. Rows of earlier attempts at steps ≥ `from_step` are void from now on.
    Raises UserError if earlier rows remain (`from_step` > 0) and have other columns, Superseded, DiskFull.
    """

    def __init__(self, claim: Claim, cadence: str, columns: Sequence[str], from_step: int) -> None:
        assert columns[0] == "step", columns
        assert len(set(columns)) == len(columns), columns
        assert from_step >= 0
        self.path = claim.folder.metrics(cadence)
        self.columns = tuple(columns)
        self.from_step = from_step
        self._claim = claim
        self._last = from_step - 1
        self._fd = self._open()

    def append(self, rows: Sequence[Sequence[float | int]]) -> None:
        """Write rows as complete lines in one go; steps must increase. Raises Superseded or DiskFull.

        After DiskFull the file is as it was before the call.
        """
        if not rows:
            return
        data, last = self._encode(rows)
        self._claim.check()
        found = os.fstat(self._fd)
        if found.st_nlink == 0:
            self._claim.check()
            raise UserError(f"{self.path} was removed or replaced while it was being written")
        write_all(self._fd, data, self.path, found.st_size)
        self._last = last

    def sync(self) -> None:
        """Wait until every row is on the disk: before a checkpoint that relies on them."""
        sync_file(self._fd, self.path)

    def close(self) -> None:
        """Let go of the file; closing twice is harmless."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _encode(self, rows: Sequence[Sequence[float | int]]) -> tuple[bytes, int]:
        last, width = self._last, len(self.columns)
        lines = []
        for row in rows:
            step = row[0]
            assert len(row) == width, f"{self.path}: {len(row)} values for {width} columns"
            assert isinstance(step, int), f"{self.path}: step {step!r}"
            assert step > last, f"{self.path}: step {step} after step {last}"
            last = step
            lines.append(_line(row))
        return b"".join(lines), last

    def _open(self) -> int:
        """Put a copy of the file with this attempt's header in its place; the descriptor appends to it."""
        copy = _copy_path(self.path, self._claim.attempt)
        fd = os.open(copy, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            self._claim.check()
            _delete_older_copies(self.path, self._claim.attempt)
            present = self.path.read_bytes() if self.path.exists() else b""
            self._check_columns(present)
            if present and not present.endswith(b"\n"):
                present += b"\n"  # ends a line that a killed writer left torn
            write_all(fd, present + self._header(), self.path, 0)
            if present:
                sync_file(fd, self.path)
            self._rename(copy)
        except BaseException:
            os.close(fd)
            copy.unlink(missing_ok=True)
            raise
        return fd

    def _rename(self, copy: Path) -> None:
        try:
            os.rename(copy, self.path)
        except FileNotFoundError:
            self._claim.check()
            raise

    def _header(self) -> bytes:
        header = {
            "schema": SCHEMA,
            "columns": self.columns,
            "attempt": self._claim.attempt,
            "from_step": self.from_step,
        }
        return orjson.dumps(header, option=orjson.OPT_APPEND_NEWLINE)

    def _check_columns(self, present: bytes) -> None:
        old = None if self.from_step == 0 else self._last_columns(present)
        if old is not None and list(self.columns) != old:
            added, gone = sorted(set(self.columns) - set(old)), sorted(set(old) - set(self.columns))
            raise UserError(
                f"{self.path}: cannot go on from step {self.from_step} with other columns"
                f" (new: {', '.join(added) or 'none'}; missing: {', '.join(gone) or 'none'})",
                hint=f"resume with the settings and code that the run began with, or {REDO}",
            )

    def _last_columns(self, present: bytes) -> list[str] | None:
        """The columns of the newest header in the file; None if there is none. Raises UserError."""
        for line in reversed(_HEADER_LINE.findall(present)):
            try:
                header = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue  # torn
            if not is_columns(header.get("columns")):
                raise UserError(f"{self.path} is damaged: a header without columns", hint=REDO)
            return list(header["columns"])
        return None


def is_columns(raw: object) -> bool:
    """Can these be the columns of a series: different names, the first one `step`?"""
    if not isinstance(raw, list) or not all(isinstance(name, str) for name in raw):
        return False
    return raw[:1] == ["step"] and len(set(raw)) == len(raw)


def _line(row: Sequence[float | int]) -> bytes:
    line = orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
    if b"null" not in line:  # how orjson writes a float that is not finite
        return line
    words = [x if math.isfinite(x) else nonfinite_word(x) for x in row]
    return orjson.dumps(words, option=orjson.OPT_APPEND_NEWLINE)


def _copy_path(path: Path, attempt: int) -> Path:
    return path.with_name(f".{path.name}.{attempt}")


def _delete_older_copies(path: Path, attempt: int) -> None:
    for name in os.listdir(path.parent):
        stem, _, number = name.rpartition(".")
        if stem == f".{path.name}" and number.isdigit() and int(number) < attempt:
            with contextlib.suppress(FileNotFoundError):
                path.with_name(name).unlink()
