"""The newest rows of a run that is being written, without reading the file again and again."""

from dataclasses import dataclass
from pathlib import Path

import orjson

from ablate.record import RunFolder
from ablate.view.text import as_float

TAIL_BYTES = 65_536


@dataclass(frozen=True)
class Last:
    """The newest complete row of a series, by column."""

    values: dict[str, float]

    @property
    def step(self) -> int:
        return int(self.values["step"])

    def get(self, column: str) -> float | None:
        return self.values.get(column)


def last_row(path: Path) -> Last | None:
    """The newest complete row of a jsonl series; None while there is none (or no file yet).

    A row after a resume repeats its step; the newest is always the one to believe.
    """
    try:
        with path.open("rb") as file:
            head = file.readline()
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            tail = file.read()
    except FileNotFoundError:
        return None
    lines = tail[: tail.rfind(b"\n") + 1].splitlines()
    if not lines or not lines[-1].startswith(b"["):
        return None
    header = next((line for line in reversed(lines) if line.startswith(b"{")), head)
    try:
        columns = orjson.loads(header)["columns"]
        values = [as_float(x) for x in orjson.loads(lines[-1])]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    if len(values) != len(columns):
        return None
    return Last({c: v for c, v in zip(columns, values, strict=True) if v is not None})


class Follower:
    """Where a running run stands: step, losses, speed since this follower began to look."""

    def __init__(self, folder: RunFolder, steps: int) -> None:
        self.folder, self.steps = folder, steps
        self.first: tuple[float, int] | None = None
        self.now: tuple[float, int] | None = None
        self.loss: float | None = None
        self.val: float | None = None

    def look(self, clock: float) -> None:
        """Read the newest rows; `clock` is a monotonic time in seconds."""
        row = last_row(self.folder.metrics())
        if row is None:
            return
        self.loss = row.get("train/loss")
        if self.first is None:
            self.first = (clock, row.step)
        if self.now is None or row.step != self.now[1]:
            self.now = (clock, row.step)
        val = last_row(self.folder.metrics("val"))
        self.val = None if val is None else val.get("val/loss")

    @property
    def step(self) -> int:
        """Steps completed."""
        return 0 if self.now is None else self.now[1] + 1

    def speed(self) -> float | None:
        """Steps per second; None before two looks saw different steps."""
        if self.first is None or self.now is None or self.now[1] <= self.first[1]:
            return None
        seconds = self.now[0] - self.first[0]
        return (self.now[1] - self.first[1]) / seconds if seconds > 0 else None

    def eta(self) -> float | None:
        """Seconds to the last step at the speed seen so far."""
        speed = self.speed()
        return None if speed is None else max(0, self.steps - self.step) / speed
