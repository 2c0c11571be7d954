"""Writes that leave a file whole or untouched, and JSON that says NaN."""

import errno
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from ablate.config import UserError
from ablate.record.errors import DiskFull

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def write_all(fd: int, data: bytes, path: Path, size: int) -> None:
    """Append `data` to a file that is `size` bytes long: all of it, or nothing.

    A short write is continued; if that fails too, the file is cut back to `size`.
    Raises DiskFull naming `path`, or the OSError as it came.
    """
    written = 0
    try:
        while written < len(data):
            written += os.write(fd, data[written:])
    except BaseException as error:
        if written:
            os.ftruncate(fd, size)
        if isinstance(error, OSError) and error.errno in FULL:
            raise DiskFull(path) from error
        raise


def replace_file(path: Path, data: bytes, sync: bool = True) -> None:
    """Put `data` in place of whatever stands at `path`, in one step. Raises DiskFull; the old file stays."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        write_all(fd, data, path, 0)
        if sync:
            sync_file(fd, path)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)


def sync_file(fd: int, path: Path) -> None:
    """Wait until the file is on the disk. Raises DiskFull where space is only allotted now."""
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno in FULL:
            raise DiskFull(path) from error
        raise


def finite(obj: Any) -> Any:
    """`obj` as plain JSON types, with NaN and infinities as the strings NaN, Infinity and -Infinity.

    numpy scalars and arrays, tuples and paths become what JSON has for them.
    """
    if isinstance(obj, (bool, str)) or obj is None:
        return obj
    if isinstance(obj, Mapping):
        return {str(key): finite(value) for key, value in obj.items()}
    if isinstance(obj, (list, tuple)):
        return [finite(value) for value in obj]
    if isinstance(obj, (np.ndarray, np.generic)):
        return finite(obj.tolist())
    if isinstance(obj, float):
        return float(obj) if math.isfinite(obj) else nonfinite_word(obj)
    return str(obj) if isinstance(obj, Path) else obj


def nonfinite_word(value: float) -> str:
    """How a record spells a float that JSON has no number for."""
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def json_bytes(obj: Any) -> bytes:
    """Indented JSON with finite numbers only, and a final newline."""
    return orjson.dumps(finite(obj), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def write_json(path: Path, obj: Any) -> None:
    """Replace `path` atomically (temporary file, fsync, rename); see `finite` for NaN. Raises DiskFull."""
    replace_file(path, json_bytes(obj))


def read_json(path: Path) -> Any:
    """The content of a JSON file. Raises FileNotFoundError, or UserError naming a file that is not JSON."""
    try:
        return orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:
        raise UserError(f"{path} is not valid JSON: {error}") from error


def clock_beside(folder: Path) -> tuple[float, bool]:
    """Now, in seconds, by the clock of the file system that holds `folder`; True if that could be asked.

    It is the time a file gets that is created this moment. Where none can be created (a read-only copy),
    it is the host's clock, and False.
    """
    probe = folder / f".now.{os.getpid()}.{time.monotonic_ns()}"
    try:
        fd = os.open(probe, os.O_WRONLY | os.O_CREAT, 0o644)
    except OSError:
        return time.time(), False
    try:
        return os.fstat(fd).st_mtime, True
    finally:
        os.close(fd)
        probe.unlink(missing_ok=True)
