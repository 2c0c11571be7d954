"""Rules between the settings of a model: one function each, over a resolved configuration."""

from collections.abc import Callable

from ablate.config.enums import Norm, Placement, Position, QkNormOver, Stack
from ablate.config.errors import ConfigError
from ablate.config.resolve import at
from ablate.config.schema import Config

Rule = Callable[[Config], ConfigError | None]
_refused = ConfigError.setting


def divisors(number: int) -> str:
    """The divisors of a number, as words; those up to 4096."""
    return ", ".join(str(k) for k in range(1, min(number, 4096) + 1) if number % k == 0)


def _heads(c: Config) -> ConfigError | None:
    if at(c, "model.head_dim") is not None:
        return None
    width = c.model.width
    allowed = f"a divisor of model.width = {width}: {divisors(width)}; or give model.head_dim"
    return _refused("model.heads", c.model.heads, allowed)


def _kv_heads(c: Config) -> ConfigError | None:
    if c.model.heads % c.model.kv_heads == 0:
        return None
    allowed = f"a divisor of model.heads = {c.model.heads}: {divisors(c.model.heads)}"
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


def _weights(c: Config) -> ConfigError | None:
    m = c.model
    if m.weights is None:
        if m.weights_sha256 is None:
            return None
        allowed = "null without model.weights: it is filled in"
        return _refused("model.weights_sha256", m.weights_sha256, allowed, "model.weights=FOLDER")
    if c.seed == c.data.data_seed:
        return None
    allowed = (
        f"data.data_seed = {c.data.data_seed} with model.weights: only the order of the batches is drawn"
    )
    return _refused("seed", c.seed, allowed, "data.data_seed=null: each seed orders the batches anew")


MODEL_RULES: tuple[Rule, ...] = (
    _heads,  # first: later rules rely on head_dim
    _kv_heads,
    _rope,
    _rope_share,
    _stack,
    _norm_choices,
    _sinusoidal,
    _window,
    _window_every,
    _placement,
    _extra_norms,
    _weights,
)
