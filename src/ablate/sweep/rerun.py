"""Repeat a recorded run: its own configuration under reruns/, from the start or a checkpoint."""

import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ablate.config import Config, UserError, dump, load, replace, run_id
from ablate.data import fingerprint
from ablate.record import Claim, RunFolder, SeriesWriter, State, create_rerun, read_series
from ablate.sweep.prepared import prepare_runs

CADENCES = ("", "val", "probe")  # the series that are compared; timing never is
_STEP = re.compile(r"step-(\d{6,})")


@dataclass(frozen=True)
class Repetition:
    """A rerun's folder, ready for the worker. `start`: the step it begins at; `same`: same experiment."""

    folder: RunFolder
    config: Config
    start: int
    same: bool


def prepare_rerun(
    source: RunFolder,
    overrides: Mapping[str, object],
    from_step: int | None = None,
    announce: Callable[[str], None] = print,
) -> Repetition:
    """Freeze the next folder under `reruns/`: the source's config with overrides applied.

    With `from_step` the newest checkpoint at or before it comes along with the rows before it, as if a first
    attempt had been preempted there: the worker resumes. The costlier probes then measure every step.
    Its data are prepared before; `announce` is told what takes time. Raises UserError for a repetition, for
    data that cannot be used, for a step that is negative or beyond the run, or when overrides make it another
    experiment, whose steps cannot begin at this run's checkpoint.
    """
    if source.path.parent.name == "reruns":
        original = source.path.parents[1]
        raise UserError(f"{source.path} is a repetition itself", hint=f"ablate rerun {original}")
    recorded = load(source.config)
    config = replace(recorded, overrides) if overrides else recorded
    same = run_id(config, digest := fingerprint(config.data)) == run_id(recorded, digest)
    start = 0
    if from_step is not None:
        _check_step(from_step, recorded, same)
        config = replace(config, {"probe.every": 1})
        start = nearest_checkpoint(source, from_step) or 0
    prepare_runs([config], announce)
    folder = create_rerun(source, dump(config))
    if start:
        _copy_beginning(source, folder, start)
    return Repetition(folder, config, start, same)


def nearest_checkpoint(source: RunFolder, step: int) -> int | None:
    """The newest checkpoint at or before `step`; None if there is none."""
    if not source.checkpoint.is_dir():
        return None
    found = (_STEP.fullmatch(entry.name) for entry in source.checkpoint.iterdir())
    return max((int(m[1]) for m in found if m and int(m[1]) <= step), default=None)


def _check_step(step: int, config: Config, same: bool) -> None:
    if not 0 <= step < config.optim.steps:
        raise UserError(f"--from-step {step}", allowed=f"0 … {config.optim.steps - 1}, the steps of this run")
    if not same:
        raise UserError(
            "--from-step with overrides that make it another experiment",
            allowed="overrides of observe and control keys",
            hint="leave --from-step out",
        )


def _copy_beginning(source: RunFolder, folder: RunFolder, start: int) -> None:
    """The source's rows before step `start`, and its checkpoint there."""
    claim = Claim.take(folder)
    for cadence in CADENCES:
        series = read_series(source.metrics(cadence))
        if len(series):
            rows = [(int(row[0]), *row[1:].tolist()) for row in series.values_RC if row[0] < start]
            with SeriesWriter(claim, cadence, series.columns, 0) as writer:
                writer.append(rows)
                writer.sync()
    place = f"step-{start:06d}"
    shutil.copytree(source.checkpoint / place, folder.checkpoint / place)
    claim.finish(State.preempted, f"begins at step {start} of {source.name}")
