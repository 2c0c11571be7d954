"""The model against a slow, obvious reference that knows only parameter names and formulas (float64)."""

import math
import random

import pytest
import torch

from ablate.config import Site


def norm(p, name, x, kind, eps):
    if f"{name}.weight" not in p:
        return x
    centred = x - x.mean(-1, keepdim=True) if kind == "layernorm" else x
    y = centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt() * p[f"{name}.weight"]
    return y + p.get(f"{name}.bias", 0.0)


def linear(p, name, x):
    return x @ p[f"{name}.weight"].T + p.get(f"{name}.bias", 0.0)


def rotate(x, position, theta):
    """One head vector [E] at one position."""
    out = x.clone()
    for i in range(0, x.numel(), 2):
        angle = position * theta ** (-i / x.numel())
        c, s = math.cos(angle), math.sin(angle)
        out[i], out[i + 1] = x[i] * c - x[i + 1] * s, x[i] * s + x[i + 1] * c
    return out


def seen(c, causal, banded, t, keys):
    """Keys that query t sees."""
    near = [s for s in range(keys) if not banded or abs(t - s) < c.window]
    return [s for s in near if s <= t] if causal else near


def queries_or_keys(p, name, x, c, heads, rotary):
    """Normed and rotated, [tokens][heads] vectors of one head each."""
    kind = "rmsnorm" if c.norm == "none" else c.norm
    if c.qk_norm_over == "all":
        x = norm(p, f"{name}_norm", x, kind, c.eps)
    split = [list(row.view(heads, c.head_dim)) for row in x]
    if c.qk_norm_over == "head":
        split = [[norm(p, f"{name}_norm", z, kind, c.eps) for z in row] for row in split]
    if rotary:
        cut = int(c.rope_share * c.head_dim)
        split = [
            [torch.cat([rotate(z[:cut], at, c.rope_theta), z[cut:]]) for z in row]
            for at, row in enumerate(split)
        ]
    return split


def attention(p, name, x, source, c, sees, rotary):
    """`sees(t)`: the tokens of the source that token t of x attends to."""
    q = queries_or_keys(p, f"{name}.q", linear(p, f"{name}.q", x), c, c.heads, rotary)
    k = queries_or_keys(p, f"{name}.k", linear(p, f"{name}.k", source), c, c.kv_heads, rotary)
    v = linear(p, f"{name}.v", source).view(len(source), c.kv_heads, c.head_dim)
    out = torch.zeros(len(x), c.heads, c.head_dim, dtype=x.dtype)
    for head in range(c.heads):
        shared = head // (c.heads // c.kv_heads)
        for t in range(len(x)):
            scores = [q[t][head] @ k[s][shared] / math.sqrt(c.head_dim) for s in sees(t)]
            out[t, head] = torch.stack(scores).softmax(0) @ v[sees(t), shared]
    return linear(p, f"{name}.o", out.flatten(1))


def activate(x, kind):
    if kind == "relu":
        return x.clamp(min=0)
    if kind == "gelu":
        return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def mlp(p, name, x, c):
    up = linear(p, f"{name}.up", x)
    if c.activation == "swiglu":
        gate = linear(p, f"{name}.gate", x)
        return linear(p, f"{name}.down", gate * torch.sigmoid(gate) * up)
    return linear(p, f"{name}.down", activate(up, c.activation))


def block(p, name, x, c, causal, source=None):
    banded = c.window is not None and (int(name.split(".")[1]) + 1) % c.window_every == 0

    def n(which, y):
        return norm(p, f"{name}.{which}", y, c.norm, c.eps)

    def f(y):
        rotary = c.position == "rope"
        return attention(
            p, f"{name}.attention", y, y, c, lambda t: seen(c, causal, banded, t, len(y)), rotary
        )

    def h(y):
        return attention(p, f"{name}.cross", y, source, c, lambda t: list(range(len(source))), rotary=False)

    def g(y):
        return mlp(p, f"{name}.mlp", y, c)

    if c.parallel:
        second = "norm1" if c.shared_norm else "norm2"
        return {
            "pre": lambda: x + f(n("norm1", x)) + g(n(second, x)),
            "post": lambda: n("norm1", x + f(x) + g(x)),
            "peri": lambda: x + n("out_norm1", f(n("norm1", x))) + n("out_norm2", g(n(second, x))),
            "sublayer": lambda: x + n("norm1", f(x)) + n("norm2", g(x)),
        }[c.placement]()
    for sublayer, which in ((f, "norm1"), *(() if source is None else ((h, "cross_norm"),)), (g, "norm2")):
        if c.placement == "pre":
            x = x + sublayer(n(which, x))
        if c.placement == "post":
            x = n(which, x + sublayer(x))
        if c.placement == "peri":
            x = x + n(f"out_{which}", sublayer(n(which, x)))
        if c.placement == "sublayer":
            x = x + n(which, sublayer(x))
    return x


