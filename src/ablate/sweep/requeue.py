"""Hand a run folder to the worker again: after a failure, after the code changed, or to train it anew."""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace

from ablate.config import Config, UserError, dump, flatten, load
from ablate.record import Claim, RunFolder, State, read_status, status_json, write_json


def renew(folder: RunFolder) -> None:
    """Let a done run be trained again. Without a checkpoint its next attempt begins at step 0, and that
    attempt's header voids the old rows. Raises Claimed while another process trains it.
    """
    claim = Claim.take(folder)
    shutil.rmtree(folder.checkpoint, ignore_errors=True)
    folder.summary.unlink(missing_ok=True)
    claim.finish(State.preempted, "to be trained again (sweep.redo)")


def requeue(folder: RunFolder, config: Config, code: str, announce: Callable[[str], None]) -> None:
    """Queue a run that was frozen before, with the present code (`code`: its sha) and settings.

    A run that would begin at step 0 anyway gets both. One that would resume from a checkpoint keeps the
    settings it was begun with, which `announce` is told, and is refused with a UserError if the code has
    changed, unless `run.allow_code_change`: its rows would come from two programs.
    """
    status = read_status(folder)
    if status.state is State.running:
        return
    if has_checkpoint(folder):
        _check_code(folder, config, status.code_sha, code)
        for line in _kept(load(folder.config), config):
            announce(f"{folder.name} resumes with the settings it was begun with: {line}")
    elif folder.config.read_text() != (text := dump(config)):
        _replace(folder, text)
    if status.code_sha != code:
        # `killed` is never written: readers infer it again from a process that is gone.
        killed = status.state is State.killed
        kept = replace(status, state=State.running, reason=None) if killed else status
        write_json(folder.status, status_json(replace(kept, code_sha=code)))


def has_checkpoint(folder: RunFolder) -> bool:
    """Would the next attempt resume?"""
    return folder.checkpoint.is_dir() and any(folder.checkpoint.glob("step-*"))


def _check_code(folder: RunFolder, config: Config, begun: str | None, code: str) -> None:
    if begun not in (None, code) and not config.run.allow_code_change:
        raise UserError(
            f"{folder.path} was begun with other code, and would go on with the present one",
            hint=f"run.allow_code_change=true, or remove {folder.checkpoint} to start this run afresh",
        )


def _kept(begun: Config, asked: Config) -> list[str]:
    """Settings that a resumed run keeps although others were asked for; where it lies and redo aside."""
    old, new = flatten(begun), flatten(asked)
    aside = ("study", "run.root", "run.allow_code_change", "run.timeout")
    changed = [key for key in old if not key.startswith("sweep.") and old[key] != new[key]]
    return [f"{key}={old[key]}, not {new[key]}" for key in changed if key not in aside]


def _replace(folder: RunFolder, text: str) -> None:
    temporary = folder.path / f".config.yaml.{os.getpid()}.tmp"
    temporary.write_text(text)
    temporary.replace(folder.config)
