"""Rules between settings: one function each, over a resolved configuration."""

import re
from dataclasses import replace
from typing import Any

from ablate.config.enums import Objective, Schedule, Source
from ablate.config.errors import ConfigError
from ablate.config.fields import table
from ablate.config.model_rules import MODEL_RULES, Rule, divisors
from ablate.config.objectives import SMALLEST_BPE, hidden, hides_well, reserved_tokens
from ablate.config.resolve import OBJECTIVES, at
from ablate.config.schema import Config, DataConfig

_refused = ConfigError.setting
LONGEST = 1000  # a window that is suggested at most, in tokens


def check(config: Config) -> None:
    """Raise the first broken rule's ConfigError, naming the key to change."""
    for rule in RULES:
        error = rule(config)
        if error is not None:
            raise error


def _objective(c: Config) -> ConfigError | None:
    d, allowed = c.data, OBJECTIVES[c.model.stack]
    if d.objective not in allowed:
        words = f"{' or '.join(allowed)} with model.stack={c.model.stack}"
        return _refused("data.objective", d.objective, words, f"data.objective={allowed[0]}")
    hides = (Objective.masked, Objective.span)
    for key, readers in (("data.mask_rate", hides), ("data.mask_span", (Objective.span,))):
        value = at(c, key)
        if d.objective not in readers and value != table()[key].default:
            words = f"nothing with data.objective={d.objective}, which does not read it"
            return _refused(key, value, words, " or ".join(f"data.objective={reader}" for reader in readers))
    return None


def _hidden(c: Config) -> ConfigError | None:
    """What is hidden of a window must be something, and leave something to read."""
    d, context = c.data, c.model.context
    if hides_well(d, context):
        return None
    some, hint = hidden(d, context), " or ".join(_that_hide_well(d, context))
    if d.objective is Objective.span and some.tokens and not some.spans:
        allowed = f"less than {2 * some.tokens}: so few tokens are hidden that no span is that long"
        return _refused("data.mask_span", d.mask_span, allowed, hint)
    if d.objective is Objective.span and not some.tokens:
        allowed = f"a share that hides a token of the {context} of a window (model.context)"
    else:
        least = max(1, some.spans)
        allowed = f"a share that leaves {least} or more tokens of the {context} of a window (model.context)"
    return _refused("data.mask_rate", d.mask_rate, allowed, hint)


def _that_hide_well(data: DataConfig, context: int) -> list[str]:
    """Changes after which something is hidden and something left; of one setting, if that helps."""
    usual: dict[str, Any] = {name: table()[f"data.{name}"].default for name in ("mask_rate", "mask_span")}
    changes: list[dict[str, Any]] = [{"mask_rate": usual["mask_rate"]}]
    if data.objective is Objective.span:
        changes = [{"mask_span": max(1, hidden(data, context).tokens)}, *changes]
    found = [f"data.{name}={value}" for change in changes for name, value in change.items()
             if hides_well(replace(data, **change), context)]  # fmt: skip
    longer_with: tuple[dict[str, Any], ...] = ({}, {"mask_rate": usual["mask_rate"]}, usual)
    for change in longer_with:
        changed = replace(data, **change)
        longer = next((n for n in range(context, LONGEST + 1) if hides_well(changed, n)), None)
        if longer is not None and (not found or (not change and longer > context)):
            words = [f"data.{name}={value}" for name, value in change.items()]
            return [*found, " ".join([*words, *([f"model.context={longer}"] if longer > context else [])])]
    return found


def _accumulation(c: Config) -> ConfigError | None:
    if c.optim.batch % c.optim.accumulation == 0:
        return None
    allowed = f"a divisor of optim.batch = {c.optim.batch}: {divisors(c.optim.batch)}"
    return _refused("optim.accumulation", c.optim.accumulation, allowed)


def _phases(c: Config) -> ConfigError | None:
    o = c.optim
    if o.warmup > o.steps:
        return _refused("optim.warmup", o.warmup, f"at most optim.steps = {o.steps}, or a fraction below 1")
    if o.schedule is Schedule.wsd and o.warmup + o.cooldown > o.steps:
        allowed = f"warm-up and cooldown together at most optim.steps = {o.steps} (warm-up: {o.warmup})"
        return _refused("optim.cooldown", o.cooldown, allowed, f"optim.cooldown={o.steps - o.warmup}")
    return None