def embedded(p, c, tokens):
    x = p["embed.weight"][tokens]
    if c.position == "learned":
        x = x + p["position.weight"][: len(tokens)]
    if c.position == "sinusoidal":
        table = torch.tensor(
            [
                [
                    (math.cos if i % 2 else math.sin)(t / 10000 ** (2 * (i // 2) / c.width))
                    for i in range(c.width)
                ]
                for t in range(len(tokens))
            ]
        )
        x = x * math.sqrt(c.width) + table
    if c.segments:
        x = x + p["segment.weight"][[t * c.segments // len(tokens) for t in range(len(tokens))]]
    return norm(p, "embed_norm", x, c.norm, c.eps)


def reference(p, c, tokens, source=None):
    """Logits of one sequence of token ids."""
    for name, wanted in (("embed_norm", c.embed_norm), ("final_norm", c.final_norm)):
        assert (f"{name}.weight" in p) == (wanted and c.norm != "none")
    if source is not None:
        source = embedded(p, c, source)
        for index in range(c.layers):
            source = block(p, f"encoder.{index}", source, c, causal=False)
        source = norm(p, "encoder_norm", source, c.norm, c.eps)
    x = embedded(p, c, tokens)
    for index in range(c.layers):
        x = block(p, f"blocks.{index}", x, c, causal=c.stack != "encoder", source=source)
    x = norm(p, "final_norm", x, c.norm, c.eps)
    if c.head_transform:
        x = linear(p, "transform", x)
        x = x * torch.sigmoid(x) if c.activation == "swiglu" else activate(x, c.activation)
        x = norm(p, "transform_norm", x, c.norm, c.eps)
    logits = linear(p, "head", x)
    return logits / math.sqrt(c.width) if c.scale_logits else logits


CHOICES = {
    "placement": ["pre", "post", "peri", "sublayer"],
    "norm": ["layernorm", "rmsnorm", "none"],
    "position": ["learned", "sinusoidal", "rope", "none"],
    "parallel": [False, True],
    "activation": ["relu", "gelu", "gelu_tanh", "swiglu"],
    "kv_heads": [4, 2, 1],
    "window": [None, 1, 3],
    "qk_norm": [False, True],
    "tie_embeddings": [False, True],
    "embed_norm": [False, True],
    "final_norm": [False, True],
    "head_dim": [4, 6],
    "eps": [1e-5, 0.1],
    "rope_theta": [10000.0, 50.0],
    "bias": [
        (),
        ("q", "o", "gate", "qk_norm", "cross_k", "cross_o"),
        tuple(Site),
    ],
    "stack": ["decoder", "encoder", "encoder_decoder"],
    "rope_share": [1.0, 0.5],
    "qk_norm_over": ["head", "all"],
    "window_every": [1, 2],
    "shared_norm": [True, False],
    "head_transform": [False, True],
    "scale_logits": [False, True],
    "segments": [0, 2, 3],
}


def drawn(draw):
    chooser = random.Random(draw)
    changes = {key: chooser.choice(values) for key, values in CHOICES.items()}
    if changes["stack"] == "encoder_decoder":
        changes["parallel"] = False
    if changes["stack"] != "encoder":
        changes["segments"] = 0
    if changes["head_dim"] == 6:
        changes["rope_share"] = chooser.choice([1.0, 2 / 3, 1 / 3])
    return changes


@pytest.mark.parametrize("draw", range(60))
@torch.no_grad()
def test_any_combination_of_options(scrambled, tokens, draw):
    changes = drawn(draw)
    model = scrambled(**changes)
    source = tokens[1, :5] if changes["stack"] == "encoder_decoder" else None
    expected = reference(model.state_dict(), model.config, tokens[0, :6], source)
    logits = model(tokens[:1, :6], None if source is None else source[None])
    torch.testing.assert_close(logits[0], expected, rtol=1e-5, atol=1e-5, msg=lambda m: f"{changes}\n{m}")


@pytest.mark.parametrize("placement", CHOICES["placement"])
@torch.no_grad()
def test_low_precision_stays_close_and_leaves_parameters_alone(scrambled, tokens, placement):
    changes = {"placement": placement, "position": "rope", "qk_norm": True, "norm": "rmsnorm"}
    model = scrambled(**changes).float()
    before = {name: p.clone() for name, p in model.named_parameters()}
    exact = model(tokens)
    model.set_compute_dtype(torch.bfloat16)
    rough = model(tokens)
    assert rough.dtype == torch.float32
    assert not torch.equal(rough, exact)
    assert (rough - exact).norm() < 0.05 * exact.norm()
    assert all(
        torch.equal(p, before[name]) and p.dtype == torch.float32 for name, p in model.named_parameters()
    )
    model.set_compute_dtype(None)
    assert torch.equal(model(tokens), exact)
