"""Multi-head attention with grouped keys and values.

Legend: B batch, T tokens, D width, H query heads, K key/value heads, E head dim, Q sampled queries.
"""

from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from ablate.config import Site
from ablate.model.parts import Build
from ablate.model.position import CausalMask, Rope
from ablate.probe.meters import sampled_queries


class Attention(nn.Module):
    """softmax(q·k/√E) v, H/K query heads to a key head; q and k may be normalised per head, then rotated."""

    def __init__(self, build: Build, block: str, mask: CausalMask, rope: Rope | None) -> None:
        super().__init__()
        config = build.config
        heads, kv_heads = config.heads * config.head_dim, config.kv_heads * config.head_dim
        self.head_dim = config.head_dim
        self.grouped = config.kv_heads != config.heads
        self.q = build.linear(Site.q, f"{block}_q", config.width, heads)
        self.k = build.linear(Site.k, f"{block}_k", config.width, kv_heads)
        self.v = build.linear(Site.v, f"{block}_v", config.width, kv_heads)
        self.o = build.linear(Site.o, f"{block}_o", heads, config.width)
        self.q_norm = build.qk_norm(f"{block}_q_norm")
        self.k_norm = build.qk_norm(f"{block}_k_norm")
        self.rope = rope if rope is not None else nn.Identity()
        self.mask = mask
        self.board = build.board
        self.probe = build.board.attention(block)

    def forward(self, x_BTD: Tensor) -> Tensor:
        x_BTD = self.q.cast(x_BTD)
        q_BHTE = self.rope(self.q_norm(self.split(self.q(x_BTD)))).transpose(1, 2)
        k_BKTE = self.rope(self.k_norm(self.split(self.k(x_BTD)))).transpose(1, 2)
        v_BKTE = self.split(self.v(x_BTD)).transpose(1, 2)
        if self.board.sampling:
            self.sample(q_BHTE, k_BKTE)
        matrix = self.mask.matrix(x_BTD.shape[1], x_BTD.device)
        causal = matrix is None and self.mask.causal
        y_BHTE = scaled_dot_product_attention(
            q_BHTE, k_BKTE, v_BKTE, attn_mask=matrix, is_causal=causal, enable_gqa=self.grouped
        )
        return self.o(y_BHTE.transpose(1, 2).flatten(2))

    def split(self, x_BTC: Tensor) -> Tensor:
        return x_BTC.view(*x_BTC.shape[:2], -1, self.head_dim)

    def sample(self, q_BHTE: Tensor, k_BKTE: Tensor) -> None:
        tokens = q_BHTE.shape[2]
        positions_Q = sampled_queries(tokens, self.probe.queries, q_BHTE.device)
        allowed_QT = self.mask.allowed(positions_Q, tokens)
        self.probe.record(q_BHTE[:, :, positions_Q], k_BKTE, allowed_QT)
