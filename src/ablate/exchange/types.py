"""Values of a config.json that are of no type that their keys have: nothing can be compared with them."""

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

from ablate.config import ModelConfig
from ablate.config.weights import printable
from ablate.exchange.family import ALWAYS, Family, Raw, lookup


def mistyped(family: Family, raw: Raw, model: ModelConfig) -> list[str]:
    """One line for every value of a wrong type among those that the family reads."""
    expected: dict[str, Any] = {"vocab_size": 0}
    for fact in family.facts:
        for key in (*fact.keys, *fact.read_keys):
            expected[key] = fact.says(model)
    expected |= {switch: False for switch in family.biases.values() if switch != ALWAYS}
    return list(dict.fromkeys(_lines(expected, raw)))


def _lines(expected: Mapping[str, Any], raw: Raw) -> Iterable[str]:
    for key, ours in expected.items():
        outer, _, inner = key.rpartition(".")
        home = raw.get(outer) if outer else raw
        if inner and home is not None and not isinstance(home, Mapping):
            yield f"config.json: {outer} is {_described(home)}, and no mapping"
        found, theirs = lookup(raw, key)
        needed = _needed(ours)
        if found and theirs is not None and not _fits(theirs, needed):
            yield f"config.json: {key} is {_described(theirs)}, and no {needed}"


def _needed(ours: Any) -> str:
    """The type of a key in words, from a value that it may have: null stands where a number may."""
    if isinstance(ours, bool):
        return "true or false"
    return "text" if isinstance(ours, str) else "list of texts" if isinstance(ours, list) else "finite number"


def _fits(theirs: Any, needed: str) -> bool:
    if needed == "true or false":
        return isinstance(theirs, bool)
    if needed == "text":
        return isinstance(theirs, str)
    if needed == "list of texts":
        return isinstance(theirs, list) and all(isinstance(item, str) for item in theirs)
    if isinstance(theirs, float):
        return isfinite(theirs)
    return isinstance(theirs, int) and not isinstance(theirs, bool)


def _described(value: Any) -> str:
    """A value that may be anything: containers by their kind."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return repr(printable(value)) if isinstance(value, str) else str(value).lower()
