"""The MLP of a block. Legend: B batch, T tokens, D width."""

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn.functional import gelu, relu, silu

from ablate.config import Activation, Site
from ablate.model.parts import Build


def gelu_tanh(x: Tensor) -> Tensor:
    return gelu(x, approximate="tanh")


ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    Activation.relu: relu,
    Activation.gelu: gelu,
    Activation.gelu_tanh: gelu_tanh,
    Activation.swiglu: silu,
}


class MLP(nn.Module):
    """down(act(up(x))); swiglu: down(silu(gate(x)) · up(x)) (Shazeer 2020)."""

    def __init__(self, build: Build, block: str) -> None:
        super().__init__()
        config = build.config
        self.up = build.linear(Site.up, f"{block}_up", config.width, config.ffn)
        self.gate = None
        if config.activation is Activation.swiglu:
            self.gate = build.linear(Site.gate, f"{block}_gate", config.width, config.ffn)
        self.down = build.linear(Site.down, f"{block}_down", config.ffn, config.width)
        self.activation = ACTIVATIONS[config.activation]

    def forward(self, x_BTD: Tensor) -> Tensor:
        x_BTD = self.up.cast(x_BTD)
        if self.gate is None:
            hidden = self.activation(self.up(x_BTD))
        else:
            hidden = self.activation(self.gate(x_BTD)) * self.up(x_BTD)
        return self.down(hidden)
