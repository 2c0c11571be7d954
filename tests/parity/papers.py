"""The papers' equations, slowly: loops over heads and positions, one window at a time, in float64.

Parameters come by our names. Legend: T tokens, D width, E head dim, V vocabulary.
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from ablate.config import ModelConfig

Parameters = Mapping[str, Tensor]


def normed(x_TD: Tensor, p: Parameters, name: str, eps: float) -> Tensor:
    """Layer norm (Ba et al. 2016), with a β where the model has one."""
    rows = []
    for x_D in x_TD:
        mean = x_D.sum() / len(x_D)
        variance = ((x_D - mean) ** 2).sum() / len(x_D)
        y_D = (x_D - mean) / torch.sqrt(variance + eps) * p[f"{name}.weight"]
        rows.append(y_D + p[f"{name}.bias"] if f"{name}.bias" in p else y_D)
    return torch.stack(rows)


def linear(x: Tensor, p: Parameters, name: str) -> Tensor:
    """Wx, and + b where the model has one."""
    y = x @ p[f"{name}.weight"].T
    return y + p[f"{name}.bias"] if f"{name}.bias" in p else y


def turned(x_E: Tensor, position: int, theta: float) -> Tensor:
    """Rotary embedding (Su et al. 2021, eq. 34): pair i turns by position · theta^(−2i/E)."""
    out = []
    for i in range(len(x_E) // 2):
        angle = position * theta ** (-2 * i / len(x_E))
        a, b = x_E[2 * i], x_E[2 * i + 1]
        out += [a * math.cos(angle) - b * math.sin(angle), a * math.sin(angle) + b * math.cos(angle)]
    return torch.stack(out)


def attention(y_TD: Tensor, p: Parameters, name: str, c: ModelConfig, band: int | None) -> Tensor:
    """Softmax attention, head by head and query by query; with a band a query sees its last keys only."""
    size, group = c.head_dim, c.heads // c.kv_heads
    q, k, v = (linear(y_TD, p, f"{name}.{letter}") for letter in "qkv")

    def placed(x_E: Tensor, position: int) -> Tensor:
        return turned(x_E, position, c.rope_theta) if c.position == "rope" else x_E

    def cut(x_TC: Tensor, position: int, head: int) -> Tensor:
        return x_TC[position, head * size : (head + 1) * size]

    heads = []
    for head in range(c.heads):
        shared = head // group
        keys = [placed(cut(k, s, shared), s) for s in range(len(y_TD))]
        rows = []
        for t in range(len(y_TD)):
            query_E = placed(cut(q, t, head), t)
            seen = range(0 if band is None else max(0, t - band + 1), t + 1)
            scores = torch.stack([query_E @ keys[s] / math.sqrt(size) for s in seen])
            weights = torch.softmax(scores, dim=0)
            rows.append(sum(w * cut(v, s, shared) for w, s in zip(weights, seen, strict=True)))
        heads.append(torch.stack(rows))
    return linear(torch.cat(heads, dim=1), p, f"{name}.o")


def palm(window_T: Tensor, p: Parameters, c: ModelConfig) -> Tensor:
    """PaLM (Chowdhery et al. 2022, section 2): logits of one window, [T, V].

    y = x + MLP(LN(x)) + Attention(LN(x)); SwiGLU; one key and value head; no biases; shared embeddings;
    logits scaled by 1/√n.
    """
    x_TD = p["embed.weight"][window_T]
    for i in range(c.layers):
        name = f"blocks.{i}"
        y_TD = normed(x_TD, p, f"{name}.norm1", c.eps)
        gate = linear(y_TD, p, f"{name}.mlp.gate")
        hidden = gate / (1 + torch.exp(-gate)) * linear(y_TD, p, f"{name}.mlp.up")
        mlp = linear(hidden, p, f"{name}.mlp.down")
        x_TD = x_TD + mlp + attention(y_TD, p, f"{name}.attention", c, None)
    return normed(x_TD, p, "final_norm", c.eps) @ p["embed.weight"].T / math.sqrt(c.width)


def gpt3(window_T: Tensor, p: Parameters, c: ModelConfig) -> Tensor:
    """GPT-3 (Brown et al. 2020, section 2.1): GPT-2 with dense and banded attention in turns, [T, V]."""
    x_TD = p["embed.weight"][window_T] + p["position.weight"][: len(window_T)]
    for i in range(c.layers):
        name, band = f"blocks.{i}", c.window if i % 2 == 1 else None
        x_TD = x_TD + attention(normed(x_TD, p, f"{name}.norm1", c.eps), p, f"{name}.attention", c, band)
        up = linear(normed(x_TD, p, f"{name}.norm2", c.eps), p, f"{name}.mlp.up")
        hidden = 0.5 * up * (1 + torch.tanh(math.sqrt(2 / math.pi) * (up + 0.044715 * up**3)))
        x_TD = x_TD + linear(hidden, p, f"{name}.mlp.down")
    return normed(x_TD, p, "final_norm", c.eps) @ p["embed.weight"].T
