"""Rules between settings: one function each, over a resolved configuration."""

import math
import re
from collections.abc import Callable

from ablate.config.enums import Norm, Objective, Placement, Position, QkNormOver, Schedule, Source, Stack
from ablate.config.errors import ConfigError
from ablate.config.fields import table
from ablate.config.objectives import SMALLEST_BPE, hidden, reserved_tokens
from ablate.config.resolve import OBJECTIVES, at
from ablate.config.schema import Config

Rule = Callable[[Config], ConfigError | None]
_refused = ConfigError.setting


def check(config: Config) -> None:
    """Raise the first broken rule's ConfigError, naming the key to change."""
    for rule in RULES:
        error = rule(config)
        if error is not None:
            raise error


def _divisors(number: int) -> str:
    return ", ".join(str(k) for k in range(1, min(number, 4096) + 1) if number % k == 0)


def _heads(c: Config) -> ConfigError | None:
    if at(c, "model.head_dim") is not None:
        return None
    width = c.model.width
    allowed = f"a divisor of model.width = {width}: {_divisors(width)}; or give model.head_dim"
    return _refused("model.heads", c.model.heads, allowed)


def _kv_heads(c: Config) -> ConfigError | None:
    if c.model.heads % c.model.kv_heads == 0:
        return None
    allowed = f"a divisor of model.heads = {c.model.heads}: {_divisors(c.model.heads)}"
    return _refused("model.kv_heads", c.model.kv_heads, allowed)


def _rope(c: Config) -> ConfigError | None:
    if c.model.position is not Position.rope or c.model.head_dim % 2 == 0:
        return None
    return _refused("model.head_dim", c.model.head_dim, "an even number with model.position=rope")


def _rope_share(c: Config) -> ConfigError | None:
    share = c.model.rope_share
    if c.model.position is not Position.rope:
        if share == 1.0:
            return None
        return _refused("model.rope_share", share, f"1 with model.position={c.model.position}")
    turned = share * c.model.head_dim
    if turned >= 2 and turned % 2 == 0:
        return None
    allowed = f"a share of model.head_dim = {c.model.head_dim} that is an even number of channels"
    return _refused("model.rope_share", share, allowed)


def _stack(c: Config) -> ConfigError | None:
    """What only some stacks have."""
    m = c.model
    if m.segments and m.stack is not Stack.encoder:
        return _refused("model.segments", m.segments, f"0 with model.stack={m.stack}", "model.segments=0")
    if m.segments > m.context:
        return _refused("model.segments", m.segments, f"at most model.context = {m.context}")
    if m.parallel and m.stack is Stack.encoder_decoder:
        allowed = "false with model.stack=encoder_decoder: cross-attention reads what attention wrote"
        return _refused("model.parallel", True, allowed, "model.parallel=false")
    return None


def _norm_choices(c: Config) -> ConfigError | None:
    """Choices about norms that some models do not have."""
    m = c.model
    if not m.shared_norm and not (m.parallel and m.placement in (Placement.pre, Placement.peri)):
        allowed = "true without model.parallel=true and an inner norm (model.placement pre or peri)"
        return _refused("model.shared_norm", False, allowed, "model.shared_norm=true")
    if m.qk_norm_over is not QkNormOver.head and not m.qk_norm:
        allowed = "head without model.qk_norm=true"
        return _refused("model.qk_norm_over", m.qk_norm_over, allowed, "model.qk_norm=true")
    if m.head_transform and m.norm is Norm.none:
        allowed = "false with model.norm=none (there is no norm to apply)"
        return _refused("model.head_transform", True, allowed, "model.head_transform=false")
    return None


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
    some = hidden(d, context)
    if d.objective is Objective.span and 0 in (some.tokens, some.spans):
        longer = f"model.context={math.ceil((d.mask_span / 2 + 1) / d.mask_rate)}"
        if some.tokens:
            allowed = f"less than {2 * some.tokens}: so few tokens are hidden that no span is that long"
            return _refused(
                "data.mask_span", d.mask_span, allowed, f"data.mask_span={some.tokens} or {longer}"
            )
        allowed = f"a share that hides a token of the {context} of a window (model.context)"
        return _refused("data.mask_rate", d.mask_rate, allowed, longer)
    least = max(1, some.spans)
    if context - some.tokens < least:
        usual = table()["data.mask_rate"].default
        allowed = f"a share that leaves {least} or more tokens of the {context} of a window (model.context)"
        return _refused("data.mask_rate", d.mask_rate, allowed, f"data.mask_rate={usual}")
    return None


def _sinusoidal(c: Config) -> ConfigError | None:
    if c.model.position is not Position.sinusoidal or c.model.width % 2 == 0:
        return None
    return _refused("model.width", c.model.width, "an even number with model.position=sinusoidal")


def _window(c: Config) -> ConfigError | None:
    if c.model.window is None or c.model.window <= c.model.context:
        return None
    allowed = f"at most model.context = {c.model.context}, or null for the whole context"
    return _refused("model.window", c.model.window, allowed, f"model.window={c.model.context}")


def _window_every(c: Config) -> ConfigError | None:
    every, layers = c.model.window_every, c.model.layers
    if every == 1 or (c.model.window is not None and every <= layers):
        return None
    allowed = f"at most model.layers = {layers}" if c.model.window is not None else "1 without a model.window"
    return _refused("model.window_every", every, allowed, "model.window_every=1")


def _placement(c: Config) -> ConfigError | None:
    """Without a norm all placements are the same model: only one name for it is taken."""
    if c.model.norm is not Norm.none or c.model.placement is Placement.pre:
        return None
    allowed = "pre with model.norm=none (there is no norm to place)"
    return _refused("model.placement", c.model.placement, allowed, "model.placement=pre")


def _extra_norms(c: Config) -> ConfigError | None:
    if c.model.norm is not Norm.none:
        return None
    for name in ("embed_norm", "final_norm"):
        if getattr(c.model, name):
            allowed = "false with model.norm=none (there is no norm to apply)"
            return _refused(f"model.{name}", True, allowed, f"model.{name}=false")
    return None


def _accumulation(c: Config) -> ConfigError | None:
    if c.optim.batch % c.optim.accumulation == 0:
        return None
    allowed = f"a divisor of optim.batch = {c.optim.batch}: {_divisors(c.optim.batch)}"
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


def _weights(c: Config) -> ConfigError | None:
    m = c.model
    if m.weights is None and m.weights_sha256 is not None:
        allowed = "null without model.weights: it is filled in"
        return _refused("model.weights_sha256", m.weights_sha256, allowed, "model.weights=FOLDER")
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
    _heads,  # first: later rules rely on head_dim
    _kv_heads,
    _rope,
    _rope_share,
    _stack,
    _norm_choices,
    _objective,
    _hidden,
    _sinusoidal,
    _window,
    _window_every,
    _placement,
    _extra_norms,
    _accumulation,
    _phases,
    _needed,
    _unread,
    _vocabulary,
    _weights,
    _study,
    _root,
    _tracker,
    _axes,
)
