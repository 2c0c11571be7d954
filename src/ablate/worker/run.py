"""One run folder, from its config.yaml to its summary."""

import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from enum import StrEnum
from typing import Any

import torch

from ablate.config import Config, UserError, flatten, load, run_id
from ablate.data import TokenData, fingerprint, prepare
from ablate.model import Description
from ablate.record import (
    Claim,
    Claimed,
    Finished,
    Heartbeat,
    Run,
    RunFolder,
    State,
    Superseded,
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
    failed = "failed"
    preempted = "preempted"
    refused = "refused"  # not taken up
    elsewhere = "elsewhere"  # another process has it


def ignore(_: str) -> None:
    """Say nothing."""


def carry_out(
    folder: RunFolder,
    interrupts: Interrupts,
    surroundings: Mapping[str, Any] | None = None,
    refuse: Callable[[str], None] = ignore,
) -> End:
    """Train the run in this folder and write its summary; a done one is left alone.

    A folder that cannot be taken up (foreign or unreadable config, changed code, claimed by another process)
    is not touched; `refuse` is told why. `surroundings`: what `environment()` says, if that is known.
    """
    if read_status(folder).state is State.done:
        print(f"{folder.path}: already done")
        return End.done
    known = surroundings or environment()
    try:
        config = load(folder.config)
        _check_code(folder, config, str(known["code_sha"]))
        _check_identity(folder, config)
        claim = Claim.take(folder, unless_done=True)
    except Finished:
        return End.done
    except (UserError, OSError) as error:
        refuse(str(error))
        return End.elsewhere if isinstance(error, Claimed) else End.refused
    try:
        with output_to(folder.stdout), Heartbeat(folder):
            return _guarded(folder, claim, config, interrupts, known)
    except OSError as error:  # of the log or the heartbeat: there is no room for either
        _fail(claim, _reason(error))
    return End.failed


def _guarded(
    folder: RunFolder, claim: Claim, config: Config, interrupts: Interrupts, known: Mapping[str, Any]
) -> End:
    """Carry out a claimed run and write how it ended, whatever happens."""
    print(f"attempt {claim.attempt}, process {claim.owner.pid} on {claim.owner.host}")
    try:
        end = _train(folder, claim, config, interrupts, known)
        claim.finish(State(end))
        if end is End.done:
            _tidy(folder, config)
        return end
    except Superseded as error:
        print(error)
        return End.elsewhere
    except UserError as error:
        _fail(claim, _reason(error))
    except Exception as error:  # noqa: BLE001  one run must not stop the next one
        traceback.print_exc()
        _fail(claim, _reason(error))
    return End.failed


def _train(
    folder: RunFolder, claim: Claim, config: Config, interrupts: Interrupts, known: Mapping[str, Any]
) -> End:
    setup_process(config.run.threads)
    started = time.time()
    data = prepare(config.data, config.model.context, print)
    outcome = train(
        folder,
        claim,
        config,
        data,
        on_ready=lambda ready: write_json(folder.meta, _meta(config, data, ready, started, known)),
        interrupts=interrupts,
    )
    print(f"{outcome.ending} after {outcome.steps} steps")
    if outcome.ending is Ending.preempted:
        return End.preempted
    run = Run(folder)
    if _whole(run):
        write_json(folder.summary, summarise(run))
    elif folder.path.parent.name != "reruns":
        raise UserError(f"{folder.metrics()} does not begin at step 0", hint="sweep.redo=true")
    return End.done


def _meta(
    config: Config, data: TokenData, ready: Ready, started: float, known: Mapping[str, Any]
) -> dict[str, Any]:
    """What meta.json holds: everything that is known before the first step."""
    return {
        "schema": 1,
        "config": flatten(config),
        "environment": dict(known),
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


def _check_code(folder: RunFolder, config: Config, present: str) -> None:
    """Refuse a run that was queued, or begun, with other code than the present one."""
    queued = read_status(folder).code_sha
    if queued is None or queued == present:
        return
    if config.run.allow_code_change:
        return
    raise UserError(
        "the code of ablate has changed since this run was queued",
        hint="run.allow_code_change=true, or bring the code back",
    )


def _tidy(folder: RunFolder, config: Config) -> None:
    """Let go of checkpoints; the newest from before a breakdown stays."""
    summary = Run(folder).summary
    tidy(folder.checkpoint, config.run.keep, None if summary is None else summary["onset_step"])


def _whole(run: Run) -> bool:
    """Does the record begin at step 0? A repetition from a checkpoint has no verdict of its own."""
    steps = run.series().steps
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
