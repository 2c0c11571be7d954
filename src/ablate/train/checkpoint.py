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
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from safetensors.torch import save as serialise
from torch import Tensor

from ablate.config import SCIENCE_VERSION, Keep, UserError
from ablate.record import REDO, read_json, replace_file, write_json

RING = 3
SCHEMA = 1
_MODEL, _OPTIMIZER, _STATE, _FINAL = "model.safetensors", "optimizer.safetensors", "state.json", "final"
_STEP = re.compile(r"step-(\d{6,})")
_TEMPORARY = ".writing-"


class ForeignCheckpoint(UserError):
    """What lies in the checkpoint folder is not of this run; it was not loaded."""


class _Damaged(Exception):
    """A checkpoint of this run that cannot be used."""


class _Unusable(Exception):
    """A checkpoint that is whole, but that the run cannot go on from."""


def no_obstacle(_: int) -> str | None:
    """Let the run go on from any step."""
    return None


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


def save(folder: Path, checkpoint: Checkpoint, run_id: str, onsets: Collection[int] = ()) -> None:
    """Write a checkpoint, then let go of those that are no longer needed.

    Kept are the newest three, the newest from before each of `onsets` (steps at which the run may have broken
    down) and, once a row was not finite, the newest from before it. Raises DiskFull.
    """
    target = step_folder(folder, checkpoint.step)
    temporary = folder / f"{_TEMPORARY}{target.name}"
    remove(temporary)
    temporary.mkdir(parents=True)
    try:
        _write(temporary, checkpoint, run_id)
        remove(target)
        temporary.rename(target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    _sync(folder)
    # What lies beyond this step is left from rows that are void: the run resumed before it.
    usable = [step for step in steps(folder) if step <= checkpoint.step]
    bad = () if checkpoint.first_bad is None else (checkpoint.first_bad,)
    kept = {*usable[-RING:], *_pinned(usable, (*onsets, *bad))}
    for step in set(steps(folder)) - kept:
        remove(step_folder(folder, step))


def _write(temporary: Path, checkpoint: Checkpoint, run_id: str) -> None:
    digests = {
        _MODEL: _save_tensors(temporary / _MODEL, checkpoint.model),
        _OPTIMIZER: _save_tensors(temporary / _OPTIMIZER, checkpoint.optimizer),
    }
    state = {
        "schema": SCHEMA,
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


def save_final(folder: Path, model: Mapping[str, Tensor]) -> None:
    """The weights at the end of a run, as final/model.safetensors."""
    (folder / _FINAL).mkdir(parents=True, exist_ok=True)
    _save_tensors(folder / _FINAL / _MODEL, model)


def tidy(folder: Path, keep: Keep, onset: int | None) -> None:
    """What a finished run keeps: `ring` all there is, `weights` the final ones, `none` nothing.

    With `weights`, the newest checkpoint from before step `onset` of a breakdown stays too.
    """
    if keep is Keep.ring or not folder.is_dir():
        return
    if keep is Keep.none:
        shutil.rmtree(folder)
        return
    present = steps(folder)
    for step in set(present) - _pinned(present, () if onset is None else (onset,)):
        remove(step_folder(folder, step))


def latest(
    folder: Path,
    run_id: str,
    expected: Mapping[str, Tensor],
    announce: Callable[[str], None],
    obstacle: Callable[[int], str | None] = no_obstacle,
) -> Checkpoint | None:
    """The newest usable checkpoint of this run; None if there is none.

    A damaged one is named to `announce` and skipped. `expected`: the model's parameters, for their names
    and shapes. `obstacle`: why the run cannot go on from a step, if so; such a checkpoint is skipped too.

    Raises ForeignCheckpoint for one of another run, with other parameters, or in another format (one that
    could run code is never opened).
    """
    if not folder.is_dir():
        return None
    _refuse_strangers(folder)
    for step in reversed(steps(folder)):
        path = step_folder(folder, step)
        try:
            return _load(path, step, run_id, expected, obstacle)
        except _Damaged as damage:
            announce(f"checkpoint {path.name} is damaged and skipped: {damage}")
        except _Unusable as reason:
            announce(f"checkpoint {path.name} is skipped: {reason}")
    return None


def remove(path: Path) -> None:
    """Remove a folder, a file or a link, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _load(
    path: Path,
    step: int,
    run_id: str,
    expected: Mapping[str, Tensor],
    obstacle: Callable[[int], str | None],
) -> Checkpoint:
    state = _read_state(path, step)
    if state["run_id"] != run_id:
        raise ForeignCheckpoint(
            f"{path} is a checkpoint of run {state['run_id']}, not of {run_id}", hint=REDO
        )
    reason = obstacle(step)
    if reason is not None:
        raise _Unusable(reason)
    for name in (_MODEL, _OPTIMIZER):
        if not (path / name).is_file():
            raise _Damaged(f"{name} is missing")
        if _digest(path / name) != state["sha256"][name]:
            raise _Damaged(f"{name} does not have the recorded sha256")
    wanted = {f"{moment}/{name}": value for name, value in expected.items() for moment in ("mean", "square")}
    return Checkpoint(
        step=step,
        model=_load_tensors(path / _MODEL, expected),
        optimizer=_load_tensors(path / _OPTIMIZER, wanted),
        first_bad=state["first_bad"],
        initial_loss=float(state["initial_loss"]),
    )


def _read_state(path: Path, step: int) -> dict[str, Any]:
    try:
        state = read_json(path / _STATE)
    except (OSError, ValueError) as error:
        raise _Damaged(f"{_STATE} cannot be read: {error}") from error
    if not isinstance(state, dict):
        raise _Damaged(f"{_STATE} holds no mapping")
    known: tuple[tuple[str, Callable[[Any], bool]], ...] = (
        ("schema", lambda x: _is_whole(x) and x == SCHEMA),
        ("step", lambda x: _is_whole(x) and x == step),
        ("run_id", lambda x: isinstance(x, str)),
        ("science_version", lambda x: _is_whole(x) and x == SCIENCE_VERSION),
        ("first_bad", lambda x: x is None or (_is_whole(x) and 0 <= x < step)),
        ("initial_loss", _is_float_text),
        ("sha256", lambda x: isinstance(x, dict) and {_MODEL, _OPTIMIZER} <= set(x)),
    )
    for key, holds in known:
        if key not in state or not holds(state[key]):
            raise _Damaged(f"{_STATE} has {key} = {str(state.get(key))[:40]}")
    return state


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_float_text(value: object) -> bool:
    try:
        return isinstance(value, str) and isinstance(float(value), float)
    except ValueError:
        return False


def _load_tensors(path: Path, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    try:
        with safe_open(path, framework="pt") as opened:
            shapes = {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118
        tensors: dict[str, Tensor] = load_file(path)
    except SafetensorError as error:
        raise ForeignCheckpoint(f"{path} is not a safetensors file: {error}", hint=REDO) from error
    wanted = {name: tuple(value.shape) for name, value in expected.items()}
    if shapes != wanted:
        differing = sorted(
            name for name in shapes.keys() | wanted.keys() if shapes.get(name) != wanted.get(name)
        )
        raise ForeignCheckpoint(
            f"{path} does not fit this model: {differing[0]} has shape {shapes.get(differing[0], 'none')}",
            allowed=str(wanted.get(differing[0], "no such tensor")),
            hint=REDO,
        )
    return tensors


def _refuse_strangers(folder: Path) -> None:
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith(_TEMPORARY):
            remove(entry)
        elif entry.name.startswith("."):
            continue  # of a file browser or a file system
        elif not _STEP.fullmatch(entry.name) and entry.name != _FINAL:
            raise ForeignCheckpoint(
                f"{entry} is not a checkpoint of ablate, and was not opened",
                allowed="folders step-<number> with safetensors files",
                hint=f"move {entry.name} out of {folder}, or {REDO}",
            )


def _pinned(present: Collection[int], onsets: Collection[int]) -> set[int]:
    """The newest step before each onset, where there is one."""
    before = (max((step for step in present if step < onset), default=None) for onset in onsets)
    return {step for step in before if step is not None}


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
