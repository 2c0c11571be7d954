"""One block: attention, cross-attention where it has one, and MLP on the residual stream x, and their norms.

Legend: B batch, T tokens, S tokens of a source, D width. A placement says where norms N stand around one
sublayer f: x becomes after(x + write(f(read(x)))).
"""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

from ablate.config import Placement
from ablate.model.attention import CROSS, Attention
from ablate.model.mlp import MLP
from ablate.model.parts import Build
from ablate.model.position import Mask, Rope

Function = Callable[..., Tensor]


@dataclass(frozen=True)
class Places:
    """Where one placement has norms: the prefix of their names there, or None."""

    read: str | None = None
    write: str | None = None
    after: str | None = None


PLACES = {
    Placement.pre: Places(read=""),  # x + f(N(x)) (GPT-2)
    Placement.post: Places(after=""),  # N(x + f(x)) (Vaswani et al. 2017)
    Placement.peri: Places(read="", write="out_"),  # x + N(f(N(x))) (Kim et al. 2025)
    Placement.sublayer: Places(write=""),  # x + N(f(x)) (OLMo 2)
}


@dataclass(frozen=True)
class ResidualStep:
    """One sublayer on the stream: f and the norms around it."""

    f: Function
    read: Function
    write: Function
    after: Function

    def __call__(self, x: Tensor, *seen: Tensor) -> Tensor:
        return self.after(x + self.write(self.f(self.read(x), *seen)))

    def beside(self, other: "ResidualStep", x: Tensor) -> Tensor:
        """Both sublayers on the same x in one residual step (PaLM); a norm that they share is taken once."""
        y = self.read(x)
        z = y if other.read is self.read else other.read(x)
        return self.after(x + self.write(self.f(y)) + other.write(other.f(z)))


def same(x: Tensor) -> Tensor:
    return x


class Block(nn.Module):
    """Attention and MLP, one after the other or side by side, with the norms that the placement names.

    `label` names it in columns. With `cross`, it also attends to a source, between the two.
    """

    def __init__(self, build: Build, label: str, mask: Mask, rope: Rope | None, cross: bool = False) -> None:
        super().__init__()
        self.label = label
        self.attention = Attention(build, label, mask, rope)
        self.cross = Attention(build, f"{label}_cross", Mask(causal=False), None, CROSS) if cross else None
        self.mlp = MLP(build, label)
        self.parallel = build.config.parallel
        self.attention_step = self.step(build, self.attention, "norm1")
        self.cross_step = None if self.cross is None else self.step(build, self.cross, "cross_norm")
        self.mlp_step = self.step(build, self.mlp, "norm2")
        self.board = build.board
        self.probe = build.board.residual(label, build.config.width, build.tokens)

    def step(self, build: Build, f: nn.Module, name: str) -> ResidualStep:
        """One sublayer with its norms, which become parts of the block.

        Side by side, the second sublayer has no norm of its own after the sum, nor, with `shared_norm`, of
        what it reads.
        """
        places = PLACES[build.config.placement]
        second = self.parallel and f is self.mlp

        def place(prefix: str | None) -> Function:
            if prefix is None:
                return same
            self.add_module(prefix + name, build.norm(f"{self.label}_{prefix}{name}"))
            return self.get_submodule(prefix + name)

        shared = second and build.config.shared_norm
        read = self.attention_step.read if shared else place(places.read)
        write = place(places.write)
        return ResidualStep(f, read, write, same if second else place(places.after))

    def forward(self, x_BTD: Tensor, source_BSD: Tensor | None = None) -> Tensor:
        x_BTD = self.stream(x_BTD, source_BSD)
        if self.board.sampling:
            self.probe.record(x_BTD)
        return x_BTD

    def stream(self, x: Tensor, source: Tensor | None) -> Tensor:
        if self.parallel:
            return self.attention_step.beside(self.mlp_step, x)
        x = self.attention_step(x)
        if self.cross_step is not None:
            assert source is not None, "a block with cross-attention needs a source"
            x = self.cross_step(x, source)
        return self.mlp_step(x)
