"""What is compared: the factors that differ among a study's runs, and the arm each run belongs to.

Computed from the runs themselves, never from the request: a study grows by later sweeps, and an arm is
whatever still tells its runs apart.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter

from ablate.config import (
    ARCHITECTURES,
    WORDS,
    Activation,
    FieldClass,
    ModelConfig,
    Norm,
    Site,
    Stack,
    fields,
    words_for,
)
from ablate.view.shared import Layered, changed, common_base
from ablate.view.text import Rank, rank, value

LR, SEED, DATA_SEED, DATA, BIAS = "optim.lr", "seed", "data.data_seed", "data", "model.bias"
STACK, OBJECTIVE = "model.stack", "data.objective"
WEIGHTS = "model.weights_sha256"
PRESET, SCALE = "model.preset", "model.scale"  # name a model in one word; factors where models differ by them
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
NAMED_ONLY = (Site.head, Site.qk_norm)  # sites that no word of `model.bias` covers
Flat = Mapping[str, object]


@dataclass(frozen=True)
class Factor:
    """A configuration key with the values its runs take, in order of appearance."""

    key: str
    values: tuple[object, ...]


def factors(flats: Sequence[Flat], keys: Sequence[str]) -> tuple[Factor, ...]:
    """The varied ones of `keys`, consequences left out (`model.final_norm` that follows the placement).

    Where models of several presets (or scales) differ, the preset is a factor, although it is no such key,
    and the settings that follow from it are consequences. A key is left out only when the remaining factors
    determine it, so no two runs fall together by it. The learning rate and the seed determine nothing but the
    batch order's seed.
    """
    found = columns(flats, (PRESET, SCALE, *keys))
    columns_of = {key: column for key, column in found.items() if len(_values(column)) > 1}
    texts = {key: [*map(repr, column)] for key, column in columns_of.items()}
    names = _model_names(texts)
    told = [key for key in preset_followers() if key in texts and _determined(texts, key, names)]
    if OBJECTIVE in texts and _determined(texts, OBJECTIVE, [k for k in (STACK,) if k in texts]):
        told.append(OBJECTIVE)
    order = [*names, *(key for key in columns_of if key not in (PRESET, SCALE, *told))]
    varied = {key: _values(columns_of[key]) for key in order}
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
    if key == PRESET and isinstance(item, str):
        item = item.partition("/")[0]
    choices = _choices().get(key, ())
    return (-1, float(choices.index(str(item))), "") if str(item) in choices else rank(item)


@cache
def _choices() -> Mapping[str, tuple[str, ...]]:
    return {BIAS: WORDS, PRESET: tuple(ARCHITECTURES)} | {
        f.key: tuple(map(str, f.choices)) for f in fields() if f.choices is not None
    }


def _model_names(texts: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Which of preset and scale to name models by: the fewest that tell most of their settings.

    None of them where models are the same but for their biases, and none that differs for the same model.
    """
    settings = [key for key in preset_followers() if key in texts]
    known = [key for key in (PRESET, SCALE) if key in texts and _determined(texts, key, settings)]
    choices: list[tuple[str, ...]] = [(), *((key,) for key in known), tuple(known)]
    return max(choices, key=lambda names: sum(_determined(texts, key, names) for key in settings))


@cache
def preset_followers() -> tuple[str, ...]:
    """What a preset says, but for the biases: the model's other settings, and what follows for the data."""
    model = [f.key for f in fields() if f.key.startswith("model.") and f.klass is FieldClass.science]
    return (*(key for key in model if key != BIAS), "data.vocab_size", OBJECTIVE)


def readable(flats: Sequence[Flat]) -> list[Flat]:
    """The configurations as arms are named by them: bias sites as words, presets as `with_preset_names`, the
    digest of weights cut to the length of a run id.
    """
    return with_preset_names(with_bias_words([_with_short_digest(flat) for flat in flats]))


def _with_short_digest(flat: Flat) -> Flat:
    digest = flat.get(WEIGHTS)
    return changed(flat, {WEIGHTS: digest[:12]}) if isinstance(digest, str) else flat


def with_preset_names(flats: Sequence[Flat]) -> list[Flat]:
    """The configurations with one preset for models that are the same but for their biases: `llama/qwen`.

    A preset enters no run's identity: a run that several presets ask for is trained, and recorded, as one of
    them. So presets that share a model share their name in every run.
    """
    presets = columns(flats, [PRESET]).get(PRESET, ())
    if len(set(presets)) < 2:
        return list(flats)
    models = [
        *zip(*(map(repr, column) for column in columns(flats, preset_followers()).values()), strict=True)
    ]
    alike: dict[object, set[object]] = {preset: {preset} for preset in presets}
    by_model: dict[object, object] = {}
    for preset, model in zip(presets, models or [()] * len(presets), strict=True):
        other = by_model.setdefault(model, preset)
        if alike[other] is not alike[preset]:
            alike[other] |= alike[preset]
            alike |= dict.fromkeys(alike[preset], alike[other])
    names = {p: "/".join(sorted(str(x) for x in group if x is not None)) for p, group in alike.items()}
    return [changed(f, {PRESET: names[p] or None}) for f, p in zip(flats, presets, strict=True)]


def with_bias_words(flats: Sequence[Flat]) -> list[Flat]:
    """The configurations with `model.bias` as a word where one means these sites: `all`, not `[q,k,…]`.

    So `all` stays one value across models that have different sites. Where several words mean the same
    sites (`linear` and `all` without a norm), the one that fits most of the runs is taken. Sites that no word
    covers stand behind a word for the others: `[all,head]`.
    """
    words = [bias_words(flat) for flat in flats]
    votes = Counter(word for found in words for word in found)
    return [
        changed(flat, {BIAS: max(found, key=lambda word: votes[word])}) if found else _partly_in_words(flat)
        for flat, found in zip(flats, words, strict=True)
    ]


def _partly_in_words(flat: Flat) -> Flat:
    """With `[all,head]` for a list that is `all` and the head."""
    sites = flat.get(BIAS)
    if not isinstance(sites, list | tuple):
        return flat
    beyond = [site for site in map(str, sites) if site in NAMED_ONLY]
    covered = [site for site in map(str, sites) if site not in NAMED_ONLY]
    words = bias_words(changed(flat, {BIAS: covered})) if beyond and covered else []
    return changed(flat, {BIAS: [words[0], *beyond]}) if words else flat


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
