"""How long runs take, before they are trained: the time that runs like them took on this machine."""

import socket
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from ablate.config import Config, UserError, fields
from ablate.record import Run, RunFolder, find_runs
from ablate.sweep import slots

# What the time of a step depends on, as far as a configuration says it.
SHAPE = (
    "model.layers", "model.width", "model.heads", "model.kv_heads", "model.head_dim", "model.ffn",
    "model.context", "model.activation", "model.window", "model.window_every", "model.stack",
    "data.objective", "data.vocab_size", "optim.batch",
    "optim.accumulation", "optim.precision", "probe.outputs", "probe.gradients", "probe.every",
    "run.device", "run.threads", "run.compile",
)  # fmt: skip
LOOKED_AT = 400  # folders looked at for measured times, spread evenly over all below the root
ENOUGH = 5  # measured runs of one shape, whose median is taken
_shape = attrgetter(*SHAPE)
_NEUTRAL = {info.key: info.rules.get("neutral") for info in fields()}  # of runs older than the key
Shape = tuple[Any, ...]


@dataclass(frozen=True)
class Duration:
    """`seconds`: one run after another, of `measured` runs; the time of `unknown` others is not known.

    `longest`: seconds of the longest run; `sources`: how many recorded runs of this machine the times come
    from; `slots`: how many runs work at once.
    """

    seconds: float
    longest: float
    measured: int
    unknown: int
    sources: int
    slots: int

    @property
    def elapsed(self) -> float:
        """Seconds until the last run has ended, with every slot at work until then; never below `longest`."""
        return max(self.seconds / self.slots, self.longest)


def estimate_time(root: Path, configs: Sequence[Config]) -> Duration:
    """How long these runs take in a launch, from recorded runs of this machine below `root`.

    A recorded run counts for runs of the same shape (`SHAPE`) and device choice, by its seconds a step. How
    many runs work at once is resolved as the launch does it (`sweep.jobs`, cores, GPUs).
    """
    wanted: dict[Shape, int] = defaultdict(int)
    runs: dict[Shape, int] = defaultdict(int)
    for config in configs:
        shape = _shape(config)
        wanted[shape] += config.optim.steps
        runs[shape] += 1
    times = _measured(root, set(wanted)) if wanted else {}
    pace = {shape: statistics.median(found) for shape, found in times.items()}  # seconds a step
    known = [c for c in configs if _shape(c) in pace]
    return Duration(
        seconds=sum(pace[shape] * steps for shape, steps in wanted.items() if shape in pace),
        longest=max((pace[_shape(c)] * c.optim.steps for c in known), default=0.0),
        measured=sum(n for shape, n in runs.items() if shape in times),
        unknown=sum(n for shape, n in runs.items() if shape not in times),
        sources=sum(map(len, times.values())),
        slots=slots.for_launch(configs, slots.gpus_for(configs)) if known else 1,
    )


def _measured(root: Path, wanted: set[Shape]) -> dict[Shape, list[float]]:
    """Seconds a step by shape."""
    host = socket.gethostname()
    found: dict[Shape, list[float]] = {}
    for folder in _spread(find_runs(root)):
        run = Run(folder)
        try:
            meta = run.meta
        except UserError:
            continue  # damaged: another run will do
        flat = meta.get("config") or {}
        shape = tuple(flat.get(key, _NEUTRAL[key]) for key in SHAPE)
        if (meta.get("environment") or {}).get("host") != host or shape not in wanted:
            continue
        if len(found.get(shape, ())) < ENOUGH and (seconds := _seconds_a_step(run)) is not None:
            found.setdefault(shape, []).append(seconds)
            if all(len(found.get(one, ())) >= ENOUGH for one in wanted):
                break
    return found


def _spread(folders: Sequence[RunFolder]) -> Iterable[RunFolder]:
    return folders[:: max(1, len(folders) // LOOKED_AT)]


def _seconds_a_step(run: Run) -> float | None:
    """Of a run trained in one go; a resumed one's clock began anew."""
    if run.meta.get("from_step"):
        return None
    try:
        rows = run.series("timing")
    except UserError:
        return None
    if not len(rows) or rows.steps[-1] < 1:
        return None
    return float(rows.column("seconds")[-1]) / int(rows.steps[-1])
