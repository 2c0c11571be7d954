"""Parameters of a model by formulas over its configuration, and arbitrary valid models of every stack."""

from collections import Counter
from typing import Any

import hypothesis.strategies as st

from ablate.config import (
    Activation,
    Config,
    ModelConfig,
    Norm,
    Placement,
    Position,
    QkNormOver,
    Site,
    Stack,
    parse,
    sites_of,
)


def attention_sizes(m: ModelConfig, prefix: str = "") -> dict[str, tuple[int, int]]:
    """Inputs and outputs of the four linears of one attention."""
    queries, keys = m.heads * m.head_dim, m.kv_heads * m.head_dim
    sizes = {"q": (m.width, queries), "k": (m.width, keys), "v": (m.width, keys), "o": (queries, m.width)}
    return {f"{prefix}{name}": size for name, size in sizes.items()}


def linears(m: ModelConfig, vocab: int) -> list[tuple[str, tuple[int, int]]]:
    """Site and size of every linear of a model."""
    block = attention_sizes(m) | {"up": (m.width, m.ffn), "down": (m.ffn, m.width)}
    if m.activation is Activation.swiglu:
        block["gate"] = (m.width, m.ffn)
    blocks = [block] * m.layers
    if m.stack is Stack.encoder_decoder:
        blocks += [block | attention_sizes(m, "cross_")] * m.layers
    found = [item for one in blocks for item in one.items()]
    if m.head_transform:
        found.append(("transform", (m.width, m.width)))
    return [*found, ("head", (m.width, vocab))]


def block_norms(m: ModelConfig, cross: bool) -> int:
    """Norms over the stream in one block."""
    if m.norm is Norm.none:
        return 0
    sublayers = 3 if cross else 2
    inner = sublayers if not (m.parallel and m.shared_norm) else 1
    return {
        Placement.pre: inner,
        Placement.post: 1 if m.parallel else sublayers,
        Placement.peri: inner + sublayers,
        Placement.sublayer: sublayers,
    }[m.placement]


def norms(m: ModelConfig) -> list[tuple[str, int]]:
    """Site and width of every norm of a model."""
    both = m.stack is Stack.encoder_decoder
    over_all = m.qk_norm_over is QkNormOver.all
    pair = [m.heads * m.head_dim, m.kv_heads * m.head_dim] if over_all else [m.head_dim] * 2
    attentions = m.layers * (3 if both else 1)
    stream = m.layers * (block_norms(m, False) + (block_norms(m, True) if both else 0))
    stream += m.embed_norm + m.final_norm * (2 if both else 1) + m.head_transform
    found = [("norm", m.width)] * stream
    return found + ([("qk_norm", width) for width in pair] * attentions if m.qk_norm else [])


def embeddings(m: ModelConfig, vocab: int) -> dict[str, int]:
    found = {"embed": vocab * m.width}
    if m.position is Position.learned:
        found["position"] = m.context * m.width
    return found | ({"segment": m.segments * m.width} if m.segments else {})


def counted(m: ModelConfig, vocab: int) -> tuple[dict[str, int], dict[str, int]]:
    """Weights by site (and embedding), and biases by site."""
    weights, biases = Counter(embeddings(m, vocab)), Counter[str]()
    for site, (inputs, outputs) in linears(m, vocab):
        weights[site] += 0 if site == "head" and m.tie_embeddings else inputs * outputs
        biases[site] += outputs if site in m.bias else 0
    for site, width in norms(m):
        weights[site] += width
        biases[site] += width if site in m.bias else 0
    return +weights, +biases


@st.composite
def configs(draw: st.DrawFn, windows: bool = True) -> Config:
    """A small model of any stack that the rules let through."""
    stack, norm = draw(st.sampled_from(Stack)), draw(st.sampled_from(Norm))
    heads, kv_heads = draw(st.sampled_from([(1, 1), (2, 1), (2, 2), (4, 2), (6, 3)]))
    model: dict[str, Any] = {
        "stack": stack,
        "layers": draw(st.integers(1, 3)),
        "width": draw(st.sampled_from([8, 16, 24])),
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": draw(st.sampled_from([4, 6])),
        "ffn": draw(st.integers(1, 40)),
        "context": draw(st.sampled_from([16, 31])),
        "norm": norm,
        "activation": draw(st.sampled_from(Activation)),
        "position": draw(st.sampled_from(Position)),
        "tie_embeddings": draw(st.booleans()),
        "qk_norm": draw(st.booleans()),
        "scale_logits": draw(st.booleans()),
    }
    if model["qk_norm"]:
        model["qk_norm_over"] = draw(st.sampled_from(QkNormOver))
    if stack is Stack.encoder:
        model["segments"] = draw(st.sampled_from([0, 2, 3]))
    else:
        model["parallel"] = stack is Stack.decoder and draw(st.booleans())
    if norm is not Norm.none:
        model["placement"] = draw(st.sampled_from(Placement))
        if model.get("parallel") and model["placement"] in (Placement.pre, Placement.peri):
            model["shared_norm"] = draw(st.booleans())
        model |= {key: draw(st.booleans()) for key in ("embed_norm", "final_norm", "head_transform")}
    if windows and draw(st.booleans()):
        model |= {"window": draw(st.integers(1, 16)), "window_every": draw(st.integers(1, model["layers"]))}
    present = [str(site) for site in sites_of(parse({"model": model}).model)]
    words = st.sampled_from(["none", "linear", "all"])
    model["bias"] = draw(st.one_of(words, st.lists(st.sampled_from(present))))
    data: dict[str, Any] = {"vocab_size": draw(st.sampled_from([300, 411]))}
    if stack is Stack.encoder_decoder and draw(st.booleans()):
        data |= {"objective": "span", "mask_rate": 0.3, "mask_span": 2.0}
    precision = draw(st.sampled_from(["fp32", "bf16"]))
    optim = {"batch": 4, "accumulation": draw(st.sampled_from([1, 2])), "precision": precision}
    return parse({"model": model, "data": data, "optim": optim})


def site_order(counts: dict[str, int]) -> dict[str, int]:
    return {str(site): counts[site] for site in Site if site in counts}
