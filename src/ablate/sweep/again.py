"""Runs of a study that ended badly, to be launched again as they were frozen."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from ablate.config import Config, UserError, load
from ablate.record import RunFolder, State, code_sha, find_runs, read_status
from ablate.sweep.prepared import prepare_runs
from ablate.sweep.requeue import requeue

BROKEN = frozenset({State.failed, State.killed, State.preempted})


@dataclass(frozen=True)
class Broken:
    """A run that did not end well, with the configuration it was frozen with."""

    folder: RunFolder
    state: State
    config: Config


def broken_runs(root: Path, study: str, states: Collection[State] = BROKEN) -> list[Broken]:
    """The runs of a study in one of these states, by name. Raises UserError for an unreadable config."""
    found = []
    for folder in find_runs(root, study):
        state = read_status(folder).state
        if state in states:
            found.append(Broken(folder, state, _config(folder)))
    return found


def _config(folder: RunFolder) -> Config:
    try:
        return load(folder.config)
    except (UserError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(
            f"{folder.path} cannot be launched again, its config.yaml is not readable: {reason}",
            hint="move that folder elsewhere; the sweep that made it makes it anew",
        ) from None


def queue_again(runs: list[Broken], announce: Callable[[str], None]) -> list[RunFolder]:
    """Prepare their data and queue them with the present code; their settings stay.

    Raises UserError for data that cannot be used, and for a run that would go on from a checkpoint of other
    code.
    """
    code = code_sha()
    prepare_runs((run.config for run in runs), announce)
    for run in runs:
        try:
            requeue(run.folder, run.config, code, announce)
        except UserError as error:
            hint = f"{error.hint} (with `ablate sweep`)" if error.hint else None
            raise UserError(error.problem, allowed=error.allowed, hint=hint) from None
    return [run.folder for run in runs]
