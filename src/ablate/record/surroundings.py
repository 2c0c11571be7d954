"""The surroundings of a run: whatever could explain why a repetition differs."""

import hashlib
import importlib.metadata
import os
import platform
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ablate
from ablate.record.process import PROC, boot_id

PACKAGES = (
    "ablate-bias",
    "torch",
    "numpy",
    "orjson",
    "hydra-core",
    "omegaconf",
    "tokenizers",
    "datasets",
    "safetensors",
    "pyarrow",
)
GIT_TIMEOUT_S = 5.0
# Settings of the config that say where a run is kept or what people call it: no cause of a difference.
_LABELS = frozenset({"study", "run.root", "run.notes", "run.keep", "data.cache"})


def environment() -> dict[str, Any]:
    """Versions, code, machine: JSON types; what the system does not tell is None."""
    return {
        "versions": versions(),
        "git": git_state(),
        "code_sha": code_sha(),
        "host": socket.gethostname(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "boot_id": boot_id(),
    }


def versions() -> dict[str, str | None]:
    """Versions of Python and of the packages that shape a run (None: not installed); imports none of them."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def code_sha() -> str:
    """SHA-256 over the names and contents of the package's .py files (64 hex digits)."""
    root = package_folder()
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        content = path.read_bytes()
        name = path.relative_to(root).as_posix()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def git_state() -> dict[str, Any] | None:
    """Commit (`sha`) and whether tracked files differ from it (`dirty`); None if git does not track it."""
    tracked = _git("ls-files", "--error-unmatch", "__init__.py")
    status = None if tracked is None else _git("status", "--porcelain=v2", "--branch", "-uno")
    if status is None:
        return None
    lines = status.splitlines()
    sha = next((line.split()[-1] for line in lines if line.startswith("# branch.oid ")), None)
    return {"sha": sha, "dirty": any(not line.startswith("#") for line in lines)}


def cpu_model() -> str | None:
    """The processor's name: results repeat bit for bit only on the same model."""
    try:
        text = (PROC / "cpuinfo").read_text(errors="replace")
    except OSError:
        return platform.processor() or None
    names = (line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name"))
    return next(names, None) or platform.processor() or None


def package_folder() -> Path:
    """Where the running package's code lies."""
    return Path(ablate.__file__).parent


def compare_environments(meta_a: Mapping[str, Any], meta_b: Mapping[str, Any]) -> list[str]:
    """What differs in the settings of two runs (contents of meta.json), in words; likely causes first."""
    a, b = _settings(meta_a), _settings(meta_b)
    return [
        f"{key}: {_show(a.get(key))} and {_show(b.get(key))}" for key in a | b if a.get(key) != b.get(key)
    ]


def _settings(meta: Mapping[str, Any]) -> dict[str, Any]:
    world = meta.get("environment") or {}
    config = meta.get("config") or {}
    return {
        **{k: value for k, value in config.items() if k not in _LABELS and not k.startswith("sweep.")},
        "device": meta.get("device"),
        "device name": meta.get("device_name"),
        "threads": meta.get("threads"),
        "code": (world.get("code_sha") or "")[:12] or None,
        "data fingerprint": (meta.get("data") or {}).get("fingerprint"),
        **{f"{name} version": version for name, version in (world.get("versions") or {}).items()},
        "cpu": world.get("cpu"),
        "platform": world.get("platform"),
        "host": world.get("host"),
    }


def _show(value: Any) -> str:
    return "unknown" if value is None else str(value)


def _git(*arguments: str) -> str | None:
    """Output of a git command in the package's folder; None if git is absent, slow or refuses."""
    command = ["git", "-C", str(package_folder()), *arguments]
    settings = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            command, env=settings, capture_output=True, text=True, timeout=GIT_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
