"""One raw value (from YAML or the command line) to its typed form, or an error that says what would do."""

import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

from ablate.config.bias import OWN, WORDS
from ablate.config.enums import Site
from ablate.config.errors import ConfigError, shown
from ablate.config.fields import FieldInfo, Kind, nearest

LARGEST = 2**63 - 1
_RANGE = re.compile(r"(\d{1,9})(?:\.\.|\.\.\.|-|:)(\d{1,9})")
TURNING = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})  # reorder what is shown


def convert(info: FieldInfo, value: object) -> Any:
    """The value of a setting in its type; already typed values pass.

    Nothing is coerced that could hide a mistake: 1e3 is no whole number, "64" no number, 1 no boolean.
    Raises ConfigError.
    """
    if value is None:
        if info.nullable:
            return None
        has_none = info.kind is Kind.bias or "none" in list(info.choices or ())
        word = "none" if has_none else info.rules.get("off", info.default)
        raise ConfigError.setting(info.key, None, info.allowed, _assignment(info, word))
    typed = _READERS[info.kind](info, value)
    if info.kind in (Kind.integer, Kind.number, Kind.fraction) and not _in_range(info, typed):
        raise ConfigError.setting(info.key, value, info.allowed)
    return typed


def _in_range(info: FieldInfo, number: float) -> bool:
    rules = info.rules
    above = number > rules.get("gt", -math.inf) and number >= rules.get("ge", -math.inf)
    below = number < rules.get("lt", math.inf) and number <= rules.get("le", math.inf)
    return bool(above and below)


def _assignment(info: FieldInfo, value: object) -> str | None:
    if isinstance(value, bool):
        value = str(value).lower()
    return None if value is None or value == "" else f"{info.key}={value}"


def _refuse(info: FieldInfo, value: object, meant: object = None) -> ConfigError:
    return ConfigError.setting(info.key, value, info.allowed, _assignment(info, meant))


def _swept(value: object) -> str | None:
    """How several values are written, for what looks like a list or a range of numbers."""
    numbers = (int, float)
    if isinstance(value, list | tuple) and value and all(isinstance(item, numbers) for item in value):
        return ",".join(shown(item) for item in value)
    ends = _RANGE.fullmatch(value) if isinstance(value, str) else None
    return f"'range({ends[1]},{int(ends[2]) + 1})'" if ends is not None else None


def _number_in(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _integer(info: FieldInfo, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > LARGEST:
            raise ConfigError.setting(info.key, value, f"{info.allowed}, below 2**63")
        return value
    number = value if isinstance(value, float) else _number_in(value) if isinstance(value, str) else None
    whole = number is not None and math.isfinite(number) and number.is_integer() and abs(number) <= LARGEST
    raise _refuse(info, value, int(number) if whole and number is not None else _swept(value))


def _number(info: FieldInfo, value: object) -> float:
    if isinstance(value, str):
        raise _refuse(info, value, _number_in(value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _refuse(info, value, _swept(value))
    # Whole numbers first: one of hundreds of digits has no float.
    if (isinstance(value, int) and abs(value) > LARGEST) or not math.isfinite(value):
        raise ConfigError.setting(info.key, value, f"{info.allowed}, finite")
    return float(value) + 0.0  # -0.0 becomes 0.0: one identity


def _fraction(info: FieldInfo, value: object) -> int | float:
    number = _number(info, value)
    if number < 1 and number != 0:
        return number
    if not number.is_integer() or number > LARGEST:
        raise _refuse(info, value, round(number) if number <= LARGEST else None)
    return int(number)


def _boolean(info: FieldInfo, value: object) -> bool:
    if isinstance(value, bool):
        return value
    meant = {"yes": True, "on": True, "1": True, "no": False, "off": False, "0": False}
    raise _refuse(info, value, meant.get(str(value).lower()))


def _choice(info: FieldInfo, value: object) -> str:
    assert info.choices is not None
    if isinstance(value, str) and value in list(info.choices):
        return info.choices(value)
    raise _refuse(info, value, nearest(value, info.choices) if isinstance(value, str) else None)


def _text(info: FieldInfo, value: object) -> str:
    if not isinstance(value, str):
        meant = None if isinstance(value, list | tuple | Mapping) else f"'\"{value}\"'"
        raise _refuse(info, value, meant)
    plain = value.replace("\n", "").replace("\t", "") if info.key == "run.notes" else value
    if any(unicodedata.category(c) in ("Cc", "Cs") or unicodedata.bidirectional(c) in TURNING for c in plain):
        raise ConfigError.setting(info.key, ascii(value), "text without control characters")
    return value


def _texts(info: FieldInfo, value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        raise _refuse(info, value, f"'[{value}]'")
    if not isinstance(value, list | tuple):
        raise _refuse(info, value)
    if plain := [item for item in value if isinstance(item, bool | int | float)]:
        quoted = [f'"{item}"' if item in plain else str(item) for item in value]
        raise _refuse(info, value, f"'[{','.join(quoted)}]'")
    return tuple(_text(info, item) for item in value)


def _bias(info: FieldInfo, value: object) -> tuple[str, ...]:
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list | tuple):
        raise _refuse(info, value)
    known = [*WORDS, OWN, *Site]
    for word in words:
        if not isinstance(word, str) or word not in known:
            close = nearest(word, known) if isinstance(word, str) else None
            meant = [close if item == word else item for item in words]
            hint = close if len(meant) == 1 else "'[" + ",".join(map(str, meant)) + "]'"
            raise _refuse(info, value, hint if close is not None else None)
    for alone in ("none", OWN):
        if alone in words and len(words) > 1:
            raise ConfigError.setting(info.key, list(words), f"{alone} alone, or other words and sites")
    return tuple(str(word) for word in words)


def _table(info: FieldInfo, value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise _refuse(info, value)
    return {str(key): item for key, item in value.items()}


def _lists(info: FieldInfo, value: object) -> tuple[tuple[str, ...], ...]:
    if not isinstance(value, list | tuple):
        raise _refuse(info, value)
    if value and all(isinstance(item, str) for item in value):
        raise _refuse(info, value, f"'[[{','.join(value)}]]'")
    return tuple(_texts(info, item) for item in value)


def _tables(info: FieldInfo, value: object) -> tuple[dict[str, Any], ...]:
    if isinstance(value, Mapping):
        raise _refuse(info, value, "'[{…}]'")
    if not isinstance(value, list | tuple):
        raise _refuse(info, value)
    return tuple(_table(info, item) for item in value)


_READERS: dict[Kind, Callable[[FieldInfo, object], Any]] = {
    Kind.integer: _integer,
    Kind.number: _number,
    Kind.fraction: _fraction,
    Kind.boolean: _boolean,
    Kind.choice: _choice,
    Kind.text: _text,
    Kind.texts: _texts,
    Kind.bias: _bias,
    Kind.table: _table,
    Kind.lists: _lists,
    Kind.tables: _tables,
}
