"""One run folder, from its config.yaml to its summary."""

import sys
import time
import traceback
from dataclasses import asdict
from enum import StrEnum
from typing import Any

import torch

from ablate.config import Config, UserError, flatten, load, run_id
from ablate.data import TokenData, fingerprint, prepare
from ablate.model import Description
from ablate.record import (
    Claim,
    Heartbeat,
    Run,
    RunFolder,
    State,
    Superseded,
    code_sha,
    environment,
    read_status,
    summarise,
    write_json,
)
from ablate.train import Ending, Interrupts, Ready, device_name, setup_process, tidy, train
from ablate.worker.process import output_to


class End(StrEnum):
    """What became of a folder."""

    done = "done"
    failed = "failed"  # or refused
    preempted = "preempted"


def carry_out(folder: RunFolder, interrupts: Interrupts) -> End:
    """Train the run in this folder and write its summary; a done one is left alone.

    A folder that cannot be taken up (foreign or unreadable config, changed code, claimed by another process)
    is named on stderr and not touched.
    """
    if read_status(folder).state is State.done:
        print(f"{folder.path}: already done")
        return End.done
    try:
        config = load(folder.config)
        _check_code(folder, config)
        _check_identity(folder, config)
        claim = Claim.take(folder)
    except (UserError, OSError) as error:
        print(f"{folder.path}: refused: {error}", file=sys.stderr)
        return End.failed
    with output_to(folder.stdout), Heartbeat(folder):
        return _guarded(folder, claim, config, interrupts)


def _guarded(folder: RunFolder, claim: Claim, config: Config, interrupts: Interrupts) -> End:
    """Carry out a claimed run and write how it ended, whatever happens."""
    print(f"attempt {claim.attempt}, process {claim.owner.pid} on {claim.owner.host}")
    try:
        end = _train(folder, claim, config, interrupts)
        claim.finish(State(end))
        if end is End.done:
            _tidy(folder, config)
        return end
    except Superseded as error:
        print(error)
    except Exception as error:  # noqa: BLE001  one run must not stop the next one
        traceback.print_exc()
        _fail(claim, _reason(error))
    return End.failed


def _train(folder: RunFolder, claim: Claim, config: Config, interrupts: Interrupts) -> End:
    setup_process(config.run.threads)
    started = time.time()
    data = prepare(config.data, config.model.context, print)
    outcome = train(
        folder,
        claim,
        config,
        data,
        on_ready=lambda ready: write_json(folder.meta, _meta(config, data, ready, started)),
        interrupts=interrupts,
    )
    print(f"{outcome.ending} after {outcome.steps} steps")
    if outcome.ending is Ending.preempted:
        return End.preempted
    if _whole(folder):
        write_json(folder.summary, summarise(Run(folder)))
    return End.done


def _meta(config: Config, data: TokenData, ready: Ready, started: float) -> dict[str, Any]:
    """What meta.json holds: everything that is known before the first step."""
    return {
        "schema": 1,
        "config": flatten(config),
        "environment": environment(),
        "device": str(ready.device.type),
        "device_name": device_name(ready.device),
        "threads": torch.get_num_threads(),
        "data": asdict(data.facts),
        "model": Description.of(ready.module).to_dict(),
        "decay_groups": ready.groups.to_dict(),
        "initial_loss": ready.initial_loss,
        "from_step": ready.from_step,
        "argv": sys.argv,
        "started": started,
    }


def _check_identity(folder: RunFolder, config: Config) -> None:
    """Refuse a config that is not the one the folder is named for (a repetition may have its own)."""
    if folder.path.parent.name == "reruns":
        return
    found = run_id(config, fingerprint(config.data))
    if found != folder.id:
        raise UserError(
            f"{folder.config} describes run {found}, the folder is run {folder.id}",
            hint="the config or the data were changed; start the changed run by its own name",
        )


def _check_code(folder: RunFolder, config: Config) -> None:
    """Refuse a run that was queued, or begun, with other code."""
    queued = read_status(folder).code_sha
    if queued is None or queued == code_sha():
        return
    if config.run.allow_code_change:
        return
    raise UserError(
        "the code of ablate has changed since this run was queued",
        hint="run.allow_code_change=true, or bring the code back",
    )


def _tidy(folder: RunFolder, config: Config) -> None:
    """Let go of checkpoints; the newest from before a divergence stays."""
    tidy(folder.checkpoint, config.run.keep, Run(folder).verdict().step if _whole(folder) else None)


def _whole(folder: RunFolder) -> bool:
    """Does the record begin at step 0? A repetition from a checkpoint has no verdict of its own."""
    steps = Run(folder).series().steps
    return len(steps) > 0 and steps[0] == 0


def _fail(claim: Claim, reason: str) -> None:
    print(f"failed: {reason}")
    try:
        claim.finish(State.failed, reason)
    except (UserError, OSError) as error:
        print(f"and the status could not be written: {error}")


def _reason(error: Exception) -> str:
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return f"out of memory: {error}".rstrip(": ")
    if isinstance(error, UserError):
        return str(error)
    return f"{type(error).__name__}: {error}"
