"""The confound guard: every difference between the arms of a study beyond its declared factors.

A factor is declared by being an axis (of this sweep, or of an earlier one of the study), or by
`sweep.allow`. What follows from a declared factor is no difference of its own: derived fields, biases that
one word describes in every arm, warm-up at a constant share of the steps.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

from ablate.config import (
    RESIZED,
    SCIENCE_VERSION,
    Axis,
    Config,
    ConfigError,
    FieldClass,
    UserError,
    derived,
    fields,
    nearest,
    parse,
    words_for,
)
from ablate.record import RunFolder, read_json
from ablate.sweep.realised import differences

FINGERPRINT, VERSION, REALISED = "data.fingerprint", "science_version", "realised"
FACTS = (FINGERPRINT, VERSION, REALISED)  # what sweep.allow can name beside keys
SCALE = "model.scale"
WITHIN = ("optim.lr", "seed")  # vary within an arm
SHARES = ("optim.warmup", "optim.cooldown")  # given as a share of the steps
SHOWN = 4


@dataclass(frozen=True)
class Confound:
    """A difference between arms that nobody declared: the key, its values, and where they were seen."""

    key: str
    values: tuple[object, ...]
    where: str = ""

    def __str__(self) -> str:
        words = [_word(value) for value in self.values]
        more = [f"… {len(words) - SHOWN} more"] if len(words) > SHOWN else []
        return f"{self.key} ({', '.join([*words[:SHOWN], *more])}{self.where})"


@dataclass(frozen=True)
class Request:
    """One sweep of a study as far as the guard needs it: what all its runs share, and what it declared."""

    base: Config
    declared: frozenset[str]
    fingerprints: frozenset[str]
    version: int
    name: str = "this sweep"


def declared_keys(axes: Sequence[Axis], allow: Sequence[str]) -> frozenset[str]:
    """Keys that arms may differ in. An axis over a group declares the settings of its section, one over
    `model.scale` the sizes that it changes.

    Several experiments declare nothing by themselves. Raises ConfigError for an unknown name in `allow`.
    """
    return _keys((axis.key for axis in axes), allow)


def _keys(names: Iterable[str], allow: Iterable[str]) -> frozenset[str]:
    everything = {info.key for info in fields()}
    for name in allow:
        if name not in everything and name not in FACTS:
            close = nearest(name, [*everything, *FACTS])
            raise ConfigError.setting(
                "sweep.allow", name, f"keys (ablate config --keys), {', '.join(FACTS)}", close
            )
    found = {*WITHIN, *allow}
    for name in names:
        found |= {name} if name in everything else {key for key in everything if key.startswith(f"{name}.")}
        found |= set(RESIZED) if name == SCALE else set()
    return frozenset(found)


def confounds(
    configs: Sequence[Config], fingerprints: Iterable[str], declared: frozenset[str]
) -> list[Confound]:
    """Differences among the runs of one sweep beyond what was declared and what follows from it."""
    found = [
        Confound(key, values)
        for key, values in _differing(configs, _compared(True)).items()
        if key not in declared
    ]
    prints = sorted(set(fingerprints))
    if len(prints) > 1 and not (_explains_data(declared, found) or _other_vocabularies(configs)):
        found.append(Confound(FINGERPRINT, tuple(text[:12] for text in prints)))
    return found


def confounds_with_study(now: Request, earlier: Sequence[Request]) -> list[Confound]:
    """Differences between this sweep and the runs that earlier ones left in the study."""
    found: dict[str, Confound] = {}
    for then in earlier:
        declared = now.declared | then.declared
        where = f"; the study holds the first, by {then.name}"
        new = [
            Confound(key, values, where)
            for key, values in _differing([then.base, now.base], _compared(False)).items()
            if key not in declared
        ]
        apart = bool(then.fingerprints) and not then.fingerprints & now.fingerprints
        if apart and not (_explains_data(declared, new) or _other_vocabularies([then.base, now.base])):
            prints = (min(then.fingerprints)[:12], min(now.fingerprints)[:12])
            new.append(Confound(FINGERPRINT, prints, where))
        if then.version != now.version and VERSION not in declared:
            new.append(Confound(VERSION, (then.version, now.version), where))
        for confound in new:
            found.setdefault(confound.key, confound)
    return list(found.values())


def realised_confounds(
    descriptions: Mapping[Any, Mapping[str, Any]], recorded: Mapping[Any, Mapping[str, Any]],
    declared: frozenset[str],
) -> list[Confound]:  # fmt: skip
    """Differences between built models that no factor explains.

    `recorded`: descriptions of models as runs of the study have recorded them, by the same keys.
    """
    if REALISED in declared:
        return []
    return [Confound(REALISED, tuple(texts)) for texts in [differences(descriptions, recorded)] if texts]


def earlier_requests(study: Path, present: Mapping[str, RunFolder]) -> list[Request]:
    """The sweeps that a study holds runs of, oldest first; damaged request files tell nothing."""
    found = []
    for path in sorted((study / "requests").glob("*.json")):
        try:
            raw = read_json(path)
            if present.keys() & set(raw["run_ids"]):
                found.append(
                    Request(
                        base=parse(raw["base"]),
                        declared=_keys(raw["factors"], raw.get("allow", ())),
                        fingerprints=frozenset(raw.get("fingerprints", ())),
                        version=raw.get("science_version", 1),
                        name=path.name,
                    )
                )
        except (UserError, KeyError, TypeError):
            continue
    return found


def this_request(configs: Sequence[Config], fingerprints: Iterable[str], declared: frozenset[str]) -> Request:
    """The sweep about to start, to be compared with `earlier_requests`."""
    return Request(configs[0], declared, frozenset(fingerprints), SCIENCE_VERSION)


def refuse(study: str, found: Sequence[Confound]) -> None:
    """Raise the UserError that names every confound, if there is one."""
    if not found:
        return
    keys = ",".join(confound.key for confound in found)
    raise UserError(
        f"arms of study {study} would differ in more than their factors: {'; '.join(map(str, found))}",
        allowed="differences in the axes, and what follows from them",
        hint=f"make it an axis, give the runs a study of their own, or sweep.allow='[{keys}]'",
    )


@cache
def _compared(verdicts: bool) -> tuple[str, ...]:
    """Keys that may not differ unasked: all that defines the experiment, and how it is judged."""
    return tuple(
        f.key
        for f in fields()
        if f.sweepable or (verdicts and f.key.startswith("verdict."))
        if f.klass is not FieldClass.control or f.rules.get("content")
    )


def _differing(configs: Sequence[Config], keys: Sequence[str]) -> dict[str, tuple[object, ...]]:
    """Keys whose values differ, consequences of others left out, with the values in order of appearance."""
    rows = map(attrgetter(*keys), configs)
    found = {}
    for key, column in zip(keys, zip(*rows, strict=True), strict=True):
        values = tuple(dict.fromkeys(column))
        if len(values) > 1 and not _CONSEQUENCE.get(key, _own)(key, configs):
            found[key] = values
    if found.keys() & {"data.paths", "data.tokenizer"}:
        # Told apart by their content, which is the fingerprint's to say.
        found.pop("data.paths", None)
        found.pop("data.tokenizer", None)
    return found


def _own(key: str, configs: Sequence[Config]) -> bool:
    """Has every run the value that it would have by itself?"""
    return all(derived(config, key) for config in configs)


def _same_words(_: str, configs: Sequence[Config]) -> bool:
    """Does one word describe the biases of every model?"""
    words = [set(words_for(bias, model)) for bias, model in {(c.model.bias, c.model) for c in configs}]
    return bool(set.intersection(*words))


def _same_share(key: str, configs: Sequence[Config]) -> bool:
    """Is there one share of the steps that rounds to every value?"""
    pairs = {(attrgetter(key)(c), c.optim.steps) for c in configs}
    low = max((value - 0.5) / steps for value, steps in pairs)
    return bool(low <= min((value + 0.5) / steps for value, steps in pairs))


def _same_digest(_: str, configs: Sequence[Config]) -> bool:
    """Do folders of different names hold the same weights?"""
    return len({c.model.weights_sha256 for c in configs}) == 1


def _of_weights(_: str, configs: Sequence[Config]) -> bool:
    """Has every folder one digest throughout? Then they differ as their names do."""
    pairs = {(c.model.weights, c.model.weights_sha256) for c in configs}
    return len(pairs) == len({weights for weights, _ in pairs})


_CONSEQUENCE: dict[str, Callable[[str, Sequence[Config]], bool]] = {
    "model.bias": _same_words,
    "model.weights": _same_digest,
    "model.weights_sha256": _of_weights,
    **dict.fromkeys(SHARES, _same_share),
}


def _explains_data(declared: frozenset[str], found: Sequence[Confound]) -> bool:
    """Is a difference between fingerprints declared, or named already by the key that makes it?"""
    keys = {*declared, *(confound.key for confound in found)}
    return any(key.startswith("data.") and key != "data.data_seed" for key in keys)


def _other_vocabularies(configs: Sequence[Config]) -> bool:
    """Does the vocabulary differ, as where it follows from the model? Synthetic data follow in turn."""
    return len({c.data.vocab_size for c in configs}) > 1


def _word(value: object) -> str:
    if isinstance(value, tuple):
        return "[" + ",".join(map(str, value)) + "]"
    return "null" if value is None else str(value)
