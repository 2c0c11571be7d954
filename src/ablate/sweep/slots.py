"""What runs are given to work with: cores, or one GPU each, that no two runs on a machine share.

A GPU's lease is a lock on a file in the user's runtime folder. The run's process holds it, so the lease ends
with that process, however it ends, and two studies of one user never share a GPU.
"""

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from ablate.config import Config, Device, UserError

QUERY_S = 20.0  # nvidia-smi is slow to wake sleeping drivers
GPUS_VARIABLE = "ABLATE_GPUS"  # comma-separated names, instead of asking nvidia-smi
VISIBLE = "CUDA_VISIBLE_DEVICES"


def usable_cores() -> int:
    """Cores this process may use: its affinity, and the control group's quota where there is one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except (OSError, ValueError):
        return cores
    return cores if quota == "max" else max(1, min(cores, int(quota) // int(period)))


def jobs_by_cores(threads: int) -> int:
    """How many runs of so many threads work at once without sharing a core; at least one."""
    return max(1, usable_cores() // threads)


def runs_at_once(jobs: int | None, threads: int, gpu_names: Sequence[str]) -> int:
    """Slots of a launch: `jobs` where it is given, else one per GPU, or per core and threads; never more
    than there are GPUs.
    """
    wanted = jobs or len(gpu_names) or jobs_by_cores(threads)
    return min(wanted, len(gpu_names)) if gpu_names else wanted


def gpus_for(configs: Sequence[Config]) -> tuple[str, ...]:
    """The GPUs that a launch of these runs may use; none where none of them wants one."""
    return gpus() if any(config.run.device is not Device.cpu for config in configs) else ()


def for_launch(configs: Sequence[Config], gpu_names: Sequence[str]) -> int:
    """How many of these runs a launch carries out at once, by the terms of the first one."""
    threads = max(config.run.threads for config in configs)
    return min(runs_at_once(configs[0].sweep.jobs, threads, gpu_names), len(configs))


def gpus() -> tuple[str, ...]:
    """Names (UUIDs) of the GPUs that runs may use; none where there is no NVIDIA driver.

    CUDA_VISIBLE_DEVICES, if set, narrows the choice, as it does for CUDA itself.
    """
    listed = os.environ.get(GPUS_VARIABLE)
    if listed is not None:
        return tuple(name for name in listed.split(",") if name)
    if shutil.which("nvidia-smi") is None:
        return ()
    try:
        told = subprocess.run(
            ["nvidia-smi", "-L"], capture_output=True, text=True, timeout=QUERY_S, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    return visible(gpu_names(told), os.environ.get(VISIBLE))


def gpu_names(listing: str) -> tuple[str, ...]:
    """The UUIDs in what `nvidia-smi -L` prints: of whole GPUs, or of the parts of those that are divided."""
    names: list[str] = []
    whole = None
    for line in listing.splitlines():
        found = re.search(r"\(UUID: ([^)\s]+)\)", line)
        if found is None:
            continue
        if line.startswith("GPU"):
            whole = found[1]
            names.append(whole)
        else:
            names = [name for name in names if name != whole]  # a divided GPU is used by its parts
            names.append(found[1])
    return tuple(names)


def visible(names: Sequence[str], setting: str | None) -> tuple[str, ...]:
    """The GPUs that a CUDA_VISIBLE_DEVICES leaves, in its order; an unknown word ends the list."""
    if setting is None:
        return tuple(names)
    chosen: list[str] = []
    for word in (word.strip() for word in setting.split(",")):
        if word.isdigit() and int(word) < len(names):
            chosen.append(names[int(word)])
            continue
        fitting = [name for name in names if word and name.startswith(word)]
        if len(fitting) != 1:
            break
        chosen.append(fitting[0])
    return tuple(chosen)


def lease_folder() -> Path:
    """Where this user's leases lie: the same folder for every study on this machine."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.path.isdir(runtime):
        return Path(runtime) / "ablate"
    return Path("/tmp") / f"ablate-{os.getuid()}"


def lease(names: Iterable[str]) -> tuple[str, int] | None:
    """Lock the first free GPU: its name and the open file that holds the lock; None if all are taken.

    Whoever has the file open holds the lease: hand it to the run's process and close it here.
    """
    folder = lease_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise UserError(f"{folder} belongs to somebody else", hint="set XDG_RUNTIME_DIR to a folder of yours")
    for name in names:
        path = folder / f"gpu-{re.sub('[^A-Za-z0-9-]', '_', name)}.lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
        else:
            return name, descriptor
    return None
