"""Checkpoints: tensors as safetensors, the rest as JSON; nothing in them can run code.

    checkpoint/step-000050/model.safetensors      parameters by canonical name
                           optimizer.safetensors  mean/<name> and square/<name>
                           state.json             step, run id, loop state, sha256 of the two files
    checkpoint/final/model.safetensors            weights of a finished run

A checkpoint at step k is the state before update k. It appears whole (renamed from a temporary folder) or
not at all.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from safetensors.torch import save as serialise
from torch import Tensor

from ablate.config import SCIENCE_VERSION, Keep, UserError
from ablate.record import read_json, replace_file, write_json

RING = 3
_MODEL, _OPTIMIZER, _STATE, _FINAL = "model.safetensors", "optimizer.safetensors", "state.json", "final"
_STEP = re.compile(r"step-(\d{6,})")
_TEMPORARY = ".writing-"


class ForeignCheckpoint(UserError):  # noqa: N818
    """What lies in the checkpoint folder is not of this run; it was not loaded."""


class _Damaged(Exception):  # noqa: N818
    """A checkpoint of this run that cannot be used."""


@dataclass(frozen=True)
class Checkpoint:
    """The state of a lane before update `step`."""

    step: int
    model: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]
    first_bad: int | None
    initial_loss: float


def step_folder(folder: Path, step: int) -> Path:
    """Where the checkpoint of a step lies."""
    return folder / f"step-{step:06d}"


def steps(folder: Path) -> list[int]:
    """Steps with a checkpoint, ascending."""
    found = (_STEP.fullmatch(entry.name) for entry in folder.iterdir()) if folder.is_dir() else ()
    return sorted(int(match[1]) for match in found if match)


def save(folder: Path, checkpoint: Checkpoint, run_id: str) -> None:
    """Write a checkpoint, then let go of those that are no longer needed.

    Kept are the newest three and, once a row was not finite, the newest from before it. Raises DiskFull.
    """
    target = step_folder(folder, checkpoint.step)
    temporary = folder / f"{_TEMPORARY}{target.name}"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    digests = {
        _MODEL: _save_tensors(temporary / _MODEL, checkpoint.model),
        _OPTIMIZER: _save_tensors(temporary / _OPTIMIZER, checkpoint.optimizer),
    }
    state = {
        "schema": 1,
        "step": checkpoint.step,
        "run_id": run_id,
        "science_version": SCIENCE_VERSION,
        "first_bad": checkpoint.first_bad,
        "initial_loss": repr(checkpoint.initial_loss),
        "sha256": digests,
        "torch": str(torch.__version__),
    }
    write_json(temporary / _STATE, state)
    _sync(temporary)
    shutil.rmtree(target, ignore_errors=True)
    temporary.rename(target)
    _sync(folder)
    kept = {*steps(folder)[-RING:], *_pinned(folder, checkpoint.first_bad)}
    for step in set(steps(folder)) - kept:
        shutil.rmtree(step_folder(folder, step))


def save_final(folder: Path, model: Mapping[str, Tensor]) -> None:
    """The weights at the end of a run, as final/model.safetensors."""
    (folder / _FINAL).mkdir(parents=True, exist_ok=True)
    _save_tensors(folder / _FINAL / _MODEL, model)


def tidy(folder: Path, keep: Keep, first_bad: int | None) -> None:
    """What a finished run keeps: `ring` all there is, `weights` the final ones, `none` nothing.

    With `weights`, the newest checkpoint from before step `first_bad` of a divergence stays too.
    """
    if keep is Keep.ring or not folder.is_dir():
        return
    if keep is Keep.none:
        shutil.rmtree(folder)
        return
    for step in set(steps(folder)) - _pinned(folder, first_bad):
        shutil.rmtree(step_folder(folder, step))


def latest(
    folder: Path, run_id: str, expected: Mapping[str, Tensor], announce: Callable[[str], None]
) -> Checkpoint | None:
    """The newest usable checkpoint of this run; None if there is none.

    A damaged one is named to `announce` and skipped. `expected`: the model's parameters, for their names
    and shapes.

    Raises ForeignCheckpoint for one of another run, with other parameters, or in another format (one that
    could run code is never opened).
    """
    if not folder.is_dir():
        return None
    _refuse_strangers(folder)
    for step in reversed(steps(folder)):
        path = step_folder(folder, step)
        try:
            return _load(path, run_id, expected)
        except _Damaged as damage:
            announce(f"checkpoint {path.name} is damaged and skipped: {damage}")
    return None


def _load(path: Path, run_id: str, expected: Mapping[str, Tensor]) -> Checkpoint:
    state = _read_state(path)
    if state.get("run_id") != run_id:
        raise ForeignCheckpoint(
            f"{path} is a checkpoint of run {state.get('run_id')}, not of {run_id}",
            hint=f"move {path.parent} out of the run folder; the run then starts afresh",
        )
    for name in (_MODEL, _OPTIMIZER):
        if not (path / name).is_file():
            raise _Damaged(f"{name} is missing")
        if _digest(path / name) != state["sha256"][name]:
            raise _Damaged(f"{name} does not have the recorded sha256")
    wanted = {f"{moment}/{name}": value for name, value in expected.items() for moment in ("mean", "square")}
    return Checkpoint(
        step=int(state["step"]),
        model=_load_tensors(path / _MODEL, expected),
        optimizer=_load_tensors(path / _OPTIMIZER, wanted),
        first_bad=state["first_bad"],
        initial_loss=float(state["initial_loss"]),
    )


def _read_state(path: Path) -> dict[str, Any]:
    try:
        state = read_json(path / _STATE)
    except (OSError, ValueError) as error:
        raise _Damaged(f"{_STATE} cannot be read: {error}") from error
    needed = {"step", "run_id", "sha256", "first_bad", "initial_loss"}
    if not isinstance(state, dict) or not needed <= set(state):
        raise _Damaged(f"{_STATE} is incomplete")
    return state


def _load_tensors(path: Path, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    try:
        with safe_open(path, framework="pt") as opened:
            shapes = {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118
        tensors: dict[str, Tensor] = load_file(path)
    except SafetensorError as error:
        raise ForeignCheckpoint(f"{path} is not a safetensors file: {error}") from error
    wanted = {name: tuple(value.shape) for name, value in expected.items()}
    if shapes != wanted:
        differing = sorted(
            name for name in shapes.keys() | wanted.keys() if shapes.get(name) != wanted.get(name)
        )
        raise ForeignCheckpoint(
            f"{path} does not fit this model: {differing[0]} has shape {shapes.get(differing[0], 'none')}",
            allowed=str(wanted.get(differing[0], "no such tensor")),
        )
    return tensors


def _refuse_strangers(folder: Path) -> None:
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith(_TEMPORARY):
            shutil.rmtree(entry)
        elif not _STEP.fullmatch(entry.name) and entry.name != _FINAL:
            raise ForeignCheckpoint(
                f"{entry} is not a checkpoint of ablate, and was not opened",
                allowed="folders step-<number> with safetensors files",
                hint=f"move {entry.name} out of {folder}",
            )


def _pinned(folder: Path, first_bad: int | None) -> set[int]:
    before = [step for step in steps(folder) if first_bad is not None and step < first_bad]
    return {before[-1]} if before else set()


def _save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> str:
    """Write a safetensors file; its sha256."""
    data = serialise({name: value.detach().cpu().contiguous() for name, value in tensors.items()})
    replace_file(path, data)
    return hashlib.sha256(data).hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
