"""Series by column: `metrics.parquet` beside `metrics.jsonl`, which many runs are read from faster.

A copy of the rows that a reader yields, for readers, by readers: the first one that needs the rows of an
ended run after it has read much text leaves it behind. It is believed only if it was made from the file that
stands there now (its size and modification time) and holds what was written (a digest over names and
values); anything else is as good as none. A folder that cannot be written has none, and a run that goes on
neither.
"""

import contextlib
import hashlib
import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from ablate.record.claim import has_ended
from ablate.record.disk import replace_file
from ablate.record.errors import DiskFull
from ablate.record.folder import RunFolder
from ablate.record.read import Series, read_series

SCHEMA = 1
KEY = b"ablate"  # of our facts in the file's metadata
WORTHWHILE = 256 * 1024  # bytes of text: smaller files are read as fast from there
ENOUGH = 16 * 1024 * 1024  # bytes of text read by a process before loading pyarrow pays
SETTLED_NS = 2_000_000_000  # a younger file may change once more within the same tick of the clock
SHARE = 0.1  # of the time that reading text takes: that much may go into leaving columns for the next reader
LEAST = 2  # bytes that a value takes as text, with its comma


@dataclass
class Appetite:
    """What this process has read and left: what reads little never loads pyarrow, and nobody waits long for
    the benefit of the next reader.
    """

    text: int = 0  # bytes
    reading_s: float = 0.0
    leaving_s: float = 0.0


_appetite = Appetite()


@dataclass(frozen=True)
class Source:
    """The text file as it stands."""

    size: int
    mtime_ns: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> "Source":
        found = os.stat(path)
        return cls(found.st_size, found.st_mtime_ns, found.st_ino)


def read_rows(folder: RunFolder, cadence: str = "") -> Series:
    """The rows of a cadence, as `read_series` yields them, from the columns beside the text if there are any.

    Raises UserError as `read_series` does.
    """
    path = folder.metrics(cadence)
    try:
        source = Source.of(path)
    except FileNotFoundError:
        return read_series(path)
    _appetite.text += source.size
    if source.size < WORTHWHILE or _appetite.text < ENOUGH or not has_ended(folder):
        return read_series(path)
    columns = path.with_suffix(".parquet")
    found = load_columns(columns, source)
    if found is not None:
        return found
    begun = time.perf_counter()
    series = read_series(path)
    _appetite.reading_s += (read := time.perf_counter()) - begun
    settled = time.time_ns() - source.mtime_ns > SETTLED_NS
    if settled and _appetite.leaving_s <= SHARE * _appetite.reading_s and os.access(folder.path, os.W_OK):
        _leave(columns, series, source, folder)
        _appetite.leaving_s += time.perf_counter() - read
    return series


def _leave(columns: Path, series: Series, source: Source, folder: RunFolder) -> None:
    path = columns.with_suffix(".jsonl")
    data = encoded(series, source)
    with contextlib.suppress(OSError, DiskFull):  # no room, or no right: the text is there
        if len(data) <= source.size and Source.of(path) == source and has_ended(folder):
            replace_file(columns, data, sync=False)


def load_columns(path: Path, source: Source) -> Series | None:
    """The rows in a parquet file; None if they are not those of the source, or the file is not whole."""
    data = _content(path, source.size)
    if data is None:
        return None
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(pa.BufferReader(data)) as file:
            facts = orjson.loads(file.metadata.metadata[KEY])
            if not _fits(file, facts, source):
                return None
            table = file.read(use_threads=False)
        values_RC = np.empty((table.num_rows, table.num_columns))
        for place, column in enumerate(table.columns):
            values_RC[:, place] = column.to_numpy()
        series = Series(tuple(table.column_names), values_RC, facts["torn"])
        return series if facts["digest"] == _digest(series) else None
    except (OSError, ValueError, KeyError, TypeError, MemoryError, pa.ArrowException):
        return None


def _content(path: Path, limit: int) -> bytes | None:
    """The bytes of a plain file no larger than the text; None if there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > limit:
            return None
        with open(fd, "rb", closefd=False) as file:
            return file.read()
    except OSError:
        return None
    finally:
        os.close(fd)


def _fits(file: Any, facts: Any, source: Source) -> bool:
    """Was the file made from this source, and can its columns be what that holds? Nothing is read yet."""
    import pyarrow as pa

    made_from = {"schema": SCHEMA, "size": source.size, "mtime_ns": source.mtime_ns}
    rows, columns = file.metadata.num_rows, file.metadata.num_columns
    return (
        {key: facts[key] for key in made_from} == made_from
        and rows * columns * LEAST <= source.size
        and all(field.type == pa.float64() for field in file.schema_arrow)
    )


def encoded(series: Series, source: Source) -> bytes:
    """The parquet file: float64 columns, which keep every bit, and the facts to believe it by."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    facts = {
        "schema": SCHEMA,
        "size": source.size,
        "mtime_ns": source.mtime_ns,
        "torn": series.torn,
        "digest": _digest(series),
    }
    columns = [pa.array(np.ascontiguousarray(column_R)) for column_R in series.values_RC.T]
    table = pa.table(columns, names=list(series.columns))
    sink = pa.BufferOutputStream()
    pq.write_table(
        table.replace_schema_metadata({KEY: orjson.dumps(facts)}),
        sink,
        compression="zstd",
        use_dictionary=False,
        use_byte_stream_split=True,  # a seventh smaller, and faster to read
        write_statistics=False,
    )
    return bytes(sink.getvalue().to_pybytes())


def _digest(series: Series) -> str:
    """SHA-256 over names, counts and the bits of all values."""
    head = orjson.dumps([series.columns, len(series), series.torn])
    return hashlib.sha256(head + b"\n" + np.ascontiguousarray(series.values_RC).data).hexdigest()
