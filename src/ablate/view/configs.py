"""Configurations for people: what differs from the defaults, and what every key means."""

import sys
import textwrap
from collections.abc import Mapping
from typing import TextIO

from ablate.config import FieldInfo, UserError, fields
from ablate.view.arms import BIAS, bias_words
from ablate.view.table import Table, console, emit, plain, table
from ablate.view.text import value

INDENT = "    "
_SHORTER = (
    ("steps (a whole number), or a fraction of them below 1;", "steps or fraction"),
    ("a whole number", "int"),
    ("a number", "float"),
)


def annotated(yaml: str, flat: Mapping[str, object], defaults: Mapping[str, object]) -> str:
    """The YAML text with `# default: …` behind every key whose value is not the default; still YAML."""
    lines: list[str] = []
    path: list[str] = []
    for line in yaml.splitlines():
        bare = line.strip()
        depth = (len(line) - len(line.lstrip())) // 2
        name, colon, _ = bare.partition(":")
        if colon and not bare.startswith(("-", "#")):
            path = [*path[:depth], name]
            key = ".".join(path)
            if key in flat and flat[key] != defaults.get(key):
                line = f"{line}  # default: {shown(defaults, key)}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def differences(flat: Mapping[str, object], defaults: Mapping[str, object]) -> Table:
    """The keys whose value is not the default, with both."""
    rows = [
        (key, shown(flat, key), shown(defaults, key))
        for key, item in flat.items()
        if item != defaults.get(key)
    ]
    return table(("key", "value", "default"), rows, title="configuration, where it is not the default")


def keys_table(pattern: str) -> Table:
    """Every configuration key containing `pattern`. Raises UserError when there is none."""
    rows = [(f.key, f.klass, value(f.default), allowed(f), f.doc) for f in _chosen(pattern)]
    return table(("key", "class", "default", "allowed", "meaning"), rows)


def print_keys(pattern: str, stream: TextIO | None = None) -> None:
    """Print the table of keys; on a terminal that is too narrow for it, each key in lines of its own."""
    out = stream or sys.stdout
    tab = keys_table(pattern)
    width = console(out).width if out.isatty() else None
    if width is None or max(map(len, plain(tab).splitlines())) <= width:
        emit(tab, out)
        return
    for info in _chosen(pattern):
        print("\n".join(key_lines(info, width)), file=out)


def key_lines(info: FieldInfo, width: int) -> list[str]:
    """One key in lines of at most `width` characters (longer words aside): what it may be, what it means."""
    head = f"{info.key} = {value(info.default)}  ({info.klass}; {allowed(info)})"
    wrapper = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    wrapper.subsequent_indent = INDENT
    first = wrapper.wrap(head)
    wrapper.initial_indent = INDENT
    return first + wrapper.wrap(info.doc)


def allowed(info: FieldInfo) -> str:
    """What a key takes, in few words: `int ≥ 1`, `float > 0 (or null)`."""
    text = info.allowed
    for long, short in _SHORTER:
        text = text.replace(long, short)
    return text


def _chosen(pattern: str) -> list[FieldInfo]:
    found = [f for f in fields() if pattern.lower() in f.key.lower()]
    if not found:
        raise UserError(f"no key contains {pattern!r}", hint="ablate config --keys")
    return found


def shown(flat: Mapping[str, object], key: str) -> str:
    """A setting's value as one would type it; bias sites by their word where there is one."""
    words = bias_words(flat) if key == BIAS else []
    return words[0] if words else value(flat.get(key))
