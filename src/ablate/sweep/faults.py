"""How processes end, in words, and which ends are the machine's doing."""

import contextlib
import signal

from ablate.record import Claim, Claimed, Finished, RunFolder, State

TAIL_LINES = 15
TAIL_BYTES = 16_384
# Ends that say nothing about the run: killed from outside (as by the kernel when memory runs out), or the
# memory behind a mapped file failed. A segmentation fault would come again.
MACHINE = frozenset({signal.SIGKILL, signal.SIGBUS})


def ending(code: int) -> str:
    """How a process ended, from its return code: `was killed by SIGKILL`, `exited with code 3`."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was killed by {name}"


def settle(folder: RunFolder, reason: str) -> State | None:
    """Write that a run whose process is gone has failed, also at the end of its log.

    Returns its state: failed, or done if it was done all the same; None if another process has taken it.
    """
    with contextlib.suppress(OSError), folder.stdout.open("a") as log:
        log.write(f"failed: {reason}\n")
    try:
        Claim.take(folder, unless_done=True).finish(State.failed, reason)
    except Finished:
        return State.done
    except Claimed:
        return None
    return State.failed


def last_lines(text: str, count: int = TAIL_LINES) -> str:
    """The end of a log."""
    return "\n".join(text.rstrip().splitlines()[-count:])


def log_tail(folder: RunFolder) -> str:
    """The end of a run's stdout.log; empty when there is none to read."""
    try:
        with folder.stdout.open("rb") as log:
            log.seek(max(0, log.seek(0, 2) - TAIL_BYTES))
            return last_lines(log.read().decode(errors="replace"))
    except OSError:  # not there, or no file
        return ""
