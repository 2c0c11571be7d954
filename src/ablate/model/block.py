"""One block: attention f and MLP g on the residual stream x, and where the norms N stand.

Legend: B batch, T tokens, D width. A placement is one small subclass whose whole difference is `stream`.
"""

from collections.abc import Callable
from typing import ClassVar

from torch import Tensor, nn

from ablate.config import Placement
from ablate.model.attention import Attention
from ablate.model.mlp import MLP
from ablate.model.parts import Build
from ablate.model.position import CausalMask, Rope


class Block(nn.Module):
    """Attention and MLP with the norms that its placement names."""

    norms: ClassVar[tuple[str, ...]] = ("norm1", "norm2")
    attention: Callable[[Tensor], Tensor]
    mlp: Callable[[Tensor], Tensor]
    norm1: Callable[[Tensor], Tensor]
    norm2: Callable[[Tensor], Tensor]
    out_norm1: Callable[[Tensor], Tensor]
    out_norm2: Callable[[Tensor], Tensor]

    def __init__(self, build: Build, index: int, mask: CausalMask, rope: Rope | None) -> None:
        super().__init__()
        name = f"b{index:02d}"
        self.attention = Attention(build, name, mask, rope)
        self.mlp = MLP(build, name)
        for norm in self.norms:
            self.add_module(norm, build.norm(f"{name}_{norm}"))
        self.board = build.board
        self.probe = build.board.residual(name, build.config.width)

    def forward(self, x_BTD: Tensor) -> Tensor:
        x_BTD = self.stream(x_BTD)
        if self.board.sampling:
            self.probe.record(x_BTD)
        return x_BTD

    def stream(self, x: Tensor) -> Tensor:
        raise NotImplementedError


class Pre(Block):
    """x + f(N(x)), then x + g(N(x)) (GPT-2)."""

    def stream(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Post(Block):
    """N(x + f(x)), then N(x + g(x)) (Vaswani et al. 2017)."""

    def stream(self, x: Tensor) -> Tensor:
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.mlp(x))


class Peri(Block):
    """x + N(f(N(x))), then x + N(g(N(x))) (Kim et al. 2025)."""

    norms = ("norm1", "out_norm1", "norm2", "out_norm2")

    def stream(self, x: Tensor) -> Tensor:
        x = x + self.out_norm1(self.attention(self.norm1(x)))
        return x + self.out_norm2(self.mlp(self.norm2(x)))


class Sublayer(Block):
    """x + N(f(x)), then x + N(g(x)) (OLMo 2)."""

    def stream(self, x: Tensor) -> Tensor:
        x = x + self.norm1(self.attention(x))
        return x + self.norm2(self.mlp(x))


class ParallelPre(Block):
    """x + f(N(x)) + g(N(x)) with one shared norm (PaLM)."""

    norms = ("norm1",)

    def stream(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        return x + self.attention(y) + self.mlp(y)


class ParallelPost(Block):
    """N(x + f(x) + g(x))."""

    norms = ("norm1",)

    def stream(self, x: Tensor) -> Tensor:
        return self.norm1(x + self.attention(x) + self.mlp(x))


class ParallelPeri(Block):
    """x + N(f(N(x))) + N(g(N(x))): the inner norm is shared as in PaLM, the outer ones are not."""

    norms = ("norm1", "out_norm1", "out_norm2")

    def stream(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        return x + self.out_norm1(self.attention(y)) + self.out_norm2(self.mlp(y))


class ParallelSublayer(Block):
    """x + N(f(x)) + N(g(x))."""

    def stream(self, x: Tensor) -> Tensor:
        return x + self.norm1(self.attention(x)) + self.norm2(self.mlp(x))


BLOCKS: dict[tuple[Placement, bool], type[Block]] = {
    (Placement.pre, False): Pre,
    (Placement.post, False): Post,
    (Placement.peri, False): Peri,
    (Placement.sublayer, False): Sublayer,
    (Placement.pre, True): ParallelPre,
    (Placement.post, True): ParallelPost,
    (Placement.peri, True): ParallelPeri,
    (Placement.sublayer, True): ParallelSublayer,
}
