"""Standard output and error that a command can rely on."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any


class Dropping(io.FileIO):
    """Writes to a descriptor as long as somebody takes it, and drops the rest.

    `lost` is the error of the first write that was dropped for another reason than a reader that left.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self.lost: OSError | None = None

    def write(self, data: Any) -> int:
        """All of `data`, as far as the caller can tell."""
        try:
            return super().write(data)
        except BrokenPipeError:
            pass
        except OSError as error:
            self.lost = self.lost or error
        return memoryview(data).nbytes


@contextlib.contextmanager
def usual_streams() -> Iterator[None]:
    """Inside the block both streams exist, and characters that their encoding lacks become escapes."""
    with contextlib.ExitStack() as stack:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is None:  # closed by whoever started the command
                nothing = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
                stack.callback(setattr, sys, name, None)
                setattr(sys, name, nothing)
            elif isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        yield


@contextlib.contextmanager
def dropping_streams() -> Iterator[None]:
    """Inside the block output that cannot be written is dropped: a run must not end because nobody listens.

    What was lost for another reason than a reader that left is said on standard error in the end.
    """
    raws: list[tuple[str, Dropping]] = []
    with contextlib.ExitStack() as stack:
        for name in ("stdout", "stderr"):
            old = getattr(sys, name)
            try:
                descriptor = old.fileno()
            except io.UnsupportedOperation:
                continue  # in memory
            raw = Dropping(descriptor)
            new = io.TextIOWrapper(
                io.BufferedWriter(raw),
                old.encoding,
                "backslashreplace",
                line_buffering=name == "stderr" or old.isatty(),
            )
            old.flush()
            stack.callback(setattr, sys, name, old)
            stack.callback(new.flush)
            setattr(sys, name, new)
            raws.append((name, raw))
        yield
        sys.stdout.flush()
        for name, raw in raws:
            if raw.lost is not None:
                print(f"warning: output to {name} was lost: {raw.lost.strerror}", file=sys.stderr)
