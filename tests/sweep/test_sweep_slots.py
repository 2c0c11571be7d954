"""Cores, GPUs and their leases."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ablate.sweep.slots import gpu_names, gpus, jobs_by_cores, lease, usable_cores, visible

LISTING = """\
GPU 0: NVIDIA H100 (UUID: GPU-aa)
GPU 1: NVIDIA H100 (UUID: GPU-bb)
  MIG 1g.10gb Device 0: (UUID: MIG-11)
  MIG 1g.10gb Device 1: (UUID: MIG-22)
GPU 2: NVIDIA H100 (UUID: GPU-cc)
"""


def test_divided_gpus_are_used_by_their_parts() -> None:
    assert gpu_names(LISTING) == ("GPU-aa", "MIG-11", "MIG-22", "GPU-cc")
    assert gpu_names("No devices were found\n") == ()


@pytest.mark.parametrize(
    ("setting", "left"),
    [
        (None, ("GPU-aa", "GPU-bb")),
        ("", ()),
        ("1,0", ("GPU-bb", "GPU-aa")),
        ("GPU-b", ("GPU-bb",)),
        ("0,7,1", ("GPU-aa",)),
        ("GPU-", ()),
        ("-1", ()),
    ],
)
def test_cuda_visible_devices_narrows_the_choice(setting: str | None, left: tuple[str, ...]) -> None:
    assert visible(("GPU-aa", "GPU-bb"), setting) == left


def test_gpus_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ABLATE_GPUS", "x,y")
    assert gpus() == ("x", "y")
    monkeypatch.setenv("ABLATE_GPUS", "")
    assert gpus() == ()


def test_jobs_by_cores() -> None:
    assert jobs_by_cores(1) == usable_cores() >= 1
    assert jobs_by_cores(10_000) == 1


def test_a_lease_is_exclusive_and_ends_with_its_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    first = lease(["a", "b"])
    assert first is not None
    code = "import sys; from ablate.sweep.slots import lease\n"
    code += "print(lease(['a', 'b'])[0], lease(['a', 'b'])); sys.stdout.flush(); sys.stdin.read()"
    other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout is not None
    assert other.stdout.readline() == b"b None\n"
    assert lease(["a", "b"]) is None
    other.kill()
    other.communicate()
    second = lease(["a", "b"])
    assert (first[0], second and second[0]) == ("a", "b")
    os.close(first[1])
    assert (lease(["a"]) or ("",))[0] == "a"
