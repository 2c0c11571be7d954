"""A published architecture shrunk to a study size, its character kept.

Kept: all that is no size (stack, norm, eps, placement, activation, positions, tying, biases, …), and the
proportions: heads to key/value heads, ffn to width, all heads together to width, window to context. Key/value
heads are as near to their proportion as whole heads allow, and 1 stays 1.
"""

from dataclasses import dataclass, replace
from typing import Any

from ablate.config.enums import Scale
from ablate.config.model import ModelConfig


@dataclass(frozen=True)
class Size:
    """A study size: blocks (on each side), widths of the stream and of one head, tokens of a window."""

    layers: int
    width: int
    head_dim: int
    context: int


SIZES = {
    Scale.tiny: Size(layers=2, width=32, head_dim=8, context=32),
    Scale.small: Size(layers=4, width=64, head_dim=8, context=64),
    Scale.medium: Size(layers=8, width=256, head_dim=32, context=128),
}
# What a scale changes of a run, as far as the experiment goes: an axis over it declares these.
RESIZED = (
    *(f"model.{name}" for name in ("layers", "width", "heads", "kv_heads", "head_dim", "ffn")),
    "model.context", "model.window", "data.vocab_size",
)  # fmt: skip


def scaled(model: ModelConfig, scale: Scale | None) -> ModelConfig:
    """The model at a study size, its `vocab` left open; as it is for None.

    `model` may have derived fields open: they stay open where they would be derived anew.
    """
    if scale is None:
        return replace(model, scale=None)
    size = SIZES[scale]
    head_dim = model.head_dim or model.width / model.heads
    heads = max(1, round(size.width * model.heads * head_dim / (model.width * size.head_dim)))
    changes: dict[str, Any] = {
        "scale": scale,
        "layers": size.layers,
        "width": size.width,
        "heads": heads,
        "kv_heads": None if model.kv_heads is None else _kv_heads(heads, model.heads / model.kv_heads),
        "head_dim": None if heads * size.head_dim == size.width else size.head_dim,
        "ffn": None if model.ffn is None else max(1, round(model.ffn / model.width * size.width)),
        "context": size.context,
        "vocab": None,
    }
    if model.window is not None:
        changes["window"] = max(1, round(model.window / model.context * size.context))
    return replace(model, **changes)


def _kv_heads(heads: int, group: float) -> int:
    """The most key/value heads that divide the heads into groups of at least this size."""
    return max((k for k in range(1, heads + 1) if heads % k == 0 and heads / k >= group), default=1)
