"""The model against a slow, obvious reference that knows only parameter names and formulas (float64)."""

import math
import random

import pytest
import torch


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


def attention(p, name, x, c, qk_kind):
    q, k, v = (linear(p, f"{name}.{site}", x) for site in "qkv")
    tokens, size = x.shape[0], c.head_dim
    out = torch.zeros(tokens, c.heads * size, dtype=x.dtype)
    for head in range(c.heads):
        shared = head // (c.heads // c.kv_heads)
        for t in range(tokens):
            first = 0 if c.window is None else max(0, t - c.window + 1)
            scores = []
            for s in range(first, t + 1):
                pair = [q[t, head * size : (head + 1) * size], k[s, shared * size : (shared + 1) * size]]
                pair = [
                    norm(p, f"{name}.{which}_norm", z, qk_kind, c.eps)
                    for which, z in zip("qk", pair, strict=True)
                ]
                if c.position == "rope":
                    pair = [rotate(z, at, c.rope_theta) for z, at in zip(pair, (t, s), strict=True)]
                scores.append(pair[0] @ pair[1] / math.sqrt(size))
            weights = torch.stack(scores).softmax(0)
            out[t, head * size : (head + 1) * size] = (
                weights @ v[first : t + 1, shared * size : (shared + 1) * size]
            )
    return linear(p, f"{name}.o", out)


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


def block(p, name, x, c):
    def n(which, y):
        return norm(p, f"{name}.{which}", y, c.norm, c.eps)

    def f(y):
        return attention(p, f"{name}.attention", y, c, "rmsnorm" if c.norm == "none" else c.norm)

    def g(y):
        return mlp(p, f"{name}.mlp", y, c)

    if c.parallel:
        return {
            "pre": lambda: x + f(n("norm1", x)) + g(n("norm1", x)),
            "post": lambda: n("norm1", x + f(x) + g(x)),
            "peri": lambda: x + n("out_norm1", f(n("norm1", x))) + n("out_norm2", g(n("norm1", x))),
            "sublayer": lambda: x + n("norm1", f(x)) + n("norm2", g(x)),
        }[c.placement]()
    if c.placement == "pre":
        h = x + f(n("norm1", x))
        return h + g(n("norm2", h))
    if c.placement == "post":
        h = n("norm1", x + f(x))
        return n("norm2", h + g(h))
    if c.placement == "peri":
        h = x + n("out_norm1", f(n("norm1", x)))
        return h + n("out_norm2", g(n("norm2", h)))
    h = x + n("norm1", f(x))
    return h + n("norm2", g(h))


def reference(p, c, tokens):
    """Logits of one sequence of token ids."""
    for name, wanted in (("embed_norm", c.embed_norm), ("final_norm", c.final_norm)):
        assert (f"{name}.weight" in p) == (wanted and c.norm != "none")
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
    x = norm(p, "embed_norm", x, c.norm, c.eps)
    for index in range(c.layers):
        x = block(p, f"blocks.{index}", x, c)
    x = norm(p, "final_norm", x, c.norm, c.eps)
    return linear(p, "head", x)


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
        ("q", "o", "gate", "qk_norm"),
        ("q", "k", "v", "o", "up", "gate", "down", "head", "norm", "qk_norm"),
    ],
}


@pytest.mark.parametrize("draw", range(40))
@torch.no_grad()
def test_any_combination_of_options(scrambled, tokens, draw):
    chooser = random.Random(draw)
    changes = {key: chooser.choice(values) for key, values in CHOICES.items()}
    model = scrambled(**changes)
    expected = reference(model.state_dict(), model.config, tokens[0, :6])
    torch.testing.assert_close(
        model(tokens[:1, :6])[0], expected, rtol=1e-5, atol=1e-5, msg=lambda m: f"{changes}\n{m}"
    )


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
