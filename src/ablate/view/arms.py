"""What is compared: the factors that differ among a study's runs, and the arm each run belongs to.

Computed from the runs themselves, never from the request: a study grows by later sweeps, and an arm is
whatever still tells its runs apart.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter

from ablate.config import WORDS, Activation, ModelConfig, Norm, Stack, fields, words_for
from ablate.view.shared import Layered, changed, common_base
from ablate.view.text import Rank, rank, value

LR, SEED, DATA_SEED, DATA, BIAS = "optim.lr", "seed", "data.data_seed", "data", "model.bias"
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
    found = columns(flats, keys)
    varied = {key: values for key in found if len(values := _values(found[key])) > 1}
    texts = {key: [*map(repr, found[key])] for key in varied}
    for key in FOLLOWERS:
        others = [k for k in varied if k not in (key, *AXES, DATA_SEED)]
        if key in varied and _determined(texts, key, others):
            del varied[key]
    if DATA_SEED in varied and _determined(texts, DATA_SEED, [k for k in varied if k != DATA_SEED]):
        del varied[DATA_SEED]
    return tuple(Factor(key, values) for key, values in varied.items())


def arm_label(flat: Flat, varied: Sequence[Factor]) -> str:
    """`bias=none placement=pre`: the run's values of every factor but learning rate and seed."""
    names = short_names([f.key for f in varied if f.key not in AXES])
    return " ".join(f"{name}={value(flat.get(key))}" for key, name in names.items()) or "-"


def arm_rank(flat: Flat, varied: Sequence[Factor]) -> tuple[Rank, ...]:
    """Sorts arms by their factors' values: words in the order of their definition, numbers by size."""
    return tuple(_value_rank(f.key, flat.get(f.key)) for f in varied if f.key not in AXES)


def _value_rank(key: str, item: object) -> Rank:
    choices = _choices().get(key, ())
    return (-1, float(choices.index(str(item))), "") if str(item) in choices else rank(item)


@cache
def _choices() -> Mapping[str, tuple[str, ...]]:
    return {BIAS: WORDS} | {f.key: tuple(map(str, f.choices)) for f in fields() if f.choices is not None}


def with_bias_words(flats: Sequence[Flat]) -> list[Flat]:
    """The configurations with `model.bias` as a word where one means these sites: `all`, not `[q,k,…]`.

    So `all` stays one value across models that have different sites. Where several words mean the same
    sites (`linear` and `all` without a norm), the one that fits most of the runs is taken.
    """
    words = [bias_words(flat) for flat in flats]
    votes = Counter(word for found in words for word in found)
    return [
        changed(flat, {BIAS: max(found, key=lambda word: votes[word])}) if found else flat
        for flat, found in zip(flats, words, strict=True)
    ]


def bias_words(flat: Flat) -> list[str]:
    """The words of `model.bias` that mean this configuration's sites; none if it is not whole."""
    sites = flat.get(BIAS)
    if not isinstance(sites, list | tuple):
        return []
    return list(
        _words(
            tuple(map(str, sites)),
            str(flat["model.activation"]),
            str(flat["model.norm"]),
            bool(flat["model.qk_norm"]),
            str(flat.get("model.stack", Stack.decoder)),
            bool(flat.get("model.head_transform", False)),
        )
    )


@cache
def _words(
    sites: tuple[str, ...], activation: str, norm: str, qk_norm: bool, stack: str, transform: bool
) -> tuple[str, ...]:
    model = ModelConfig(
        stack=Stack(stack),
        activation=Activation(activation),
        norm=Norm(norm),
        qk_norm=qk_norm,
        head_transform=transform,
    )
    return tuple(words_for(sites, model))


def short_names(keys: Sequence[str]) -> dict[str, str]:
    """Last components of dotted keys; the whole key where two would read alike."""
    last = [key.rsplit(".", 1)[-1] for key in keys]
    return {key: name if last.count(name) == 1 else key for key, name in zip(keys, last, strict=True)}


def columns(flats: Sequence[Flat], keys: Sequence[str]) -> dict[str, tuple[object, ...]]:
    """The values of each key, in the order of the configurations; None where one lacks it.

    Of configurations that share a base, only the keys in which one differs from it.
    """
    base = common_base(flats)
    rows: Sequence[Flat] = flats
    if base is not None:
        rows = [flat.over for flat in flats if isinstance(flat, Layered)]
        differing = set().union(*rows)
        keys = [key for key in keys if key in differing]
    try:
        found = [*map(itemgetter(*keys, keys[0]), rows)]  # a repeated key: always a tuple
    except (KeyError, IndexError):
        return {key: tuple(flat.get(key) for flat in flats) for key in keys}
    return dict(zip(keys, zip(*found, strict=True), strict=False)) if found else dict.fromkeys(keys, ())


def _values(column: tuple[object, ...]) -> tuple[object, ...]:
    """The distinct ones, in order of appearance."""
    if not column or column.count(column[0]) == len(column):
        return column[:1]
    return tuple({repr(item): item for item in column}.values())


def _determined(texts: Mapping[str, Sequence[str]], key: str, others: Sequence[str]) -> bool:
    """Does no combination of the others' values go with two values of `key`?"""
    rest = [texts[other] for other in others]
    return bool(rest) and len({*zip(*rest, strict=True)}) == len({*zip(*rest, texts[key], strict=True)})
