"""What one experiment of a sweep brings along: axes, those that advance together, combinations left out."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any, TypeVar

from ablate.config.bias import OWN
from ablate.config.compositions import Compositions
from ablate.config.enums import Scale
from ablate.config.errors import ConfigError, UserError, shown
from ablate.config.fields import table, unknown_key
from ablate.config.overrides import Choices, group_options, read_axis
from ablate.config.parse import ask, jsonable
from ablate.config.resolve import assign, at
from ablate.config.scale import scaled
from ablate.config.schema import Config, SweepConfig

Point = dict[str, Any]
T = TypeVar("T")
BRINGS = ("axes", "zip", "exclude")  # the settings of a sweep that a group's option could bring along


@dataclass(frozen=True)
class Axis:
    """A factor and its typed values, as asked for (biases as words, groups as option names)."""

    key: str
    values: tuple[Any, ...]


@dataclass
class Exclusion:
    """An entry of `sweep.exclude`: the values it matches by key, and how many cells it has matched."""

    values: Mapping[str, tuple[Any, ...]]
    must_match: bool
    matched: int = 0

    def matches(self, chosen: Mapping[str, Any], asked: Config) -> bool:
        """Does the entry leave out this cell, given its groups' options and its settings as asked?"""
        for key, values in self.values.items():
            if (chosen.get(key) if key in group_options() else at(asked, key)) not in values:
                return False
        self.matched += 1
        return True

    def __str__(self) -> str:
        return shown({key: _written(values) for key, values in self.values.items()})


@dataclass(frozen=True)
class Part:
    """One experiment (or none) with its axes and what is pinned; `zipped`: axes that advance together."""

    experiment: str | None
    asked: Config
    axes: tuple[Axis, ...]
    zipped: tuple[tuple[str, ...], ...]
    pinned: Mapping[str, Any]
    exclusions: tuple[Exclusion, ...] = field(compare=False)

    @property
    def strands(self) -> list[list[Point]]:
        """What is multiplied: the values of each axis, or of the axes of a zip, in the order of the axes."""
        by_key = {axis.key: axis for axis in self.axes}
        together = {key: group for group in self.zipped for key in group}
        done: set[str] = set()
        strands = []
        for key in by_key:
            if key not in done:
                keys = together.get(key, (key,))
                done.update(keys)
                columns = zip(*(by_key[name].values for name in keys), strict=True)
                strands.append([dict(zip(keys, values, strict=True)) for values in columns])
        return strands

    @property
    def count(self) -> int:
        """Combinations, before any is left out."""
        return math.prod(map(len, self.strands))

    def cells(self, compositions: Compositions) -> Iterator[tuple[Point, Config]]:
        """Each combination that is not excluded, with its configuration as asked for.

        Composes once per combination of groups, shrinks the model to `model.scale` and sets values on the
        typed tree, so that they come after it. `model.bias=own` is what the files say.
        Raises UserError for axes that an option of a group would bring along in vain.
        """
        options = group_options()
        fixed = {key: value for key, value in self.pinned.items() if key not in options}
        fixed |= {f"sweep.{name}": getattr(SweepConfig(), name) for name in (*BRINGS, "allow")}  # of one run
        names = [axis.key for axis in self.axes if axis.key in options]
        composed = self._composed(names, compositions)

        @cache
        def base(named: tuple[Any, ...], scale: Scale | None) -> Config:
            whole = composed[named][1]
            return assign(assign(whole, {"model": scaled(whole.model, scale)}) if scale else whole, fixed)

        for steps in product(*self.strands):
            point = {key: value for step in steps for key, value in step.items()}
            named = tuple(point[name] for name in names)
            chosen, whole = composed[named]
            scale = point.get("model.scale", fixed.get("model.scale", whole.model.scale))
            asked = assign(base(named, scale), {k: v for k, v in point.items() if k not in options})
            if asked.model.bias == (OWN,):
                asked = assign(asked, {"model.bias": whole.model.bias})
            matches = [entry.matches(chosen, asked) for entry in self.exclusions]  # all: each counts its own
            if True not in matches:
                yield {axis.key: point[axis.key] for axis in self.axes}, asked

    def _composed(
        self, names: Sequence[str], compositions: Compositions
    ) -> dict[tuple[Any, ...], tuple[Point, Config]]:
        """What the files say, by the options of swept groups: the groups chosen, and the configuration."""
        still = {key: value for key, value in self.pinned.items() if key in group_options()}
        found = {}
        for chosen in self._choices(names, still):
            asked = ask(compositions.of([chosen])[0])
            self._check_inner(chosen, names, asked)
            found[tuple(chosen[name] for name in names)] = chosen, asked
        return _named(found) if "model" in names else found

    def _choices(self, names: Sequence[str], still: Mapping[str, Any]) -> list[dict[str, Any]]:
        by_key = {axis.key: axis.values for axis in self.axes}
        base = {**still, "experiment": self.experiment}
        return [
            {**base, **dict(zip(names, combination, strict=True))}
            for combination in product(*(by_key[name] for name in names))
        ]

    def _check_inner(self, chosen: Mapping[str, Any], names: Sequence[str], asked: Config) -> None:
        for name in BRINGS:
            if getattr(asked.sweep, name) != getattr(self.asked.sweep, name):
                options = " ".join(f"{key}={chosen[key]}" for key in names)
                raise UserError(
                    f"the sweep.{name} that come with {options} would be lost: an option of a swept group "
                    "brings no axes of its own",
                    hint=f"sweep.{name} in conf/experiment/NAME.yaml, then experiment=NAME",
                )


