"""How positions are told apart, and which keys a query may see.

Legend: B batch, T tokens, D width, H heads, E head dim (turned channels), Q chosen queries.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Mask:
    """Which keys a query sees: all; `causal`: those that do not follow it; `window`: those nearer than it."""

    causal: bool
    window: int | None = None

    def matrix(self, tokens: int, device: torch.device) -> Tensor | None:
        """True where query (row) sees key (column), [T, T]; None where `causal` says it all."""
        if self.window is None or tokens <= self.window:
            return None
        return self.allowed(torch.arange(tokens, device=device), tokens)

    def allowed(self, queries_Q: Tensor, keys: int) -> Tensor:
        """The rows of the matrix for the chosen query positions, [Q, keys]."""
        distance_QT = queries_Q[:, None] - torch.arange(keys, device=queries_Q.device)
        allowed_QT = distance_QT >= 0 if self.causal else torch.ones_like(distance_QT, dtype=torch.bool)
        return allowed_QT if self.window is None else allowed_QT & (distance_QT.abs() < self.window)


def angles(context: int, width: int, theta: float) -> Tensor:
    """t·theta^(−2i/width) for position t and pair i, [context, ⌈width/2⌉], float64.

    On the CPU even while a model is built on the meta device: there, arange alone costs an import of sympy.
    """
    pair = torch.arange(0, width, 2, dtype=torch.float64, device="cpu")
    position = torch.arange(context, dtype=torch.float64, device="cpu")
    return position[:, None] * theta ** (-pair / width)


class Rope(nn.Module):
    """Rotary position embedding (Su et al. 2021, eq. 34), pairs of neighbouring channels as in LLaMA's code.

    Pair i of E turned channels turns by t·theta^(−2i/E) at position t. Complex products are 2–3 times as fast
    here as their spelled-out real form. Rotation is done in fp32 (or the wider type of its input).
    """

    turns: Tensor

    def __init__(self, context: int, channels: int, theta: float) -> None:
        """`channels`: how many of a head's are turned, the first ones (not all: Black et al. 2022)."""
        super().__init__()
        self.channels = channels
        angle = angles(context, channels, theta)
        turn = torch.polar(torch.ones_like(angle), angle).to(torch.complex64)
        self.register_buffer("turns", turn[:, None], persistent=False)

    def forward(self, x_BTHE: Tensor) -> Tensor:
        if self.channels == x_BTHE.shape[-1]:
            return self.turned(x_BTHE)
        turned, kept = x_BTHE[..., : self.channels], x_BTHE[..., self.channels :]
        return torch.cat((self.turned(turned), kept), dim=-1)

    def turned(self, x_BTHE: Tensor) -> Tensor:
        wide = x_BTHE.to(torch.promote_types(x_BTHE.dtype, torch.float32))
        pairs = torch.view_as_complex(wide.view(*wide.shape[:-1], -1, 2))
        turned = torch.view_as_real(pairs * self.turns[: x_BTHE.shape[1]])
        return turned.flatten(-2).to(x_BTHE.dtype)


def sinusoids(context: int, width: int) -> Tensor:
    """The table of Vaswani et al. 2017, section 3.5, [T, D]: sin in even channels, cos in odd ones."""
    angle = angles(context, width, theta=10000.0)
    table = torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)
    return table[:, :width].to(torch.get_default_dtype())
