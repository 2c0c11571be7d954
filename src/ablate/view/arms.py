"""What is compared: the factors that differ among a study's runs, and the arm each run belongs to.

Computed from the runs themselves, never from the request: a study grows by later sweeps, and an arm is
whatever still tells its runs apart.
"""

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from ablate.view.text import value

LR, SEED, DATA_SEED, DATA = "optim.lr", "seed", "data.data_seed", "data"
AXES = (LR, SEED)  # varied within an arm
# Counted in steps, or following from another choice: dropped where the other factors already tell them.
FOLLOWERS = (
    "model.kv_heads",
    "model.head_dim",
    "model.ffn",
    "model.final_norm",
    "optim.warmup",
    "optim.cooldown",
    DATA,
)
BIAS_WORDS = {
    (): "none",
    ("q", "k", "v", "o", "up", "down"): "linear",
    ("q", "k", "v", "o", "up", "gate", "down"): "linear",
    ("q", "k", "v", "o", "up", "down", "norm"): "all",
    ("q", "k", "v", "o", "up", "gate", "down", "norm"): "all",
    ("q", "k", "v", "o", "up", "down", "norm", "qk_norm"): "all",
    ("q", "k", "v", "o", "up", "gate", "down", "norm", "qk_norm"): "all",
    ("norm",): "norm",
    ("norm", "qk_norm"): "norm",
    ("q", "k", "v"): "qkv",
}

Flat = Mapping[str, object]


@dataclass(frozen=True)
class Factor:
    """A configuration key with the values its runs take, in order of appearance."""

    key: str
    values: tuple[object, ...]


def factors(flats: Sequence[Flat], keys: Sequence[str]) -> tuple[Factor, ...]:
    """The varied ones of `keys`, consequences left out (`model.final_norm` that follows the placement).

    A key is left out only when the remaining factors determine it, so no two runs fall together by it.
    The learning rate and the seed determine nothing but the batch order's seed.
    """
    varied = {key: values for key in keys if len(values := _values(flats, key)) > 1}
    for key in FOLLOWERS:
        others = [k for k in varied if k not in (key, *AXES, DATA_SEED)]
        if key in varied and _determined(flats, key, others):
            del varied[key]
    if DATA_SEED in varied and _determined(flats, DATA_SEED, [k for k in varied if k != DATA_SEED]):
        del varied[DATA_SEED]
    return tuple(Factor(key, values) for key, values in varied.items())


def arm_label(flat: Flat, varied: Sequence[Factor]) -> str:
    """`bias=none placement=pre`: the run's values of every factor but learning rate and seed."""
    names = short_names([f.key for f in varied if f.key not in AXES])
    return " ".join(f"{name}={shown(key, flat.get(key))}" for key, name in names.items()) or "-"


def short_names(keys: Sequence[str]) -> dict[str, str]:
    """Last components of dotted keys; the whole key where two would read alike."""
    last = [key.rsplit(".", 1)[-1] for key in keys]
    return {key: name if last.count(name) == 1 else key for key, name in zip(keys, last, strict=True)}


def shown(key: str, item: object) -> str:
    """A factor's value for people; bias sites by their word where there is one."""
    if key == "model.bias" and isinstance(item, list | tuple):
        return BIAS_WORDS.get(tuple(str(site) for site in item), value(item))
    return value(item)


def _values(flats: Sequence[Flat], key: str) -> tuple[object, ...]:
    return tuple({_token(flat.get(key)): flat.get(key) for flat in flats}.values())


def _determined(flats: Sequence[Flat], key: str, others: Sequence[str]) -> bool:
    seen: dict[Hashable, Hashable] = {}
    for flat in flats:
        rest = tuple(_token(flat.get(other)) for other in others)
        if seen.setdefault(rest, own := _token(flat.get(key))) != own:
            return False
    return True


def _token(item: object) -> str:
    return json.dumps(item, default=str, sort_keys=True)
