"""From what was asked to what it means: derived fields filled in, and back again.

A configuration is *asked* while derived fields may be null, `bias` may hold words and `warmup` may be a
fraction; it is *resolved* once all of that is settled. Both are the same dataclasses.
"""

from collections.abc import Callable, Mapping
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

from ablate.config.bias import realise, words_for
from ablate.config.enums import Activation, Norm, Objective, Placement, Stack
from ablate.config.errors import ConfigError
from ablate.config.model import ModelConfig
from ablate.config.schema import Config, OptimConfig

T = TypeVar("T")


def _head_dim(config: Config) -> int | None:
    model = config.model
    return None if model.width % model.heads else model.width // model.heads


def _ffn(config: Config) -> int:
    model = config.model
    if model.activation is Activation.swiglu:
        return max(8, 8 * round(model.width / 3))
    return 4 * model.width


def _final_norm(config: Config) -> bool:
    return config.model.placement is not Placement.post and config.model.norm is not Norm.none


OBJECTIVES = {
    Stack.decoder: (Objective.next,),
    Stack.encoder: (Objective.masked,),
    Stack.encoder_decoder: (Objective.prefix, Objective.span),
}
VOCAB = 512
# Started from a folder's weights, a model draws nothing: runs that differ in these would be the same run.
NOTHING_DRAWN = {"model.init": ModelConfig().init, "model.bias_init": ModelConfig().bias_init}


# None depends on another derived field.
DERIVED: dict[str, Callable[[Config], Any]] = {
    "model.kv_heads": lambda c: c.model.heads,
    "model.head_dim": _head_dim,
    "model.ffn": _ffn,
    "model.final_norm": _final_norm,
    "data.vocab_size": lambda c: c.model.vocab or VOCAB,
    "data.objective": lambda c: OBJECTIVES[c.model.stack][0],
    "data.data_seed": lambda c: c.seed,
    "eval.every": lambda c: max(1, c.optim.steps // 4),
    "run.checkpoint_every": lambda c: max(1, c.optim.steps // 5),
}
FRACTIONS = {"optim.warmup": OptimConfig().warmup, "optim.cooldown": OptimConfig().cooldown}


def assign(config: Config, changes: Mapping[str, Any]) -> Config:
    """The configuration with typed values put at dotted keys; nothing is checked or derived."""
    by_section: dict[str, dict[str, Any]] = {}
    for key, value in changes.items():
        section, _, name = key.rpartition(".")
        by_section.setdefault(section, {})[name] = value
    whole = by_section.pop("", {})
    for section, part in by_section.items():
        whole[section] = _with(getattr(config, section), part)
    return _with(config, whole)


def _with(part: T, changes: Mapping[str, Any]) -> T:
    """`dataclasses.replace` for dataclasses that only hold values: many times as fast, and a sweep of 10,000
    runs does it 100,000 times.
    """
    changed = object.__new__(type(part))
    values = vars(changed)
    values.update(vars(part))
    known = len(values)
    values.update(changes)
    assert len(values) == known, f"no such field among {list(changes)}"
    return changed


def at(config: Config, key: str) -> Any:
    """The value at a dotted key."""
    return _getter(key)(config)


@cache
def _getter(key: str) -> Callable[[Config], Any]:
    return attrgetter(key)


def resolve(asked: Config) -> Config:
    """Fill derived fields, realise the bias sites, make steps of fractions. Idempotent.

    With `model.weights` the initialisation is the default, since nothing is drawn by it.
    `model.head_dim` stays null where heads do not divide width: the rules refuse that.
    Raises ConfigError where `bias` names a site that the model does not have.
    """
    changes = {key: derive(asked) for key, derive in DERIVED.items() if at(asked, key) is None}
    changes["model.bias"] = realise(asked.model.bias, asked.model)
    if asked.model.weights is not None:
        changes |= NOTHING_DRAWN
    for key in FRACTIONS:
        changes[key] = _whole_steps(at(asked, key), asked.optim.steps)
    return assign(asked, changes)


def _whole_steps(value: int | float, steps: int) -> int:
    return value if isinstance(value, int) else round(value * steps)


def unresolve(config: Config) -> Config:
    """The shortest asked configuration that means this one: derivable values are null, biases words.

    Warm-up and cooldown are fractions again where the default fraction gives them, else they stay steps.
    """
    nulls = {key: None for key, derive in DERIVED.items() if at(config, key) == derive(config)}
    words = words_for(config.model.bias, config.model)
    bias = (words[0],) if words else config.model.bias
    shares = {
        key: share
        for key, share in FRACTIONS.items()
        if at(config, key) == _whole_steps(share, config.optim.steps)
    }
    return assign(config, {**nulls, **shares, "model.bias": bias})


def derived(config: Config, key: str) -> bool:
    """Has a setting of a resolved configuration the value that follows from the others by itself?"""
    return key in DERIVED and at(config, key) == DERIVED[key](config)


def check_bias_carries_over(old: ModelConfig, new: ModelConfig) -> None:
    """Refuse a change of the model after which the old `bias` could mean two things.

    Without a norm `linear` and `all` are the same sites; give the model a norm and they differ.
    """
    words = words_for(old.bias, old)
    meanings = {realise((word,), new) for word in words}
    if len(meanings) > 1:
        raise ConfigError(
            f"model.bias was {' or '.join(words)}, which differ in the changed model",
            hint=" or ".join(f"model.bias={word}" for word in words),
        )
