"""What a sweep would run, and what that would cost."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from ablate.config import Config, fields, flatten
from ablate.record import RunFolder, State
from ablate.sweep import Cell, Descriptions, Duration, Plan, cost, decay_counts, gigabytes, model_of
from ablate.view.arms import AXES, DATA_SEED
from ablate.view.facts import Arms, RunFacts
from ablate.view.table import Table, table
from ablate.view.text import duration, number, plural, value

_WITHIN = (*AXES, DATA_SEED)  # what varies within an arm
_arm_key = attrgetter(*(f.key for f in fields() if f.sweepable and f.key not in _WITHIN))


@dataclass(frozen=True)
class PlannedArm:
    """An arm of a plan, with its cells."""

    label: str
    cells: tuple[Cell, ...]

    @property
    def config(self) -> Config:
        """The configuration of its first cell: all are alike but for learning rate and seed."""
        return self.cells[0].config


def planned_arms(plan: Plan) -> tuple[PlannedArm, ...]:
    """The arms of a plan, in order of appearance, named by what differs among them."""
    groups: dict[Any, list[Cell]] = {}
    for cell in plan.cells:
        groups.setdefault((_arm_key(cell.config), cell.fingerprint), []).append(cell)
    first = [_planned(plan, cells[0]) for cells in groups.values()]
    arms = Arms.of(first)
    return tuple(
        PlannedArm(arms.label(run), tuple(cells)) for run, cells in zip(first, groups.values(), strict=True)
    )


def plan_table(plan: Plan, arms: Sequence[PlannedArm] | None = None) -> Table:
    """One row a run: id, arm, learning rate, seed, and whether it is done, missing or at work."""
    labels = {cell.run_id: arm.label for arm in arms or planned_arms(plan) for cell in arm.cells}
    todo = {cell.run_id for cell in plan.todo}
    rows = [
        (
            cell.run_id,
            labels[cell.run_id],
            number(cell.config.optim.lr, 6),
            value(cell.config.seed),
            _state(cell),
            "yes" if cell.run_id in todo else "no",
        )
        for cell in plan.cells
    ]
    return table(("id", "arm", "lr", "seed", "state", "to train"), rows, right=("lr", "seed"))


def arms_table(plan: Plan, arms: Sequence[PlannedArm], descriptions: Descriptions) -> Table:
    """One row an arm: runs done and missing, realised parameters and biases by site, decay groups, cost."""
    rows = []
    for arm in arms:
        description = descriptions[model_of(arm.config)]
        groups = decay_counts(description, arm.config.optim)
        price = cost(arm.config, description)
        biases = " ".join(f"{site}:{count}" for site, count in description["biases"].items())
        rows.append(
            (
                arm.label,
                len(arm.cells),
                sum(cell.done for cell in arm.cells),
                sum(not cell.done for cell in arm.cells),
                f"{description['parameters']:,}",
                biases or "none",
                f"{groups.decayed:,}",
                f"{groups.exempt:,}",
                number(price.flops, 3),
                gigabytes(price.memory.total),
            )
        )
    columns = (
        "arm", "runs", "done", "missing", "parameters", "biases by site", "decayed", "not decayed",
        "FLOPs a run", "memory",
    )  # fmt: skip
    right = tuple(name for name in columns if name not in ("arm", "biases by site"))
    return table(columns, rows, title=shape_words(plan, arms), right=right, lead="arm")


def shape_words(plan: Plan, arms: Sequence[PlannedArm]) -> str:
    """`3 arms × 4 learning rates × 2 seeds`; with commas where not every combination is asked for."""
    counts = (
        (len(arms), "arm"),
        (len({cell.config.optim.lr for cell in plan.cells}), "learning rate"),
        (len({cell.config.seed for cell in plan.cells}), "seed"),
    )
    words = [plural(count, word) for count, word in counts]
    if math.prod(count for count, _ in counts) == len(plan.cells):
        return " × ".join(words)
    return f"{', '.join(words)} in {plural(len(plan.cells), 'combination')}"


def factor_words(plan: Plan) -> str:
    """The declared factors with their numbers of values; zipped ones as one."""
    together = {key: group for group in plan.zipped for key in group}
    counts = {axis.key: len(axis.values) for axis in plan.axes}
    names: Mapping[str, int] = {"+".join(together.get(key, (key,))): n for key, n in counts.items()}
    return ", ".join(f"{name} ({count})" for name, count in names.items()) or "none"


def cost_words(plan: Plan, arms: Sequence[PlannedArm], descriptions: Descriptions, time: Duration) -> str:
    """One line: parameters, biases, FLOPs of all that is to be trained, largest memory, time."""
    todo = {cell.run_id for cell in plan.todo}
    parameters, biases, memory, flops = [], [], [0], 0.0
    for arm in arms:
        description = descriptions[model_of(arm.config)]
        price = cost(arm.config, description)
        parameters.append(description["parameters"])
        biases.append(sum(description["biases"].values()))
        memory.append(price.memory.total)
        flops += price.flops * sum(cell.run_id in todo for cell in arm.cells)
    return (
        f"models of {_span(parameters)} parameters, {_span(biases)} of them biases; to train: "
        f"{number(flops, 3)} FLOPs, {gigabytes(max(memory))} a run at most, {time_words(time)}"
    )


def time_words(time: Duration) -> str:
    """The time estimate, with how many runs share it and where it comes from."""
    if not time.measured:
        return "time unknown until a run is measured" if time.unknown else "no time"
    pace = f"{time.slots} runs at once" if time.slots > 1 else "one run after another"
    known = f" for {time.measured} of them" if time.unknown else ""
    words = f"about {duration(time.elapsed)}{known}, {pace}, by {plural(time.sources, 'run')} measured here"
    rest = f"; the time of the other {plural(time.unknown, 'run')} is unknown and comes on top"
    return words + (rest if time.unknown else "")


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _state(cell: Cell) -> str:
    return "missing" if cell.state is None else str(State(cell.state))


def _planned(plan: Plan, cell: Cell) -> RunFacts:
    folder = cell.folder or RunFolder(plan.root / plan.study / f"planned-{cell.run_id}")
    return RunFacts(
        folder=folder,
        run_id=cell.run_id,
        study=plan.study,
        slug="planned",
        state=_state(cell),
        reason=None,
        attempt=0,
        owner=None,
        flat=flatten(cell.config),
        summary={},
        fingerprint=cell.fingerprint,
        step=None,
    )
