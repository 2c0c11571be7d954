"""From overrides to runs: every cell composed, checked and named before anything starts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from ablate.config import Axis, Config, DataConfig, dump, expand, run_id, slug
from ablate.data import fingerprint
from ablate.record import (
    Owner,
    Run,
    RunFolder,
    State,
    code_sha,
    collector_paused,
    create_run,
    find_runs,
    read_status,
)
from ablate.sweep.prepared import prepare_runs
from ablate.sweep.requeue import renew, requeue


@dataclass(frozen=True)
class Cell:
    """One run of a plan: its configuration, identity, and what the study's folder holds of it so far."""

    config: Config
    run_id: str
    fingerprint: str
    folder: RunFolder | None  # None: never frozen
    state: State | None  # None: never frozen
    owner: Owner | None = None

    @cached_property
    def slug(self) -> str:
        return slug(self.config)

    @property
    def done(self) -> bool:
        return self.state is State.done


@dataclass(frozen=True)
class Plan:
    """The runs a sweep asks for, each once, in the order of the request."""

    root: Path
    study: str
    base: Config
    axes: tuple[Axis, ...]
    cells: tuple[Cell, ...]
    duplicates: int  # cells asked for more than once and merged
    redo: bool
    zipped: tuple[tuple[str, ...], ...] = ()  # axes that advance together
    excluded: int = 0  # combinations left out by sweep.exclude
    allow: tuple[str, ...] = ()  # what arms may differ in without an axis

    @property
    def todo(self) -> tuple[Cell, ...]:
        """What a launch would train: all that is not done, and nothing that is being trained elsewhere."""
        return tuple(c for c in self.cells if c.state is not State.running and (self.redo or not c.done))

    @property
    def skipped(self) -> tuple[Cell, ...]:
        return tuple(c for c in self.cells if c.done and not self.redo)

    @property
    def busy(self) -> tuple[Cell, ...]:
        """Runs that another process is training right now."""
        return tuple(c for c in self.cells if c.state is State.running)


def plan(overrides: Sequence[str]) -> Plan:
    """Expand, validate and identify all cells. Raises ConfigError or UserError; writes nothing but caches."""
    with collector_paused():
        grid = expand(overrides)
        whole = plan_cells(grid.base, grid.axes, grid.cells)
    return replace(whole, zipped=grid.zipped, excluded=grid.excluded, allow=grid.allow)


def plan_cells(base: Config, axes: tuple[Axis, ...], configs: Sequence[Config]) -> Plan:
    """The plan for given configurations, compared with what stands in the study's folder."""
    prints = Fingerprints()
    root, study = Path(base.run.root), base.study
    present = {folder.id: folder for folder in find_runs(root, study)}
    cells: dict[str, Cell] = {}
    for config in configs:
        digest = prints.of(config.data)
        name = run_id(config, digest)
        if name not in cells:
            cells[name] = _cell(config, name, digest, present.get(name))
    return Plan(root, study, base, axes, tuple(cells.values()), len(configs) - len(cells), base.sweep.redo)


def prepare_data(the_plan: Plan, announce: Callable[[str], None]) -> None:
    """Prepare the data of every run to train (see `prepare_runs`): what cannot be used stops the sweep here.

    Raises UserError.
    """
    prepare_runs((cell.config for cell in the_plan.todo), announce)


def unrecorded(cell: Cell) -> tuple[str, ...]:
    """Probe settings that the request has on and the recorded run had off: what it holds no columns of."""
    if cell.folder is None:
        return ()
    asked = cell.config.probe
    recorded = Run(cell.folder).meta.get("config", {})
    wanted = {"probe.outputs": asked.outputs, "probe.gradients": asked.gradients, "probe.every": asked.every}
    return tuple(key for key, on in wanted.items() if on and not recorded.get(key, True))


def ignore(_: str) -> None:
    """Say nothing."""


def freeze(the_plan: Plan, announce: Callable[[str], None] = ignore) -> list[RunFolder]:
    """Write the folders of all runs to train (state queued), or find them where they stand.

    `announce` is told of settings that a resumed run keeps although others are asked for.
    Raises UserError for a folder that holds another experiment, or one begun with other code.
    """
    code = code_sha()
    folders = []
    for cell in the_plan.todo:
        text = dump(cell.config)
        folder = create_run(the_plan.root, the_plan.study, cell.slug, cell.run_id, text, code)
        if the_plan.redo and cell.folder is not None:
            renew(folder)
        requeue(folder, cell.config, code, announce)
        folders.append(folder)
    return folders


class Fingerprints:
    """Data fingerprints, each computed once: a sweep's cells mostly share their data."""

    def __init__(self) -> None:
        self.known: dict[DataConfig, str] = {}

    def of(self, data: DataConfig) -> str:
        key = replace(data, data_seed=0)  # orders the batches, leaves the data alone
        if key not in self.known:
            self.known[key] = fingerprint(data)
        return self.known[key]


def _cell(config: Config, name: str, digest: str, folder: RunFolder | None) -> Cell:
    if folder is None:
        return Cell(config, name, digest, None, None)
    status = read_status(folder)
    return Cell(config, name, digest, folder, status.state, status.owner)


def requested_factors(axes: Sequence[Axis]) -> dict[str, list[object]]:
    """The axes as a request records them."""
    return {axis.key: list(axis.values) for axis in axes}
