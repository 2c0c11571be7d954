"""What makes two runs the same: the canonical science fields, the run id; and a slug for people."""

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from ablate.config.enums import FieldClass
from ablate.config.fields import table
from ablate.config.parse import jsonable
from ablate.config.presets import of_preset
from ablate.config.resolve import NOTHING_DRAWN, at, resolve, unresolve
from ablate.config.schema import Config

SCIENCE_VERSION = 1
"""Raised when the same configuration trains to different numbers: by a changed initialisation, batch order,
optimiser or arithmetic. It enters every run id."""


def science(config: Any) -> dict[str, Any]:
    """The canonical nested tree of a resolved configuration's science fields, in plain JSON types.

    Fields at their `neutral` value are left out, and so are sections with nothing to say: a field added
    later leaves older ids as they were. Takes any tree of dataclasses made with the schema's field functions.
    """
    canonical: dict[str, Any] = {}
    for name, is_section, neutral in _layout(config.__class__):
        value = getattr(config, name)
        if is_section:
            inner = science(value)
            if inner:
                canonical[name] = inner
        elif not (neutral and neutral[0] == value):
            canonical[name] = jsonable(value)
    return canonical


@cache
def _layout(kind: type) -> tuple[tuple[str, bool, tuple[Any, ...]], ...]:
    """Per section or science field: its name, whether it is a section, its neutral value if it has one."""
    return tuple(
        (leaf.name, "class" not in leaf.metadata, _neutral(leaf.metadata))
        for leaf in dataclasses.fields(kind)
        if leaf.metadata.get("class", FieldClass.science) is FieldClass.science
    )


def _neutral(metadata: Mapping[str, Any]) -> tuple[Any, ...]:
    return (metadata["neutral"],) if "neutral" in metadata else ()


def run_id(config: Config, fingerprint: str) -> str:
    """12 hex digits: sha256 over the canonical science fields, the data's fingerprint and SCIENCE_VERSION."""
    said = {"science": science(config), "data": fingerprint, "version": SCIENCE_VERSION}
    text = json.dumps(said, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


SLUG_LENGTH = 80
_FIRST = ("model.bias", "model.norm", "model.placement")
_LAST = ("optim.lr", "seed")


def slug(config: Config) -> str:
    """A folder name for people, at most 80 characters: the science settings that differ from the defaults, or
    `preset=bert_scale=tiny` and those that differ from what that preset says.

    Bias, norm and placement come first, learning rate and seed last; what does not fit between is left out.
    Not unique: identity is the run id's.
    """
    said = of_preset(config)
    asked, default = unresolve(config), unresolve(said) if said is not None else _default_asked()
    aside = NOTHING_DRAWN if config.model.weights else ()
    differing = {
        key: f"{name}={_text(at(asked, key))}"
        for key, name in _short_names().items()
        if at(asked, key) != at(default, key) and key not in aside
    }
    first = [differing.pop(key) for key in _FIRST if key in differing]
    last = [differing.pop(key) for key in _LAST if key in differing]
    pieces = first if said is None else [*_model_words(config), *first]
    for piece in differing.values():
        if len("_".join([*pieces, piece, *last])) <= SLUG_LENGTH:
            pieces = [*pieces, piece]
    return "_".join([*pieces, *last])[:SLUG_LENGTH] or "default"


def _model_words(config: Config) -> list[str]:
    words = {"preset": config.model.preset, "scale": config.model.scale}
    return [f"{name}={_text(word)}" for name, word in words.items() if word is not None]


@cache
def _default_asked() -> Config:
    return unresolve(resolve(Config()))


@cache
def _short_names() -> dict[str, str]:
    """Science keys to their last part, or whole where two share it."""
    keys = [key for key, info in table().items() if info.klass is FieldClass.science]
    last = [key.rpartition(".")[2] for key in keys]
    return {key: name if last.count(name) == 1 else key for key, name in zip(keys, last, strict=True)}


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        text = "+".join(str(item) for item in value)
    elif isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, float):
        text = f"{value:.6g}"
    else:
        text = "null" if value is None else str(value)
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", text)
