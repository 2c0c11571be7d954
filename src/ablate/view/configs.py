"""Configurations for people: what differs from the defaults, and what every key means."""

from collections.abc import Mapping

from ablate.config import UserError, fields
from ablate.view.arms import BIAS, bias_words
from ablate.view.table import Table, table
from ablate.view.text import value


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
    chosen = [f for f in fields() if pattern.lower() in f.key.lower()]
    if not chosen:
        raise UserError(f"no key contains {pattern!r}", hint="ablate config --keys")
    rows = [(f.key, f.klass, value(f.default), f.allowed, f.doc) for f in chosen]
    return table(("key", "class", "default", "allowed", "meaning"), rows)


def shown(flat: Mapping[str, object], key: str) -> str:
    """A setting's value as one would type it; bias sites by their word where there is one."""
    words = bias_words(flat) if key == BIAS else []
    return words[0] if words else value(flat.get(key))
