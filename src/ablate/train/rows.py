"""Rows on their way from the device to the run folder.

R rows, C columns. A page holds the rows of a stretch of steps on the device. When it is full it is copied to
pinned memory without waiting, the other page takes over, and the rows are written once the copy has arrived.
On the CPU a page holds one step and arrives at once: the same path, a row is written as its step ends.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ablate.train.step import Measured
from ablate.train.stop import StopRule

Row = list[float | int]
Write = Callable[[Sequence[Row]], None]

_DEVICE_ROWS = 64
_DEVICE_SECONDS = 1.0


def page_rows(device: torch.device) -> int:
    """Steps between writes: each one on the CPU, 64 where reading a value would wait for the device."""
    return 1 if device.type == "cpu" else _DEVICE_ROWS


@dataclass
class _Block:
    """Rows of one cadence: values on the device, the same in host memory, and the steps they belong to."""

    values_RC: Tensor
    host_RC: Tensor
    heads: list[Row] = field(default_factory=list)

    @classmethod
    def empty(cls, rows: int, columns: int, device: torch.device) -> "_Block":
        values_RC = torch.empty(rows, columns, dtype=torch.float64, device=device)
        if device.type != "cuda":
            return cls(values_RC, values_RC)
        return cls(values_RC, torch.empty(rows, columns, dtype=torch.float64, pin_memory=True))

    def put(self, head: Row, values_C: Tensor) -> None:
        self.values_RC[len(self.heads)].copy_(values_C, non_blocking=True)
        self.heads.append(head)

    def send(self) -> None:
        if self.host_RC is not self.values_RC:
            used = len(self.heads)
            self.host_RC[:used].copy_(self.values_RC[:used], non_blocking=True)

    def take(self) -> list[tuple[Row, list[float]]]:
        taken = list(zip(self.heads, self.host_RC[: len(self.heads)].tolist(), strict=True))
        self.heads.clear()
        return taken


class _Page:
    """The rows of a stretch of steps, every cadence."""

    def __init__(self, rows: int, dense: int, probe: int, device: torch.device) -> None:
        self.dense = _Block.empty(rows, dense, device)
        self.probe = _Block.empty(rows, probe, device)
        self._event: torch.Event | None = torch.Event(device) if device.type == "cuda" else None

    def send(self) -> None:
        self.dense.send()
        self.probe.send()
        if self._event is not None:
            self._event.record(torch.cuda.current_stream())

    def arrived(self) -> bool:
        return self._event is None or self._event.query()

    def wait(self) -> None:
        if self._event is not None:
            self._event.synchronize()


class RowBuffer:
    """Collects what each step measured and writes it in order, up to the end that the stop rule sets.

    Rows are the step, then the columns: train/loss, the two host-known values, and the rest of
    `Measured.dense_C`; for the probe cadence the step and `Measured.probe_C`.
    """

    def __init__(
        self,
        widths: tuple[int, int],
        device: torch.device,
        stop: StopRule,
        write_dense: Write,
        write_probe: Write,
        capacity: int | None = None,
    ) -> None:
        """`widths`: columns of the dense and the probe values; `capacity`: steps a page holds."""
        self._capacity = capacity or page_rows(device)
        self._filling, self._sent = (_Page(self._capacity, *widths, device) for _ in range(2))
        self._stop = stop
        self._write_dense, self._write_probe = write_dense, write_probe
        self._since = time.monotonic()

    def put(self, step: int, unigram: float, rate: float, measured: Measured) -> None:
        """Take the values of one step, and write what is due."""
        self._filling.dense.put([step, unigram, rate], measured.dense_C)
        if measured.probe_C is not None:
            self._filling.probe.put([step], measured.probe_C)
        full = len(self._filling.dense.heads) == self._capacity
        if full or time.monotonic() - self._since > _DEVICE_SECONDS:
            self._turn()
        if self._sent.arrived():
            self._land()

    def flush(self) -> None:
        """Write everything taken so far."""
        self._turn()
        self._sent.wait()
        self._land()

    def _turn(self) -> None:
        self._sent.wait()
        self._land()
        self._filling.send()
        self._filling, self._sent = self._sent, self._filling
        self._since = time.monotonic()

    def _land(self) -> None:
        dense: list[Row] = []
        for (step, unigram, rate), (loss, norm, *rest) in self._sent.dense.take():
            self._stop.see(int(step), loss, norm)
            dense.append([step, loss, unigram, rate, norm, *rest])
        probe: list[Row] = [[*head, *values] for head, values in self._sent.probe.take()]
        for write, rows in ((self._write_dense, dense), (self._write_probe, probe)):
            kept = [row for row in rows if not self._stop.reached(int(row[0]))]
            if kept:
                write(kept)
