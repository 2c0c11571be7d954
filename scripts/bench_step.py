"""CPU seconds of one training step against a plain loop of nanoGPT's shape and settings.

The plain loop is written for this comparison: learned positions, fused qkv projection, biases everywhere,
LayerNorm, GELU, tied head, no dropout; unfused AdamW with decay groups (what nanoGPT uses on a CPU), clipping
at 1.0, cosine schedule, the loss read every 10 steps. Ours records every step with the default probes.
"""

import argparse
import json
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benching import SHAPE, compare, configuration, data_of, take_turns, wait_for_turn

REACH, STRETCH = 0.95, 0.85


class PlainBlock(nn.Module):
    """A pre-norm block with one fused projection for queries, keys and values."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.activation = nn.GELU()

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).split(width, dim=2)
        q, k, v = (y.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2) for y in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=True)
        x = x + self.out(y.transpose(1, 2).contiguous().view(batch, tokens, width))
        return x + self.down(self.activation(self.up(self.norm2(x))))  # type: ignore[no-any-return]


class PlainGPT(nn.Module):
    """A decoder as in nanoGPT."""

    def __init__(self, vocab: int, context: int, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(PlainBlock(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab, bias=False)
        self.tokens.weight = self.head.weight
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                residual = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * layers) if residual else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        h = self.tokens(x) + self.positions(torch.arange(x.shape[1]))
        for block in self.blocks:
            h = block(h)
        logits = self.head(self.norm(h))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), y.view(-1), ignore_index=-1)


def plain_batch(tokens: np.ndarray[Any, Any], batch: int, context: int) -> tuple[Tensor, Tensor]:
    """Random windows from the token file, as in nanoGPT."""
    starts = torch.randint(len(tokens) - context, (batch,))
    x = torch.stack([torch.from_numpy(tokens[i : i + context].astype(np.int64)) for i in starts])
    y = torch.stack([torch.from_numpy(tokens[i + 1 : i + 1 + context].astype(np.int64)) for i in starts])
    return x, y


def plain_turns() -> None:
    """The plain loop, waiting for its turn every ten steps."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = configuration({})
    tokens, steps, batch = data_of(config).train, config.optim.steps, config.optim.batch
    model = PlainGPT(
        config.data.vocab_size,
        config.model.context,
        config.model.layers,
        config.model.width,
        config.model.heads,
    )
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.95))
    x, y = plain_batch(tokens, batch, config.model.context)
    for step in range(steps):
        wait_for_turn(step)
        warmup = min(1.0, (step + 1) / 20)
        rate = 3e-3 * warmup * (0.1 + 0.45 * (1.0 + math.cos(math.pi * step / steps)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = model(x, y)
        x, y = plain_batch(tokens, batch, config.model.context)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 10 == 0:
            loss.item()
    wait_for_turn(steps)


def main() -> None:
    """Print one JSON line with the ratio ours / plain."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", choices=["ours", "plain"], help=argparse.SUPPRESS)
    parser.add_argument("--pairs", type=int, default=4)
    arguments = parser.parse_args()
    if arguments.child == "ours":
        take_turns(configuration({}))
    elif arguments.child == "plain":
        plain_turns()
    else:
        found = compare(__file__, "ours", "plain", arguments.pairs)
        print(
            json.dumps({"measure": "bench_step", **found, "reach": REACH, "stretch": STRETCH, "shape": SHAPE})
        )


if __name__ == "__main__":
    main()
