"""Being asked to stop: noted at once, acted on at the next step boundary."""

import signal
from types import FrameType, TracebackType
from typing import Self

_ASKING = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)


class Interrupts:
    """While open, SIGTERM, SIGINT and SIGUSR1 (a scheduler's early warning) only set `asked`.

    A second SIGINT raises KeyboardInterrupt at once. Open it in the main thread.
    """

    def __init__(self) -> None:
        self.asked: signal.Signals | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        for number in _ASKING:
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and self.asked is signal.SIGINT:
            raise KeyboardInterrupt
        self.asked = signal.Signals(number)
