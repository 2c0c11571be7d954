"""What every column should be, from what the parts of a model saw: slow and obvious.

B batch, T tokens, as everywhere; t, s are positions of a query and a key.
"""

import math
from collections import defaultdict

import torch

from ablate.model.block import Block
from ablate.model.parts import Linear


class Witness:
    """Keeps what every linear, block and attention saw, in float64."""

    def __init__(self, model, monkeypatch):
        self.outputs, self.blocks = defaultdict(list), defaultdict(list)
        self.attention, self.logits = defaultdict(list), []
        self.inside = []
        model.register_forward_hook(lambda m, x, y: self.logits.append(y.detach().double()))
        for name, module in model.named_modules():
            if isinstance(module, Linear):
                module.register_forward_hook(
                    lambda m, x, y: self.outputs[m.label].append(y.detach().double())
                )
            if isinstance(module, Block):
                side, index = name.split(".")
                label = f"{'e' if side == 'encoder' else 'b'}{int(index):02d}"
                module.register_forward_hook(
                    lambda m, x, y, n=label: self.blocks[n].append(y.detach().double())
                )
                for part, end in (("attention", ""), ("cross", "_cross")):
                    attention = getattr(module, part)
                    if attention is not None:
                        attention.register_forward_pre_hook(lambda m, x, n=label + end: self.inside.append(n))
        kernel = torch.nn.functional.scaled_dot_product_attention

        def spy(q, k, v, **options):
            self.attention[self.inside[-1]].append((q.detach().double(), k.detach().double()))
            return kernel(q, k, v, **options)

        monkeypatch.setattr("ablate.model.attention.scaled_dot_product_attention", spy)


def flat(tensors):
    return torch.cat([t.flatten(0, 1) for t in tensors])


def expected_outputs(witness):
    return {f"out/{label}": flat(ys).square().sum(-1).mean().sqrt() for label, ys in witness.outputs.items()}


def sees(label, config):
    """sees(t, s): does query t of this attention see key s?"""
    banded = config.window is not None and (int(label[1:3]) + 1) % config.window_every == 0
    window = config.window if banded else math.inf
    if "cross" in label:
        return lambda t, s: True
    if label.startswith("e") or config.stack == "encoder":
        return lambda t, s: abs(t - s) < window
    return lambda t, s: 0 <= t - s < window


def largest_logit(pairs, seen, queries):
    """Over all micro-batches, heads and sampled queries, one dot product at a time."""
    found = -math.inf
    for q, k in pairs:
        batch, heads, tokens, size = q.shape
        for i in range(1, min(queries, tokens) + 1):
            t = i * tokens // min(queries, tokens) - 1
            for b in range(batch):
                for h in range(heads):
                    keys = k[b, h * k.shape[1] // heads, [s for s in range(k.shape[2]) if seen(t, s)]]
                    found = max(found, (keys @ q[b, h, t]).max().item() / math.sqrt(size))
    return found


def expected_samples(witness, model, biases, queries):
    found = {}
    for label, xs in witness.blocks.items():
        x = flat(xs)
        found[f"resid/{label}_rms"] = x.square().mean().sqrt()
        found[f"resid/{label}_max"] = x.abs().max()
        found[f"resid/{label}_kurtosis"] = (x**4).mean() / x.square().mean() ** 2
    for label, pairs in witness.attention.items():
        found[f"attn/{label}_max_logit"] = largest_logit(pairs, sees(label, model.config), queries)
    logits = flat(witness.logits)
    found["logit/max"] = logits.max()
    found["logit/logz"] = logits.exp().sum(-1).log().mean()
    for label, b in biases.items():
        product = flat(witness.outputs[label]) - b
        ones_b = b.expand_as(product)
        found[f"wx/{label}"] = product.square().sum(-1).mean().sqrt()
        found[f"bias/{label}_norm"] = b.norm()
        found[f"bias/{label}_cos"] = (product * ones_b).sum() / product.norm() / ones_b.norm()
        found[f"bias/{label}_cancellable"] = (b.mean() / b.norm()) ** 2 * b.numel()
    return found
