"""Is a folder the model? As far as config.json and the headers of the weight files tell, by name."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ablate.config import ModelConfig, UserError
from ablate.config.errors import shown
from ablate.config.weights import CONFIG, printable
from ablate.exchange.choose import FAMILIES, listed, obstacle
from ablate.exchange.family import Family, Raw
from ablate.exchange.folder import TYPES, Stored, read_config, read_tensors
from ablate.exchange.layout import Tensor
from ablate.exchange.settings import overrides
from ablate.exchange.types import mistyped


@dataclass(frozen=True)
class Match:
    """A folder beside a resolved model.

    `wanted`: what the family may have of this model; `theirs`: tensors by their names in the class with its
    head; `ties`: the second names of tied ones, with the first; `others`: of heads that are no part of it.
    `found`: every difference, a line each.
    """

    folder: Path
    family: Family
    raw: Raw
    model: ModelConfig
    vocab: int
    wanted: tuple[Tensor, ...]
    theirs: Mapping[str, Stored]
    ties: tuple[tuple[str, str], ...]
    others: tuple[str, ...]
    found: tuple[str, ...]

    def refusal(self, more: Iterable[str] = (), settings: Iterable[str] = ()) -> UserError:
        """The error that lists all differences, those found later too, with the overrides that fit."""
        lines = listed([*self.found, *more])
        said = [*overrides(self.family, self.raw, self.model, self.vocab), *settings]
        problem = f"model.weights = {self.folder} is not this model, and nothing of it was loaded:{lines}"
        return UserError(problem, hint=printable(" ".join(said), 1000) or None)


def check_folder(folder: Path, model: ModelConfig, vocab: int) -> None:
    """Raise UserError for a folder that is not the model; see `match`. No tensor is read."""
    matched = match(folder, model, vocab)
    if matched.found:
        raise matched.refusal()


def match(folder: Path, model: ModelConfig, vocab: int) -> Match:
    """A folder beside a model. Raises UserError where it cannot be read, or is of no family."""
    raw = read_config(folder)
    family = _family(raw, folder)
    if wrong := mistyped(family, raw, model):
        raise UserError(f"model.weights = {folder} cannot be read:{listed(wrong)}")
    named: dict[str, list[tuple[str, Stored]]] = {}
    for name, stored in read_tensors(folder):
        named.setdefault(_canonical(name, family), []).append((name, stored))
    others = {name for name in named if family.others and re.fullmatch(family.others, name)}
    buffers = {name for name in named if re.fullmatch(family.buffers, name)}
    kept = {name: entries for name, entries in named.items() if name not in others | buffers}
    theirs = {name: entries[0][1] for name, entries in kept.items()}
    wanted = tuple(family.tensors(model, vocab, every_bias=True))
    found = [*_settings(family, model), *_facts(family, raw, model), *_twice(kept)]
    ties = tuple(family.tied.items()) if model.tie_embeddings else ()
    ties = tuple((copy, first) for copy, first in ties if copy in theirs)
    seconds = {copy: theirs[copy] for copy, _ in ties}
    single = {name: stored for name, stored in theirs.items() if name not in seconds}
    single |= {first: seconds[copy] for copy, first in ties if first not in single}
    for copy, first in ties:
        found += _tie(copy, seconds[copy], first, single[first])
    found += _tensors(wanted, single)
    held = {**seconds, **single}
    return Match(folder, family, raw, model, vocab, wanted, held, ties, tuple(sorted(others)), tuple(found))


def not_one(copy: str, first: str) -> str:
    """What is said of tied tensors that differ."""
    return f"{copy} is not {first}; with model.tie_embeddings=true they are one"


def _family(raw: Raw, folder: Path) -> Family:
    kind = raw.get("model_type")
    for family in FAMILIES:
        if kind == family.name:
            return family
    word = printable(shown(kind)) if kind is None or isinstance(kind, str) else "no text"
    known = ", ".join(family.name for family in FAMILIES)
    raise UserError(f"model.weights: {folder / CONFIG} has model_type = {word}", allowed=known)


def _canonical(name: str, family: Family) -> str:
    """A name as the model with its head has it: checkpoints of the bare model lack a prefix."""
    for old, new in family.respelt.items():
        name = name.replace(old, new)
    outermost = {entry.theirs.partition(".")[0] for entry in family.links}
    return name if name.partition(".")[0] in outermost else family.prefix + name


def _twice(named: Mapping[str, list[tuple[str, Stored]]]) -> Iterable[str]:
    """Tensors that would all be the same one of the model: which of them is meant, nobody knows."""
    for name, entries in named.items():
        if len(entries) > 1:
            places = ", ".join(f"{printable(own)} in {stored.path.name}" for own, stored in entries)
            yield f"duplicate: {printable(name)} is there {len(entries)} times: {places}"


def _settings(family: Family, model: ModelConfig) -> Iterable[str]:
    return (f"{obstacle(model, need)}: {family.name}" for need in family.obstacles(model))


def _facts(family: Family, raw: Raw, model: ModelConfig) -> Iterable[str]:
    for fact in family.facts:
        theirs, ours = fact.read(raw), fact.says(model)
        if fact.compared and not fact.same(theirs, ours, model):
            word = f"models here have {shown(ours)}"
            if fact.setting:
                word = f"model.{fact.setting} says {shown(getattr(model, fact.setting))}"
            yield f"config.json: {fact.keys[0]} = {printable(shown(theirs))}; {word}"


def _tie(copy: str, second: Stored, first: str, stored: Stored) -> Iterable[str]:
    if second.kind not in TYPES:
        yield _unknown(copy, second)
    elif second.shape != stored.shape:
        yield not_one(copy, first)


def _tensors(wanted: Iterable[Tensor], theirs: Mapping[str, Stored]) -> Iterable[str]:
    known = set()
    for tensor in wanted:
        known.add(tensor.name)
        stored = theirs.get(tensor.name)
        if stored is None:
            if any(part.present for part in tensor.parts):
                yield f"missing: {tensor.name} {list(tensor.shape)}"
        elif stored.shape != tensor.shape:
            yield f"shape: {tensor.name} {list(stored.shape)}; this model has {list(tensor.shape)}"
        elif stored.kind not in TYPES:
            yield _unknown(tensor.name, stored)
    surplus = sorted(theirs.keys() - known)
    yield from (f"surplus: {printable(name)} {list(theirs[name].shape)}" for name in surplus)


def _unknown(name: str, stored: Stored) -> str:
    return f"type: {name} is {printable(stored.kind)}; allowed: {', '.join(TYPES)}"
