"""What launcher and zygote say to each other: one packet each, over a socket that keeps packets whole.

    launcher → zygote    {"run": path, "env": {…}}, with the GPU's lease as a file descriptor if there is one
    zygote → launcher    {"ready": pid}   {"started": path, "pid": pid}   {"unstarted": path, "reason": text}
                         {"ended": pid, "code": return code, −n for signal n}   {"stopping": pid}
    run → launcher       {"refused": pid, "reason": text}

The launcher's end closed tells the zygote that the launcher is gone.
"""

import json
import socket
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

PACKET_BYTES = 65_536
REASON_CHARACTERS = 8_000


class ExitCode(IntEnum):
    """How a run's process reports what became of the run."""

    done = 0
    failed = 1
    preempted = 3
    refused = 4
    elsewhere = 5


def send(sock: socket.socket, message: dict[str, Any], files: Sequence[int] = ()) -> None:
    """Send one message; file descriptors travel along. Raises OSError when the other end is gone."""
    socket.send_fds(sock, [json.dumps(message).encode()], files)


def receive(sock: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """The next message and the file descriptors with it; None when the other end is gone.

    Raises BlockingIOError when nothing has arrived on a socket that does not wait.
    """
    packet, files, _, _ = socket.recv_fds(sock, PACKET_BYTES, 4)
    return (json.loads(packet) if packet else None), list(files)
