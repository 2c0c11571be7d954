"""Making run folders and requests: whole or not at all, and the same one for everybody who asks."""

import errno
import os
import shutil
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ablate.config import UserError
from ablate.record.claim import read_status
from ablate.record.disk import json_bytes, replace_file
from ablate.record.find import by_id
from ablate.record.folder import RunFolder, check_name, is_run_name, study_path
from ablate.record.state import State, Status, status_json


def create_run(
    root: Path, study: str, slug: str, run_id: str, config_text: str, code_sha: str | None = None
) -> RunFolder:
    """The folder of a run, made in state `queued` if it does not exist; two callers at once get the same one.

    An existing `*-<run_id>` is taken whatever its slug. If its configuration says another experiment, that is
    a UserError and nothing is touched. Settings that are no part of the identity (probes, device, notes, …)
    are brought up to date as long as no attempt has begun; afterwards the file stays as the run was begun.
    `code_sha` is kept in the status, so that a worker can tell whether the code changed in the queue.
    """
    name = f"{slug}-{run_id}"
    check_name("run folder", name)
    if not is_run_name(name):
        raise UserError(f"run id = {run_id!r}", allowed="12 hex digits")
    home = study_path(root, study)
    home.mkdir(parents=True, exist_ok=True)
    wanted = RunFolder(home / name)
    if not wanted.path.exists():
        found = by_id(home, run_id)
        if found is None and _build(wanted, config_text, code_sha):
            return wanted
        wanted = found or wanted
    _reconcile(wanted, config_text)
    return wanted


def create_rerun(folder: RunFolder, config_text: str) -> RunFolder:
    """A fresh folder `reruns/<number>` below a run, for a repetition of it, in state `queued`."""
    folder.reruns.mkdir(exist_ok=True)
    taken = [int(p.name) for p in folder.reruns.iterdir() if p.name.isdigit()]
    number = max(taken, default=0) + 1
    while not _build(rerun := RunFolder(folder.reruns / f"{number:03d}"), config_text, None):
        number += 1
    return rerun


def write_request(
    root: Path,
    study: str,
    argv: Sequence[str],
    factors: Mapping[str, Any],
    base: Mapping[str, Any],
    run_ids: Sequence[str],
    facts: Mapping[str, Any] | None = None,
) -> Path:
    """Keep what a sweep asked for: `requests/<UTC time>-<id>.json`, with `facts` beside the rest.

    Returns the file's path.
    """
    folder = study_path(root, study) / "requests"
    folder.mkdir(parents=True, exist_ok=True)
    now = time.time()
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    request = {
        "schema": 1,
        "time": now,
        "argv": list(argv),
        "factors": dict(factors),
        "base": dict(base),
        "run_ids": list(run_ids),
        **(facts or {}),
    }
    path = folder / f"{stamp}-{uuid.uuid4().hex[:8]}.json"
    replace_file(path, json_bytes(request))
    return path


def _build(folder: RunFolder, config_text: str, code_sha: str | None) -> bool:
    """Build the folder beside its place and move it there in one step; False if another one stands there."""
    temporary = folder.path.with_name(f".{folder.path.name}.{uuid.uuid4().hex[:8]}.tmp")
    temporary.mkdir()
    new = RunFolder(temporary)
    queued = Status(State.queued, 0, None, None, time.time(), code_sha)
    try:
        # Not synced: a queued run holds nothing that cannot be asked for again.
        replace_file(new.config, config_text.encode(), sync=False)
        replace_file(new.status, json_bytes(status_json(queued)), sync=False)
        os.rename(temporary, folder.path)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
            return False
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return True


def _reconcile(folder: RunFolder, config_text: str) -> None:
    """Check that a folder holds this experiment; refresh its other settings while nothing has begun."""
    try:
        present = folder.config.read_bytes()
    except FileNotFoundError:
        raise UserError(
            f"{folder.path} stands in the way: it has the run's name, but no config.yaml",
            hint="move it elsewhere",
        ) from None
    if present == config_text.encode():
        return
    if not _same_science(folder, config_text):
        raise UserError(
            f"{folder.config} holds another experiment than the run id {folder.id} stands for",
            hint="nothing was changed; move the folder away: it was edited, or another version made it",
        )
    if read_status(folder).attempt == 0:
        replace_file(folder.config, config_text.encode())


def _same_science(folder: RunFolder, config_text: str) -> bool:
    """Do the folder's configuration and this one define the same experiment? Raises ConfigError."""
    from ablate.config import load, science

    asked = folder.path / f".config.{uuid.uuid4().hex[:8]}.yaml"
    asked.write_text(config_text)
    try:
        wanted = science(load(asked))
    finally:
        asked.unlink()
    return bool(science(load(folder.config)) == wanted)
