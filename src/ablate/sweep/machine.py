"""How much memory this machine has: for processes, and on its GPUs."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from ablate.sweep.slots import QUERY_S

_MIB = 2**20
_GROUPS = Path("/sys/fs/cgroup")
_MINE = Path("/proc/self/cgroup")


def memory_of_machine(groups: Path = _GROUPS, mine: Path = _MINE) -> int | None:
    """Bytes that all processes here may use together: main memory, or the least limit of the control groups
    that this process is in, where that is lower. None where the system does not tell.
    """
    try:
        known = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (ValueError, OSError):
        known = []
    known += [limit for path in _limits(groups, mine) if (limit := _number(path)) is not None]
    return min(known, default=None)


def _limits(groups: Path, mine: Path) -> Iterator[Path]:
    """Files that may hold a limit: of this process's groups and all groups around them (versions 2 and 1)."""
    try:
        lines = mine.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0":
            home, name = groups, "memory.max"
        elif "memory" in controllers.split(","):
            home, name = groups / "memory", "memory.limit_in_bytes"
        else:
            continue
        place = PurePosixPath(path.lstrip("/"))
        for group in (place, *place.parents):
            yield home / group / name


def _number(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None  # "max": no limit


def memory_of_gpus(names: Sequence[str]) -> int | None:
    """Bytes of the smallest of these GPUs, as nvidia-smi names them; None where it does not know them all."""
    if not names or shutil.which("nvidia-smi") is None:
        return None
    command = ["nvidia-smi", "--query-gpu=uuid,memory.total", "--format=csv,noheader,nounits"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=QUERY_S, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    sizes = gpu_sizes(told)
    return min(sizes[name] for name in names) if all(name in sizes for name in names) else None


def gpu_sizes(listing: str) -> dict[str, int]:
    """Bytes by UUID, in what nvidia-smi prints: `UUID, MiB` a line. Parts of divided GPUs are not listed."""
    sizes = {}
    for line in listing.splitlines():
        name, _, size = (part.strip() for part in line.partition(","))
        if size.isdigit():
            sizes[name] = int(size) * _MIB
    return sizes
