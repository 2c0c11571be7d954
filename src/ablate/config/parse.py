"""A raw tree to a checked, resolved configuration, and back to plain trees."""

import dataclasses
import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from ablate.config.errors import ConfigError
from ablate.config.fields import fields, sections, table, unknown_key
from ablate.config.resolve import assign, at, check_bias_carries_over, resolve, unresolve
from ablate.config.rules import check
from ablate.config.schema import Config
from ablate.config.values import convert
from ablate.config.weights import anchored


def parse(raw: Mapping[str, Any]) -> Config:
    """The configuration that a nested mapping says; what it leaves out takes its default.

    Raises ConfigError (unknown keys, wrong types and values, broken rules between settings).
    """
    return finish(ask(raw))


def ask(raw: Mapping[str, Any]) -> Config:
    """The typed but unresolved configuration of a nested mapping. Raises ConfigError."""
    changes: dict[str, Any] = {}
    for name, value in raw.items():
        if name in sections():
            if not isinstance(value, Mapping):
                raise ConfigError.setting(name, value, f"a section with settings such as {_example(name)}")
            for leaf, item in value.items():
                changes[f"{name}.{leaf}"] = typed(f"{name}.{leaf}", item)
        else:
            changes[str(name)] = typed(str(name), value)
    return assign(Config(), changes)


def typed(key: str, value: object) -> Any:
    """The typed value of a setting. Raises ConfigError, for an unknown key with what was meant."""
    info = table().get(key)
    if info is None:
        raise unknown_key(key)
    return convert(info, value)


def finish(asked: Config) -> Config:
    """Resolve and check. Raises ConfigError."""
    config = resolve(asked)
    check(config)
    return config


def replace(config: Config, changes: Mapping[str, object]) -> Config:
    """The configuration with settings changed by dotted key, checked and resolved again.

    Derived fields that had the value they would have had by themselves are derived anew, and `bias` keeps
    the word that describes it; warm-up and cooldown follow `optim.steps` if they are at the default share of
    it, else they stay the steps they have become. Changed weights get their digest anew. Raises ConfigError,
    also where the old `bias` could mean two things in the changed model.
    """
    if "model.scale" in changes:
        raise ConfigError(
            "model.scale shrinks what conf/ says: it does not act on a run that stands",
            hint="ablate train model=PRESET model.scale=tiny",
        )
    if "model.preset" in changes:
        raise ConfigError(
            "model.preset is the name of what the run was made from", hint="ablate train model=PRESET"
        )
    new = {key: typed(key, value) for key, value in changes.items()}
    if "model.weights" in new:
        new.setdefault("model.weights_sha256", None)
    asked = assign(unresolve(config), new)
    if "model.bias" not in new:
        check_bias_carries_over(config.model, asked.model)
    changed = finish(asked)
    if "model.weights" in new:
        changed = dataclasses.replace(changed, model=anchored(changed.model))
    return changed


def to_dict(config: Config) -> dict[str, Any]:
    """A nested tree of plain JSON types; `parse` takes it back."""
    plain: dict[str, Any] = {}
    for info in fields():
        home = plain.setdefault(info.section, {}) if info.section else plain
        home[info.name] = jsonable(at(config, info.key))
    return plain


def flatten(config: Config) -> dict[str, Any]:
    """Dotted keys to JSON scalars or lists; a mapping becomes a list of `key=value` texts."""
    flat: dict[str, Any] = {}
    for info in fields():
        value = jsonable(at(config, info.key))
        if isinstance(value, dict):
            value = [f"{key}={json.dumps(item)}" for key, item in value.items()]
        flat[info.key] = value
    return flat


_PLAIN = frozenset((int, float, bool, str, type(None)))


def jsonable(value: Any) -> Any:
    """Enums as their words, tuples as lists."""
    if value.__class__ in _PLAIN:
        return value
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple | list):
        return [jsonable(item) for item in value]
    if isinstance(value, Mapping):
        return {key: jsonable(item) for key, item in value.items()}
    return value


def _example(section: str) -> str:
    return f"{section}.{dataclasses.fields(sections()[section])[0].name}"
