"""Multi-head attention with grouped keys and values, of a stack's tokens to each other or to a source.

Legend: B batch, T tokens, S tokens that are attended to (S = T without a source), D width, H query heads,
K key/value heads, E head dim, C channels of all heads, Q sampled queries.
"""

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from ablate.config import QkNormOver, Site
from ablate.model.parts import Build
from ablate.model.position import Mask, Rope
from ablate.probe import Tokens
from ablate.probe.meters import sampled_queries


@dataclass(frozen=True)
class Sites:
    """Where the biases of one attention's linears belong."""

    q: Site
    k: Site
    v: Site
    o: Site


SELF = Sites(Site.q, Site.k, Site.v, Site.o)
CROSS = Sites(Site.cross_q, Site.cross_k, Site.cross_v, Site.cross_o)


class Attention(nn.Module):
    """softmax(q·k/√E) v, H/K query heads to a key head; q and k may be normalised, then rotated.

    Keys and values are of the tokens themselves or, with `sites` CROSS, of a source. `label` names it in
    columns.
    """

    def __init__(self, build: Build, label: str, mask: Mask, rope: Rope | None, sites: Sites = SELF) -> None:
        super().__init__()
        config = build.config
        read = build.over(Tokens.source) if sites is CROSS else build
        heads, kv_heads = config.heads * config.head_dim, config.kv_heads * config.head_dim
        self.head_dim = config.head_dim
        self.grouped = config.kv_heads != config.heads
        self.norm_over_all = config.qk_norm_over is QkNormOver.all
        self.q = build.linear(sites.q, f"{label}_q", config.width, heads)
        self.k = read.linear(sites.k, f"{label}_k", config.width, kv_heads)
        self.v = read.linear(sites.v, f"{label}_v", config.width, kv_heads)
        self.o = build.linear(sites.o, f"{label}_o", heads, config.width)
        self.q_norm = build.qk_norm(f"{label}_q_norm", config.heads)
        self.k_norm = build.qk_norm(f"{label}_k_norm", config.kv_heads)
        self.rope = rope if rope is not None else nn.Identity()
        self.mask = mask
        self.board = build.board
        self.probe = build.board.attention(label)

    def forward(self, x_BTD: Tensor, source_BSD: Tensor | None = None) -> Tensor:
        x_BTD = self.q.cast(x_BTD)
        source_BSD = x_BTD if source_BSD is None else self.k.cast(source_BSD)
        q_BHTE = self.rope(self.heads(self.q(x_BTD), self.q_norm)).transpose(1, 2)
        k_BKSE = self.rope(self.heads(self.k(source_BSD), self.k_norm)).transpose(1, 2)
        v_BKSE = self.split(self.v(source_BSD)).transpose(1, 2)
        if self.board.sampling:
            self.sample(q_BHTE, k_BKSE)
        matrix = self.mask.matrix(x_BTD.shape[1], x_BTD.device)
        causal = matrix is None and self.mask.causal
        y_BHTE = scaled_dot_product_attention(
            q_BHTE, k_BKSE, v_BKSE, attn_mask=matrix, is_causal=causal, enable_gqa=self.grouped
        )
        return self.o(y_BHTE.transpose(1, 2).flatten(2))

    def heads(self, x_BTC: Tensor, norm: nn.Module) -> Tensor:
        """Normalised queries or keys, split into heads."""
        if self.norm_over_all:
            return self.split(norm(x_BTC))
        normed: Tensor = norm(self.split(x_BTC))
        return normed

    def split(self, x_BTC: Tensor) -> Tensor:
        return x_BTC.view(*x_BTC.shape[:2], -1, self.head_dim)

    def sample(self, q_BHTE: Tensor, k_BKSE: Tensor) -> None:
        positions_Q = sampled_queries(q_BHTE.shape[2], self.probe.queries, q_BHTE.device)
        allowed_QS = self.mask.allowed(positions_Q, k_BKSE.shape[2])
        self.probe.record(q_BHTE[:, :, positions_Q], k_BKSE, allowed_QS)