def _named(found: Mapping[T, tuple[Point, Config]]) -> dict[T, tuple[Point, Config]]:
    """Beside presets, a model whose file says none is called by its file: arms are named by presets then."""
    if all(asked.model.preset is None for _, asked in found.values()):
        return dict(found)
    return {
        key: (chosen, assign(asked, {"model.preset": asked.model.preset or chosen["model"]}))
        for key, (chosen, asked) in found.items()
    }


def read_part(request: Mapping[str, Choices], experiment: str | None, compositions: Compositions) -> Part:
    """What the request asks of one experiment. Raises UserError."""
    options = group_options()
    request = {key: choices for key, choices in request.items() if key != "experiment"}
    groups = {key: choices.values[0] for key, choices in request.items() if key in options}
    asked = ask(compositions.of([{**groups, "experiment": experiment}])[0])
    given = {name: request.get(f"sweep.{name}") for name in BRINGS}
    axes, zips, excluded = (_own(asked, name, given[name]) for name in BRINGS)
    choices = {key: _axis(key, entry) for key, entry in axes.items()}
    choices.update(request)
    swept = sorted((choice for choice in choices.values() if choice.swept), key=_rank)
    pinned = {key: choice.values[0] for key, choice in choices.items() if not choice.swept}
    lengths = {choice.key: len(choice.values) for choice in swept}
    exclusions = tuple(_exclusion(entry, request, given["exclude"] is not None) for entry in excluded)
    return Part(
        experiment=experiment,
        asked=asked,
        axes=tuple(Axis(choice.key, choice.values) for choice in swept),
        zipped=_zips(zips, lengths, pinned),
        pinned=pinned,
        exclusions=exclusions,
    )


def _own(asked: Config, name: str, given: Choices | None) -> Any:
    return getattr(asked.sweep, name) if given is None else given.values[0]


def _axis(key: str, entry: object) -> Choices:
    _check_key(key, "axes")
    if key == "experiment" or key.startswith("sweep."):
        raise UserError(
            f"sweep.axes: {key} cannot be an axis of an experiment", hint="experiment=A,B on the command line"
        )
    return read_axis(key, entry)


def _check_key(key: str, where: str) -> None:
    options = group_options()
    if key not in table() and key not in options:
        error = unknown_key(key, None, options)
        raise ConfigError(f"sweep.{where}: {error.problem}", hint=error.hint)


def _rank(choice: Choices) -> int:
    """Sorting is stable: all but the learning rate and the seed keep their order."""
    return {"optim.lr": 1, "seed": 2}.get(choice.key, 0)


def _zips(
    groups: Sequence[Sequence[str]], lengths: Mapping[str, int], pinned: Mapping[str, Any]
) -> tuple[tuple[str, ...], ...]:
    """The groups of axes that advance together; one whose every axis was pinned to a value is none."""
    found: list[tuple[str, ...]] = []
    for group in groups:
        for key in group:
            _check_key(key, "zip")
            if key not in lengths and key not in pinned:
                raise UserError(f"sweep.zip: {key} is no axis of this sweep", hint=f"{key}=a,b")
        if len(set(group)) < max(2, len(group)) or {key for other in found for key in other} & set(group):
            raise UserError(f"sweep.zip = {shown(groups)}", allowed="groups of two or more axes, each in one")
        if not lengths.keys() & set(group):
            continue
        counts = {key: lengths.get(key, 1) for key in group}
        if len(set(counts.values())) > 1:
            said = ", ".join(f"{key} has {count}" for key, count in counts.items())
            raise UserError(f"sweep.zip: axes of equal length advance together, but {said}")
        found.append(tuple(group))
    return tuple(found)


def _exclusion(entry: Mapping[str, Any], request: Mapping[str, Choices], given: bool) -> Exclusion:
    """An experiment's entry may come to nothing when the command line changes one of its keys."""
    if not entry:
        raise UserError("sweep.exclude: an empty entry would leave out everything")
    values = {}
    for key, value in entry.items():
        _check_key(key, "exclude")
        values[key] = read_axis(key, value).values
    return Exclusion(values, must_match=given or not values.keys() & request.keys())


def _written(values: Sequence[Any]) -> Any:
    plain = [written(value) for value in values]
    return plain[0] if len(plain) == 1 else plain


def written(value: Any) -> Any:
    """A typed value as one would write it: a single bias word stands alone."""
    plain = jsonable(value)
    return plain[0] if isinstance(plain, list) and len(plain) == 1 else plain
