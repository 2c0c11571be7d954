"""Every setting as a table: key, class, type, default, what is allowed. Nearest names for misspelt ones."""

import dataclasses
import difflib
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from ablate.config.bias import OWN, WORDS
from ablate.config.enums import FieldClass, Site
from ablate.config.errors import ConfigError, shown
from ablate.config.schema import Config


class Kind(StrEnum):
    """How a value is read."""

    integer = "whole number"
    number = "number"
    fraction = "steps or fraction"
    boolean = "true or false"
    choice = "word"
    text = "text"
    texts = "list of texts"
    bias = "bias"
    table = "table"
    lists = "list of lists"
    tables = "list of mappings"


@dataclass(frozen=True)
class FieldInfo:
    """One setting. `default` is what YAML would say: null where the value is derived from others."""

    key: str
    klass: FieldClass
    type_name: str
    default: object
    doc: str
    allowed: str
    kind: Kind
    nullable: bool
    choices: type[StrEnum] | None
    rules: Mapping[str, typing.Any]

    @property
    def section(self) -> str:
        """The section the key stands in; empty for `seed` and `study`."""
        return self.key.rpartition(".")[0]

    @property
    def name(self) -> str:
        return self.key.rpartition(".")[2]

    @property
    def sweepable(self) -> bool:
        """Can be an axis: runs that differ in it have different ids."""
        tells = self.rules.get("content") or self.rules.get("told")
        return self.klass is FieldClass.science or bool(tells)


@cache
def table() -> Mapping[str, FieldInfo]:
    """All settings by dotted key, in schema order."""
    found: dict[str, FieldInfo] = {}
    for member in dataclasses.fields(Config):
        section = sections().get(member.name)
        if section is None:
            found[member.name] = _info("", Config, member)
        else:
            for leaf in dataclasses.fields(section):
                info = _info(f"{member.name}.", section, leaf)
                found[info.key] = info
    return types.MappingProxyType(found)


def fields() -> tuple[FieldInfo, ...]:
    """All settings, in schema order."""
    return tuple(table().values())


@cache
def sections() -> Mapping[str, type]:
    """The sections of a configuration and their dataclasses."""
    hints = typing.get_type_hints(Config)
    return types.MappingProxyType({name: hint for name, hint in hints.items() if _is_section(hint)})


def _is_section(hint: object) -> bool:
    return dataclasses.is_dataclass(hint)


def _info(prefix: str, owner: type, leaf: "dataclasses.Field[object]") -> FieldInfo:
    hint = typing.get_type_hints(owner)[leaf.name]
    rules = leaf.metadata
    members = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    bare = next(member for member in members if member is not type(None))
    kind, choices = _kind(bare, rules)
    nullable = types.NoneType in members or bool(rules.get("derived"))
    default = leaf.default
    if default is dataclasses.MISSING:
        assert leaf.default_factory is not dataclasses.MISSING
        default = leaf.default_factory()
    return FieldInfo(
        key=prefix + leaf.name,
        klass=rules["class"],
        type_name=kind.value if choices is None else choices.__name__,
        default=default,
        doc=rules["doc"],
        allowed=_allowed(kind, choices, rules) + (" (or null)" if nullable else ""),
        kind=kind,
        nullable=nullable,
        choices=choices,
        rules=rules,
    )


def _kind(bare: typing.Any, rules: Mapping[str, object]) -> tuple[Kind, type[StrEnum] | None]:
    if rules.get("words"):
        return Kind.bias, None
    if rules.get("fraction"):
        return Kind.fraction, None
    if isinstance(bare, type) and issubclass(bare, StrEnum):
        return Kind.choice, bare
    plain = {int: Kind.integer, float: Kind.number, bool: Kind.boolean, str: Kind.text}
    if bare in plain:
        return plain[bare], None
    if typing.get_origin(bare) is dict:
        return Kind.table, None
    inner = typing.get_origin(typing.get_args(bare)[0])
    return {tuple: Kind.lists, dict: Kind.tables}.get(inner, Kind.texts), None


def _allowed(kind: Kind, choices: type[StrEnum] | None, rules: Mapping[str, object]) -> str:
    if choices is not None:
        return ", ".join(choices)
    signs = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤"}
    bounds = " and ".join(f"{sign} {rules[name]:g}" for name, sign in signs.items() if name in rules)
    words = {
        Kind.fraction: "steps (a whole number), or a fraction of them below 1;",
        Kind.boolean: "true or false",
        Kind.bias: f"{', '.join((*WORDS, OWN))}, or a list of them and of the sites {' '.join(Site)}",
        Kind.texts: "a list, such as [a,b]",
        Kind.table: "a mapping of keys to lists of values",
        Kind.lists: "a list of lists, such as [[a,b],[c,d]]",
        Kind.tables: "a list of mappings, such as [{a:1,b:2}]",
        Kind.text: "text",
    }
    return f"{words.get(kind, f'a {kind.value}')} {bounds}".rstrip()


# What other projects call these settings.
ALIASES = {
    "learning_rate": "lr", "batch_size": "batch", "grad_clip": "clip", "max_grad_norm": "clip",
    "warmup_steps": "warmup", "max_steps": "steps", "max_iters": "steps", "iterations": "steps",
    "gradient_accumulation_steps": "accumulation", "wd": "weight_decay", "betas": "beta1",
    "dtype": "precision", "n_layer": "layers", "n_layers": "layers", "num_layers": "layers",
    "depth": "layers", "d_model": "width", "n_embd": "width", "hidden_size": "width", "n_head": "heads",
    "n_heads": "heads", "num_heads": "heads", "n_kv_heads": "kv_heads", "d_head": "head_dim",
    "d_ff": "ffn", "block_size": "context", "seq_len": "context", "max_seq_len": "context",
    "dataset": "data.name", "vocab": "vocab_size", "biases": "bias", "norm_type": "norm",
}  # fmt: skip


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `word` most likely means: one it begins, or a close spelling."""
    names = list(candidates)
    low = word.lower()
    for name in names:
        if low and (name.lower() == low or name.startswith(low) or low.startswith(name)):
            return name
    return next(iter(difflib.get_close_matches(low, names, n=1, cutoff=0.55)), None)


def nearest_keys(key: str, more: Iterable[str] = ()) -> list[str]:
    """Settings (or names in `more`) that a misspelt key most likely means, the best first."""
    candidates = [*table(), *more]
    section, _, last = key.rpartition(".")
    meant = ALIASES.get(last, last)
    same = [name for name in candidates if meant in (name, name.rpartition(".")[2])]
    if same:
        return [name for name in same if section and name.startswith(f"{section}.")] or same

    def likeness(name: str) -> float:
        whole = difflib.SequenceMatcher(None, key, name).ratio()
        home, _, tail = name.rpartition(".")
        here = 0.95 if home == section else 0.85 if not section else 0.7
        return max(whole, here * difflib.SequenceMatcher(None, last, tail).ratio())

    best = max(candidates, key=likeness)
    return [best] if likeness(best) >= 0.6 else []


def unknown_key(key: str, value: object = None, more: Iterable[str] = ()) -> ConfigError:
    """The error for a key that no setting has; with what was probably meant."""
    found = nearest_keys(key, more)
    tail = "" if value is None else f"={shown(value)}"
    hint = " or ".join(name + tail for name in found) or "ablate config --keys (lists every setting)"
    return ConfigError(f"unknown setting {key}", hint=hint)
