"""The parts that own parameters: linear, embedding and norms, and what they are all built from.

Legend: B batch, T tokens, D width, C output columns, V rows of a table. `…` any leading dimensions.

Precision. Parameters, the residual stream and norms keep the type of the parameters (fp32). A linear casts
its input, weight and bias to its compute type and answers in it; adding that to the stream widens it again.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, layer_norm, linear, rms_norm

from ablate.config import ModelConfig, Norm, QkNormOver, Site
from ablate.probe import Board, ParameterKind, Part, Tokens

WIDE = 8  # from this ratio of outputs to inputs on, ‖y‖ is cheaper from x and W than from y


@dataclass(frozen=True)
class Build:
    """What every part of a model is built from: the configuration, the sites with a bias, the board.

    `tokens`: those that the parts see.
    """

    config: ModelConfig
    biases: frozenset[Site]
    board: Board
    tokens: Tokens = Tokens.inputs

    def over(self, tokens: Tokens) -> "Build":
        """The same for parts that see other tokens."""
        return replace(self, tokens=tokens)

    def linear(self, site: Site, label: str, fan_in: int, fan_out: int) -> "Linear":
        return Linear(site, label, fan_in, fan_out, site in self.biases, self)

    def norm(self, label: str) -> nn.Module:
        """A norm over the width, of the kind of the model (none: the identity)."""
        if self.config.norm is Norm.none:
            return nn.Identity()
        return self._norm(self.config.norm, Site.norm, label, self.config.width)

    def qk_norm(self, label: str, heads: int) -> nn.Module:
        """A norm over one head, its weights shared by all, or over all `heads`; without qk_norm the identity.

        Of the kind of the model; RMSNorm where the model has none, since qk_norm asks for a norm.
        """
        if not self.config.qk_norm:
            return nn.Identity()
        kind = Norm.rmsnorm if self.config.norm is Norm.none else self.config.norm
        spanned = heads if self.config.qk_norm_over is QkNormOver.all else 1
        return self._norm(kind, Site.qk_norm, label, spanned * self.config.head_dim)

    def _norm(self, kind: Norm, site: Site, label: str, width: int) -> "NormPart":
        part = LayerNorm if kind is Norm.layernorm else RMSNorm
        return part(site, label, width, self.config.eps, site in self.biases)


class Linear(Part):
    """y = x Wᵀ + b; tells its board the size of y."""

    compute_dtype: torch.dtype | None = None  # None: that of the input

    def __init__(self, site: Site, label: str, fan_in: int, fan_out: int, bias: bool, build: Build) -> None:
        super().__init__(label, site, ParameterKind.matrix)
        self.weight = nn.Parameter(torch.empty(fan_out, fan_in))
        self.register_parameter("bias", nn.Parameter(torch.empty(fan_out)) if bias else None)
        self.wide = fan_out >= WIDE * fan_in
        self.board = build.board
        self.probe = build.board.linear(label, fan_out, bias, build.tokens)

    def cast(self, x: Tensor) -> Tensor:
        """x in the compute type: to be done once where several linears read the same x."""
        return x if self.compute_dtype is None else x.to(self.compute_dtype)

    def forward(self, x: Tensor) -> Tensor:
        x = self.cast(x)
        bias = None if self.bias is None else self.bias.to(x.dtype)
        weight = self.weight.to(x.dtype)
        y = linear(x, weight, bias)
        if self.board.recording and self.board.outputs:
            if self.wide:
                self.probe.record_product(x, weight, bias)
            else:
                self.probe.record(y)
        if self.board.sampling and self.bias is not None and bias is not None:
            self.probe.decompose(y, bias, self.bias)
        return y


class Embedding(Part):
    """A table of vectors, looked up by index."""

    def __init__(self, label: str, rows: int, width: int) -> None:
        super().__init__(label, None, ParameterKind.embedding)
        self.weight = nn.Parameter(torch.empty(rows, width))
        self.register_parameter("bias", None)

    def forward(self, index_BT: Tensor) -> Tensor:
        return embedding(index_BT, self.weight)


class NormPart(Part):
    """A norm over the last dimension with a gain and, where its site has a bias, a β.

    Works in the type of its parameters and answers in the type of its input.
    """

    norm: Norm

    def __init__(self, site: Site, label: str, width: int, eps: float, bias: bool) -> None:
        super().__init__(label, site, ParameterKind.gain)
        self.weight = nn.Parameter(torch.empty(width))
        self.register_parameter("bias", nn.Parameter(torch.empty(width)) if bias else None)
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return self.normalise(x.to(self.weight.dtype)).to(x.dtype)

    def normalise(self, x: Tensor) -> Tensor:
        raise NotImplementedError


class LayerNorm(NormPart):
    """(x − mean x) / √(var x + eps) · gain + β (Ba et al. 2016)."""

    norm = Norm.layernorm

    def normalise(self, x: Tensor) -> Tensor:
        return layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


class RMSNorm(NormPart):
    """x / √(mean x² + eps) · gain + β (Zhang and Sennrich 2019; they have no β)."""

    norm = Norm.rmsnorm

    def normalise(self, x: Tensor) -> Tensor:
        y = rms_norm(x, self.weight.shape, self.weight, self.eps)
        return y if self.bias is None else y + self.bias
