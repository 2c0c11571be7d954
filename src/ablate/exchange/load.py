"""Weights of a Hugging Face folder for a model of ours: all of them, or every difference by name."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

from ablate.config import ModelConfig, UserError
from ablate.config.errors import shown
from ablate.exchange.choose import FAMILIES, obstacle
from ablate.exchange.family import Family, Raw
from ablate.exchange.folder import TYPES, Stored, read_config, read_tensors
from ablate.exchange.layout import Array, Tensor
from ablate.exchange.settings import overrides

SHOWN = 20


def load_weights(
    folder: Path, model: ModelConfig, vocab: int, announce: Callable[[str], None]
) -> dict[str, Array]:
    """Every parameter of a resolved model by name, float32, from a folder.

    `announce` is told which tensors of other heads are left out. Raises UserError that lists every missing,
    surplus or differently shaped tensor, and every fact of config.json that makes it another model; with the
    settings that config.json means.
    """
    raw = read_config(folder)
    family = _family(raw, folder)
    stored = read_tensors(folder)
    names = {_canonical(name, family): name for name in stored}
    others = [name for name in names if family.others and re.fullmatch(family.others, name)]
    buffers = [name for name in names if re.fullmatch(family.buffers, name)]
    theirs = {name: stored[names[name]] for name in names.keys() - {*others, *buffers}}
    wanted = family.tensors(model, vocab, every_bias=True)
    found = [*_settings(family, model), *_facts(family, raw, model)]
    found += _ties(family, theirs) if model.tie_embeddings else []
    found += _tensors(wanted, theirs)
    if found:
        raise UserError(_problem(folder, found), hint=" ".join(overrides(family, raw, model, vocab)) or None)
    if others:
        announce(f"left out, as no part of the model: {', '.join(sorted(others))}")
    ours: dict[str, Array] = {}
    for tensor in wanted:
        if tensor.name in theirs:
            pieces = tensor.split(theirs[tensor.name].read())
            ours |= {part.name: pieces[part.name] for part in tensor.parts if part.present}
    return ours


def _problem(folder: Path, found: list[str]) -> str:
    lines = "".join(f"\n  {line}" for line in found[:SHOWN])
    more = f"\n  … {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"model.weights = {folder} is not this model, and nothing of it was loaded:{lines}{more}"


def _family(raw: Raw, folder: Path) -> Family:
    for family in FAMILIES:
        if raw.get("model_type") == family.name:
            return family
    known = ", ".join(family.name for family in FAMILIES)
    raise UserError(f"model.weights: {folder} has model_type = {shown(raw.get('model_type'))}", allowed=known)


def _canonical(name: str, family: Family) -> str:
    """A name as the model with its head has it: checkpoints of the bare model lack a prefix."""
    for old, new in family.respelt.items():
        name = name.replace(old, new)
    return name if name.startswith((family.prefix, "lm_head.", "cls.")) else family.prefix + name


def _settings(family: Family, model: ModelConfig) -> Iterable[str]:
    return (f"{obstacle(model, need)}: {family.name}" for need in family.obstacles(model))


def _facts(family: Family, raw: Raw, model: ModelConfig) -> Iterable[str]:
    for fact in family.facts:
        theirs, ours = fact.read(raw), fact.says(model)
        if fact.compared and not fact.same(theirs, ours, model):
            ours_word = f"model.{fact.setting} says" if fact.setting else "models here have"
            yield f"config.json: {fact.keys[0]} = {shown(theirs)}; {ours_word} {shown(ours)}"


def _ties(family: Family, theirs: dict[str, Stored]) -> list[str]:
    """Take away the second name of tied tensors, once they are seen to be equal."""
    found = []
    for copy, original in family.tied.items():
        if copy in theirs:
            stored = theirs.pop(copy)
            kept = theirs.setdefault(original, stored)
            if kept.shape != stored.shape or not np.array_equal(kept.read(), stored.read()):
                found.append(f"{copy} is not {original}; with model.tie_embeddings=true they are one")
    return found


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
            yield f"type: {tensor.name} is {stored.kind}; allowed: {', '.join(TYPES)}"
        elif not all(part.present for part in tensor.parts):
            pieces = tensor.split(stored.read())
            for part in tensor.parts:
                if not part.present and pieces[part.name].any():
                    yield f"surplus: {tensor.name} is not zero, and this model has no {part.name}"
    yield from (f"surplus: {name} {list(theirs[name].shape)}" for name in sorted(theirs.keys() - known))
