"""Reading a series file: what its attempts leave valid, whatever happened to them."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from ablate.config import UserError
from ablate.record.series import REDO, SCHEMA, is_columns

# All that well-formed rows consist of; anything else sends a reader to the slow, careful way.
_ROW_BYTES = b'0123456789+-.eE,[]"NaInfity'
_WORDS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


@dataclass(frozen=True, eq=False)
class Series:
    """The rows that a series file yields: steps strictly increase (R rows, C columns).

    `torn` counts lines left incomplete by a process that was killed or a disk that was full.
    """

    columns: tuple[str, ...]
    values_RC: NDArray[np.float64]
    torn: int = 0

    @property
    def steps(self) -> NDArray[np.int64]:
        """Steps of the rows, shape [R]."""
        return self.values_RC[:, 0].astype(np.int64)

    def column(self, name: str) -> NDArray[np.float64]:
        """One column, shape [R]. Raises UserError with suggestions for an unknown name."""
        if name not in self.columns:
            near = difflib.get_close_matches(name, self.columns)
            raise UserError(f"no column {name!r}", hint=", ".join(near or self.columns[:12]))
        return self.values_RC[:, self.columns.index(name)]

    def __len__(self) -> int:
        return len(self.values_RC)


@dataclass(frozen=True, eq=False)
class _Part:
    """One attempt's stretch of the file. `damage`: why it cannot be read, if so; void stretches may be
    damaged.
    """

    columns: tuple[str, ...]
    attempt: int
    from_step: int
    values_RC: NDArray[np.float64]
    damage: UserError | None = None

    @property
    def void(self) -> bool:
        return self.damage is None and len(self.values_RC) == 0

    def before(self, step: int) -> "_Part":
        """What a header with from_step = `step` leaves of it."""
        count = int(np.searchsorted(self.values_RC[:, 0], step))
        return replace(self, values_RC=self.values_RC[:count], damage=self.damage if step else None)


def read_series(path: Path) -> Series:
    """The valid rows of a series file; no rows (and only the column `step`) if the file does not exist.

    A header with from_step = k voids the rows ≥ k above it, and with k = 0 damage too. Rows below the header
    of an attempt that is older than one above it are dropped. Torn lines are left out and counted.
    Raises UserError for a file that no attempts of ours can have left behind: unknown schema, rows without a
    header, steps that do not increase, columns that change while earlier rows remain valid.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Series(("step",), np.empty((0, 1)))
    parts, torn = _parse(path, data)
    kept: list[_Part] = []
    newest = 0
    for part in parts:
        if part.attempt < newest:
            continue
        newest = part.attempt
        kept = [old.before(part.from_step) for old in kept]
        kept = [*(old for old in kept if not old.void), part]
    for part in kept:
        if part.damage is not None:
            raise part.damage
    if not kept:
        return Series(("step",), np.empty((0, 1)), torn)
    columns = kept[-1].columns
    if any(part.columns != columns for part in kept):
        raise UserError(f"{path}: the columns change at step {kept[-1].from_step}", hint=REDO)
    return Series(columns, np.concatenate([part.values_RC for part in kept]), torn)


def _parse(path: Path, data: bytes) -> tuple[list[_Part], int]:
    parts: list[_Part] = []
    torn = 0
    for header, lines in _sections(data.split(b"\n")):
        try:
            part, bad = _section(path, header, lines)
        except UserError as damage:
            newest = max((p.attempt for p in parts), default=0)
            part, bad = _Part(("step",), newest, 0, np.empty((0, 1)), damage), 0
        torn += bad
        if part is not None:
            parts.append(part)
    return parts, torn


def _section(path: Path, header: bytes | None, lines: Sequence[bytes]) -> tuple[_Part | None, int]:
    """One header and the rows below it; None where a torn header has none. The count of torn lines."""
    facts = _header(path, header)
    if facts is None:
        if any(_row(line, None) for line in lines):
            raise UserError(f"{path}: rows without a header above them", hint=REDO)
        return None, (header is not None) + sum(bool(line) for line in lines)
    columns, attempt, from_step = facts
    rows_RC, bad = _rows(lines, len(columns))
    _check_steps(path, rows_RC[:, 0], from_step)
    return _Part(columns, attempt, from_step, rows_RC), bad


def _sections(lines: Sequence[bytes]) -> Iterator[tuple[bytes | None, Sequence[bytes]]]:
    """The lines between one header and the next; first those above any header, if there are some."""
    edges = [*(i for i, line in enumerate(lines) if line.startswith(b"{")), len(lines)]
    if any(lines[: edges[0]]):
        yield None, lines[: edges[0]]
    for start, end in pairwise(edges):
        yield lines[start], lines[start + 1 : end]


def _header(path: Path, line: bytes | None) -> tuple[tuple[str, ...], int, int] | None:
    if line is None:
        return None
    try:
        raw = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if raw.get("schema") != SCHEMA:
        raise UserError(
            f"{path}: unknown schema {raw.get('schema')!r}",
            allowed=str(SCHEMA),
            hint=f"update ablate, or {REDO}",
        )
    columns, attempt, from_step = (raw.get(key) for key in ("columns", "attempt", "from_step"))
    if not (is_columns(columns) and type(attempt) is int and type(from_step) is int and from_step >= 0):
        raise UserError(f"{path} is damaged: a header without columns, attempt or from_step", hint=REDO)
    return tuple(columns), attempt, from_step


def _rows(lines: Sequence[bytes], width: int) -> tuple[NDArray[np.float64], int]:
    """The rows of one section [R, C], and how many lines are not whole rows."""
    whole = [line for line in lines if line]
    body = b",".join(whole)
    if not body.translate(None, _ROW_BYTES):
        # Everything at once is many times faster; any flaw shows as an error or a wrong shape.
        try:
            rows_RC = np.array(orjson.loads(b"[" + body + b"]"), dtype=np.float64)
        except ValueError:
            pass
        else:
            if rows_RC.shape == (len(whole), width):
                return rows_RC, 0
    rows = [row for line in whole if (row := _row(line, width)) is not None]
    return np.array(rows, dtype=np.float64).reshape(len(rows), width), len(whole) - len(rows)


def _row(line: bytes, width: int | None) -> list[float] | None:
    """The values of a line; None unless it is a whole row (of any width if `width` is None)."""
    try:
        raw = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(raw, list) or (width is not None and len(raw) != width):
        return None
    values = [_value(x) for x in raw]
    return None if None in values else [v for v in values if v is not None]


def _value(raw: Any) -> float | None:
    if isinstance(raw, str):
        return _WORDS.get(raw)
    return float(raw) if type(raw) in (int, float) else None


def _check_steps(path: Path, steps_R: NDArray[np.float64], from_step: int) -> None:
    if len(steps_R) == 0:
        return
    wrong = np.flatnonzero(np.diff(steps_R) <= 0)
    if len(wrong):
        before, after = steps_R[wrong[0]], steps_R[wrong[0] + 1]
        raise UserError(f"{path} is damaged: step {after:.0f} follows step {before:.0f}", hint=REDO)
    if np.any(steps_R != np.floor(steps_R)):
        raise UserError(f"{path} is damaged: a step that is no whole number", hint=REDO)
    if steps_R[0] < from_step:
        raise UserError(
            f"{path} is damaged: step {steps_R[0]:.0f} in an attempt from step {from_step}", hint=REDO
        )