# Settings that only some sources read. Elsewhere they must stay at their default: nobody's wish is ignored.
READ_BY: dict[str, tuple[Source, ...]] = {
    "data.paths": (Source.text,),
    "data.field": (Source.text, Source.hub),
    "data.name": (Source.hub,),
    "data.subset": (Source.hub,),
    "data.revision": (Source.hub,),
    "data.split": (Source.hub,),
    "data.streaming": (Source.hub,),
    "data.max_bytes": (Source.stdlib, Source.text, Source.hub),
    "data.tokenizer": (Source.stdlib, Source.text, Source.hub),
    "data.tokens": (Source.synthetic,),
    "data.branching": (Source.synthetic,),
}


def _unread(c: Config) -> ConfigError | None:
    source = c.data.source
    for key, readers in READ_BY.items():
        value = at(c, key)
        if source not in readers and value != table()[key].default:
            hints = " or ".join(f"data.source={reader}" for reader in readers)
            return _refused(key, value, f"nothing with data.source={source}, which does not read it", hints)
    return None


def _needed(c: Config) -> ConfigError | None:
    if c.data.source is Source.text and not c.data.paths:
        return _refused("data.paths", (), "files or globs with data.source=text", "data.paths='[docs/*.md]'")
    if c.data.source is Source.hub and not c.data.name:
        allowed = "the name of a data set, or its folder, with data.source=hub"
        return _refused("data.name", c.data.name, allowed, "data.name=roneneldan/TinyStories")
    return None


def _vocabulary(c: Config) -> ConfigError | None:
    """Room for what text is made of beside what the objective reserves."""
    d, reserved = c.data, len(reserved_tokens(c.data, c.model.context))
    if d.source is Source.synthetic and d.branching > d.vocab_size - reserved:
        kept = f", less {reserved} that data.objective={d.objective} reserves" if reserved else ""
        allowed = f"at most data.vocab_size = {d.vocab_size}{kept}: successors are different tokens"
        return _refused("data.branching", d.branching, allowed)
    least = reserved + (SMALLEST_BPE if d.source is not Source.synthetic and d.tokenizer is None else 1)
    if reserved and d.vocab_size < least:
        allowed = (
            f"at least {least}: {reserved} for data.objective={d.objective}, the rest for the text itself"
        )
        return _refused("data.vocab_size", d.vocab_size, allowed, f"data.vocab_size={least}")
    return None


def _study(c: Config) -> ConfigError | None:
    if c.study == "requests":
        return _refused("study", c.study, "another name: a study keeps its requests in a folder called so")
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.=+-]{0,99}", c.study) and not c.study.endswith("."):
        return None
    kept = re.sub(r"[^A-Za-z0-9_.=+-]+", "-", c.study).strip("-.=+")[:100]
    allowed = "a folder name: letters, digits, _ . = + -, at most 100; a letter, digit or _ first"
    return _refused("study", c.study, allowed, f"study={kept}" if kept else None)


def _root(c: Config) -> ConfigError | None:
    return None if c.run.root.strip() else _refused("run.root", c.run.root, "a folder", "run.root=runs")


def _tracker(c: Config) -> ConfigError | None:
    """Names that the service would refuse, hours later."""
    for key, name in (("tracker.project", c.tracker.project), ("tracker.entity", c.tracker.entity)):
        if name is not None and not re.fullmatch(r"[^/\\#?%:\s][^/\\#?%:]{0,127}", name):
            return _refused(key, name, "1 to 128 characters, none of / \\ # ? % :")
    for tag in c.tracker.tags:
        if not 1 <= len(tag) <= 64:
            return _refused("tracker.tags", tag, "tags of 1 to 64 characters")
    return None


def _axes(c: Config) -> ConfigError | None:
    for key, values in c.sweep.axes.items():
        if not isinstance(values, list | tuple | str | int | float | bool):
            return _refused(f"sweep.axes: {key}", values, "a list of values, or a sweep such as 1e-3,1e-2")
    return None


RULES: tuple[Rule, ...] = (
    *MODEL_RULES,  # first: later rules rely on them
    _objective,
    _hidden,
    _accumulation,
    _phases,
    _needed,
    _unread,
    _vocabulary,
    _study,
    _root,
    _tracker,
    _axes,
)
