"""Our side: modules of a model by name, their shapes, and which of them a model has.

Legend: D width, E head dim, H query heads, K key and value heads, F ffn, T context, S segments, V vocabulary.
"""

from ablate.config import ModelConfig, Position, QkNormOver, Site

SITES = {
    **{name: Site(name) for name in ("q", "k", "v", "o", "up", "gate", "down", "transform", "head")},
    **dict.fromkeys(("norm1", "norm2", "final_norm", "embed_norm", "transform_norm"), Site.norm),
    **dict.fromkeys(("q_norm", "k_norm"), Site.qk_norm),
}
TURNED = frozenset({"q", "k", "q_norm", "k_norm"})  # their rows are channels that rope turns


def leaf(module: str) -> str:
    """The last part of a module's name."""
    return module.rpartition(".")[2]


def site_of(module: str) -> Site | None:
    """The bias site of a module; None for a table of embeddings."""
    return SITES.get(leaf(module))


def shape_of(module: str, parameter: str, model: ModelConfig, vocab: int) -> tuple[int, ...]:
    """The shape of a module's weight or bias. Segments are one at least: a table of none has no form."""
    m = model
    queries, keys = m.heads * m.head_dim, m.kv_heads * m.head_dim
    over_all = m.qk_norm_over is QkNormOver.all
    shapes: dict[str, tuple[int, ...]] = {
        "embed": (vocab, m.width),
        "position": (m.context, m.width),
        "segment": (max(1, m.segments), m.width),
        "q": (queries, m.width),
        "k": (keys, m.width),
        "v": (keys, m.width),
        "o": (m.width, queries),
        "up": (m.ffn, m.width),
        "gate": (m.ffn, m.width),
        "down": (m.width, m.ffn),
        "transform": (m.width, m.width),
        "head": (vocab, m.width),
        "q_norm": (queries if over_all else m.head_dim,),
        "k_norm": (keys if over_all else m.head_dim,),
    }
    shape = shapes.get(leaf(module), (m.width,))
    return shape[:1] if parameter == "bias" else shape


def has(module: str, parameter: str, model: ModelConfig) -> bool:
    """Has the model this weight or bias, of a module that its family has?"""
    if parameter == "bias":
        return site_of(module) in model.bias
    return module != "segment" or model.segments > 0


def turned_channels(module: str, model: ModelConfig) -> int:
    """The channels of a head that rope turns in this module's rows (0: none)."""
    if model.position is not Position.rope or leaf(module) not in TURNED:
        return 0
    return round(model.rope_share * model.head_dim)
