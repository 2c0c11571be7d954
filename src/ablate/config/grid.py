"""One run, or the grid of runs that a sweep asks for."""

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ablate.config.compositions import Compositions
from ablate.config.errors import ConfigError, UserError, shown
from ablate.config.overrides import LARGEST_SWEEP, read_overrides
from ablate.config.parse import finish
from ablate.config.parts import Axis, Part, Point, read_part, written
from ablate.config.resolve import at
from ablate.config.schema import Config
from ablate.config.weights import anchored


@dataclass(frozen=True)
class Grid:
    """All runs of a sweep. `base` is the first cell; seeds vary fastest, then learning rates.

    `zipped`: keys of axes that advance together. `excluded`: how many combinations `sweep.exclude` left
    out. `allow`: keys that arms may differ in without being axes.
    """

    base: Config
    axes: tuple[Axis, ...]
    cells: tuple[Config, ...]
    zipped: tuple[tuple[str, ...], ...] = ()
    excluded: int = 0
    allow: tuple[str, ...] = ()


def compose(overrides: Sequence[str]) -> Config:
    """The one run that conf/ and the overrides say.

    Raises ConfigError for refused settings, UserError for a sweep, also one that an experiment brings along
    and the overrides do not pin.
    """
    parts, compositions = _parts(overrides)
    axes = _axes(parts)
    if axes:
        keys = ", ".join(axis.key for axis in axes)
        pins = " ".join(f"{axis.key}={shown(written(axis.values[0]))}" for axis in axes)
        raise UserError(
            f"this asks for {sum(part.count for part in parts)} runs (over {keys})",
            hint=f"ablate sweep, or one value for each: {pins}",
        )
    return _cells(parts, compositions)[0]


def expand(overrides: Sequence[str]) -> Grid:
    """The grid of runs that conf/, `sweep.axes` and sweeps in the overrides say.

    An override replaces the entry of `sweep.axes` with the same key; a single value pins it. Axes run in the
    order given, `sweep.axes` first, but learning rate last but one and seed last; those named together in
    `sweep.zip` advance together. Several experiments (`experiment=a,b`) give the cells of each, one after the
    other, every one with its own axes. `sweep.exclude` leaves out combinations before they are checked.
    `-m` changes nothing. Every cell is checked before anything is returned: ConfigError names the cell, its
    key and value.
    """
    parts, compositions = _parts([text for text in overrides if text not in ("-m", "--multirun")])
    count = sum(part.count for part in parts)
    if count > LARGEST_SWEEP:
        raise UserError(f"this asks for {count:,} runs", allowed=f"at most {LARGEST_SWEEP:,} in one sweep")
    cells = _cells(parts, compositions)
    zipped = tuple(dict.fromkeys(group for part in parts for group in part.zipped))
    allow = tuple(dict.fromkeys(key for part in parts for key in _allowed(part)))
    return Grid(cells[0], _axes(parts), cells, zipped, count - len(cells), allow)


def _parts(overrides: Sequence[str]) -> tuple[list[Part], Compositions]:
    """What each experiment asked for brings along; one part where there is none or one."""
    request = read_overrides(overrides)
    chosen = request.get("experiment")
    compositions = Compositions()
    names = dict.fromkeys(chosen.values) if chosen else [None]
    parts = [read_part(request, name, compositions) for name in names]
    for key in ("study", "run.root", "sweep.redo"):
        said = {part.pinned.get(key, at(part.asked, key)): part.experiment for part in parts}
        if len(said) > 1:
            each = ", ".join(f"{experiment or 'none'}: {shown(value)}" for value, experiment in said.items())
            raise UserError(f"the experiments of one sweep disagree on {key} ({each})", hint=f"{key}=…")
    return parts, compositions


def _axes(parts: Sequence[Part]) -> tuple[Axis, ...]:
    """The axes of all parts, with the values of all; several experiments are an axis themselves."""
    if len(parts) == 1:
        return parts[0].axes
    values: dict[str, dict[Any, None]] = {"experiment": {part.experiment: None for part in parts}}
    for axis in (axis for part in parts for axis in part.axes):
        values.setdefault(axis.key, {}).update(dict.fromkeys(axis.values))
    return tuple(Axis(key, tuple(known)) for key, known in values.items())


def _allowed(part: Part) -> Sequence[str]:
    said: Sequence[str] = part.pinned.get("sweep.allow", part.asked.sweep.allow)
    return said


def _cells(parts: Sequence[Part], compositions: Compositions) -> tuple[Config, ...]:
    """Every cell, checked."""
    cells = []
    for part in parts:
        for point, asked in part.cells(compositions):
            try:
                cells.append(_anchored(finish(asked)))
            except ConfigError as error:
                raise _of_cell(error, part, point) from None
    _check_exclusions(parts)
    if not cells:
        raise UserError("sweep.exclude leaves out every combination")
    return tuple(cells)


def _check_exclusions(parts: Sequence[Part]) -> None:
    matched: dict[str, int] = {}
    for entry in (entry for part in parts for entry in part.exclusions):
        text = str(entry)
        matched[text] = matched.get(text, 0) + entry.matched + (not entry.must_match)
    for text, count in matched.items():
        if not count:
            raise UserError(
                f"sweep.exclude: {text} matches no combination of this sweep",
                hint="its values as the axes have them, or leave the entry out",
            )


def _anchored(config: Config) -> Config:
    """Paths made absolute, and weights known by their digest: a run folder can be carried out, or repeated,
    from any working directory.
    """
    if config.model.weights is not None:
        config = dataclasses.replace(config, model=anchored(config.model))
    data = config.data
    if not (data.paths or data.name or data.tokenizer or data.cache):
        return config
    absolute = dataclasses.replace(
        data,
        paths=tuple(map(_absolute, data.paths)),
        name=_absolute(data.name) if data.name and data.name.startswith(("./", "../", "~")) else data.name,
        tokenizer=data.tokenizer and _absolute(data.tokenizer),
        cache=data.cache and _absolute(data.cache),
    )
    return dataclasses.replace(config, data=absolute)


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))


def _of_cell(error: ConfigError, part: Part, point: Point) -> ConfigError:
    where = [f"experiment={part.experiment}"] if part.experiment else []
    where += [f"{key}={shown(written(value))}" for key, value in point.items()]
    if not point:
        return error
    return ConfigError(
        f"{error.problem}, in the run with {' '.join(where)}", allowed=error.allowed, hint=error.hint
    )
