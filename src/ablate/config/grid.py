"""One run, or the grid of runs that a sweep asks for."""

import dataclasses
import itertools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ablate.config.compositions import Compositions
from ablate.config.errors import ConfigError, UserError, shown
from ablate.config.fields import table, unknown_key
from ablate.config.overrides import LARGEST_SWEEP, Choices, group_options, read_axis, read_overrides
from ablate.config.parse import ask, finish, jsonable
from ablate.config.resolve import assign
from ablate.config.schema import Config


@dataclass(frozen=True)
class Axis:
    """A factor and its typed values, as asked for (biases as words, groups as option names)."""

    key: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Grid:
    """All runs of a sweep. `base` is the first cell; seeds vary fastest, then learning rates."""

    base: Config
    axes: tuple[Axis, ...]
    cells: tuple[Config, ...]


def compose(overrides: Sequence[str]) -> Config:
    """The one run that conf/ and the overrides say.

    Raises ConfigError for refused settings, UserError for a sweep, also one that an experiment brings along
    and the overrides do not pin.
    """
    axes, cells = _plan(overrides)
    if axes:
        keys = ", ".join(axis.key for axis in axes)
        pins = " ".join(f"{axis.key}={shown(_written(axis.values[0]))}" for axis in axes)
        raise UserError(
            f"this asks for {math.prod(len(axis.values) for axis in axes)} runs (over {keys})",
            hint=f"ablate sweep, or one value for each: {pins}",
        )
    return cells()[0]


def expand(overrides: Sequence[str]) -> Grid:
    """The grid of runs that conf/, `sweep.axes` and sweeps in the overrides say.

    An override replaces the entry of `sweep.axes` with the same key; a single value pins it. Axes run in the
    order given, `sweep.axes` first, but learning rate last but one and seed last. `-m` changes nothing.
    Every cell is checked before anything is returned: ConfigError names the cell, its key and value.
    """
    axes, cells = _plan([text for text in overrides if text not in ("-m", "--multirun")])
    made = cells()
    return Grid(made[0], axes, made)


def _plan(overrides: Sequence[str]) -> tuple[tuple[Axis, ...], Callable[[], tuple[Config, ...]]]:
    """The axes, and a function that makes and checks their cells."""
    request = read_overrides(overrides)
    groups = {key: request[key].values[0] for key in request if key in group_options()}
    compositions = Compositions()
    composed = ask(compositions.of([groups])[0])
    own_axes = request.get("sweep.axes")
    listed = own_axes.values[0] if own_axes else composed.sweep.axes
    choices = {key: _axis(key, entry) for key, entry in listed.items()}
    choices.update(request)
    swept = sorted((choice for choice in choices.values() if choice.swept), key=_rank)
    pinned = {key: choice.values[0] for key, choice in choices.items() if not choice.swept}
    count = math.prod(len(choice.values) for choice in swept)
    if count > LARGEST_SWEEP:
        raise UserError(f"this asks for {count:,} runs", allowed=f"at most {LARGEST_SWEEP:,} in one sweep")
    axes = tuple(Axis(choice.key, choice.values) for choice in swept)
    return axes, lambda: _cells(axes, pinned, compositions)


def _axis(key: str, entry: object) -> Choices:
    options = group_options()
    if key not in table() and key not in options:
        raise unknown_key(key, None, options)
    if key == "experiment" or key.startswith("sweep."):
        raise UserError(f"sweep.axes: {key} cannot be an axis of an experiment")
    return read_axis(key, entry)


def _rank(choice: Choices) -> int:
    """Sorting is stable: all but the learning rate and the seed keep their order."""
    return {"optim.lr": 1, "seed": 2}.get(choice.key, 0)


def _cells(axes: Sequence[Axis], pinned: Mapping[str, Any], compositions: Compositions) -> tuple[Config, ...]:
    """Every cell, checked. Composes once per combination of groups and sets values on the typed tree."""
    options = group_options()
    fixed = {key: value for key, value in pinned.items() if key not in options}
    fixed["sweep.axes"] = {}  # a cell is one run, whichever sweep asked for it
    chosen = {key: value for key, value in pinned.items() if key in options}
    swept_groups = [axis for axis in axes if axis.key in options]
    names = [axis.key for axis in swept_groups]
    combinations = list(itertools.product(*(axis.values for axis in swept_groups)))
    raws = compositions.of([{**chosen, **dict(zip(names, combo, strict=True))} for combo in combinations])
    bases = {combo: assign(ask(raw), fixed) for combo, raw in zip(combinations, raws, strict=True)}
    cells = []
    for point in itertools.product(*(axis.values for axis in axes)):
        values = dict(zip((axis.key for axis in axes), point, strict=True))
        base = bases[tuple(values.pop(name) for name in names)]
        try:
            cells.append(_anchored(finish(assign(base, values))))
        except ConfigError as error:
            raise _of_cell(error, axes, point) from None
    return tuple(cells)


def _anchored(config: Config) -> Config:
    """Paths made absolute: a run folder can be carried out, or repeated, from any working directory."""
    data = config.data
    if not (data.paths or data.name or data.tokenizer or data.cache):
        return config
    anchored = dataclasses.replace(
        data,
        paths=tuple(map(_absolute, data.paths)),
        name=_absolute(data.name) if data.name and data.name.startswith(("./", "../", "~")) else data.name,
        tokenizer=data.tokenizer and _absolute(data.tokenizer),
        cache=data.cache and _absolute(data.cache),
    )
    return dataclasses.replace(config, data=anchored)


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))


def _of_cell(error: ConfigError, axes: Sequence[Axis], point: Sequence[Any]) -> ConfigError:
    if not axes:
        return error
    cell = " ".join(f"{axis.key}={shown(_written(value))}" for axis, value in zip(axes, point, strict=True))
    return ConfigError(f"{error.problem}, in the run with {cell}", allowed=error.allowed, hint=error.hint)


def _written(value: Any) -> Any:
    """A typed value as one would write it: a single bias word stands alone."""
    plain = jsonable(value)
    return plain[0] if isinstance(plain, list) and len(plain) == 1 else plain
