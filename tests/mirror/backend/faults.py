"""Faults that a test injects into the loopback backend."""

import threading
from dataclasses import dataclass, field
from enum import StrEnum

ANY = "*"
STREAM = "stream"  # rows, console lines and signs of life of a run
FINISH = "finish"  # the stream's last request, which says that the run is complete
UPLOAD = "upload"  # files


class Kind(StrEnum):
    """What happens to a request."""

    status = "status"  # it is answered with an HTTP status
    drop = "drop"  # the connection is closed without an answer
    hang = "hang"  # no answer until the fault is cleared; then the connection is closed
    partial = "partial"  # the first half of the lines is kept, then the connection is closed
    lossy = "lossy"  # the first half of the lines is kept, yet the answer says that all is well
    stopped = "stopped"  # all is kept, and the answer says that someone pressed the stop button


@dataclass
class Fault:
    """A fault of one operation (a GraphQL operation's name, `stream`, `finish`, `upload`, or `*` for any).

    It begins with the `first` call after it was injected and lasts for `times` calls (None: for ever).
    """

    where: str
    kind: Kind
    code: int = 500
    first: int = 1
    times: int | None = None
    calls: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    def strikes(self, names: tuple[str, ...]) -> bool:
        """Count the call if one of its names is meant; does the fault happen to it?"""
        if self.over.is_set() or self.where not in (ANY, *names):
            return False
        self.calls += 1
        return self.calls >= self.first and (self.times is None or self.calls < self.first + self.times)


class Faults:
    """The faults in force."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._lock = threading.Lock()

    def add(self, fault: Fault) -> Fault:
        with self._lock:
            self._faults.append(fault)
        return fault

    def strike(self, *names: str) -> Fault | None:
        """The fault that happens to a request of these names. Every fault counts it."""
        with self._lock:
            struck = [fault for fault in self._faults if fault.strikes(names)]
        return struck[0] if struck else None

    def clear(self) -> None:
        """End all of them; requests that hang are let go."""
        with self._lock:
            for fault in self._faults:
                fault.over.set()
            self._faults.clear()
