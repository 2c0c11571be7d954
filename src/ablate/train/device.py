"""Process and device settings that a run's numbers depend on."""

import ctypes
import os
import platform

import torch

from ablate.config import ConfigError, Device

# glibc's <malloc.h>. By default, every block above 128 kB is mapped afresh and faulted in page by page, and
# freed memory goes back to the system: activations pay for both in every step.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_MAPPED_BYTES, _KEPT_BYTES = 32 << 20, 1 << 30  # glibc refuses a higher threshold for mapping than 32 MiB


def setup_process(threads: int) -> None:
    """Prepare this process for training; call it once, before the first tensor operation.

    Threads: sums depend on how they are split, so the number is part of what "exactly repeatable" means.
    Denormals are flushed to zero: runs that break down would otherwise be twice as slow.
    Memory stays with the process (glibc only), which saves page faults in every step. cuBLAS reads the
    workspace setting that deterministic products need when it starts.
    """
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    keep_memory()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def keep_memory() -> bool:
    """Let the allocator keep what is freed, up to 1 GiB; False where the C library is not glibc."""
    if platform.libc_ver()[0] != "glibc":
        return False
    libc = ctypes.CDLL(None)
    mapped = libc.mallopt(_M_MMAP_THRESHOLD, _MAPPED_BYTES)
    kept = libc.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
    return bool(mapped and kept)


def open_device(wanted: Device) -> torch.device:
    """The device to train on, set for repeatable numbers; `auto` takes CUDA where there is one.

    On CUDA, TF32 is off and operations take their deterministic form where they have one.
    Raises ConfigError when CUDA is asked for and there is none.
    """
    if wanted is not Device.cpu and torch.cuda.is_available():
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = False
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
        return torch.device("cuda", torch.cuda.current_device())
    if wanted is Device.cuda:
        raise ConfigError.setting("run.device", wanted, "cpu, or auto: no CUDA device is available here")
    return torch.device("cpu")


def device_name(device: torch.device) -> str:
    """The device in words, for the record."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
