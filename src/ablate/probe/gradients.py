"""Gradient norms before clipping, and the size of an update, per label.

A label groups a part's weight and bias (`b03_up`, `embed`, `b03_norm1`). Norms come from one foreach call;
squares and their sums are float64, so they neither overflow nor depend on the order of devices.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ablate.probe.parameters import ParameterKind, gradient_of, owned_parameters


class LabelSums:
    """The parameters of a model ordered weights first, biases last, and sums of squares over them."""

    def __init__(self, model: nn.Module) -> None:
        owned = owned_parameters(model)
        self.labels = tuple(dict.fromkeys(fact.label for fact, _ in owned))
        weights = [(fact, p) for fact, p in owned if fact.kind is not ParameterKind.bias]
        biases = [(fact, p) for fact, p in owned if fact.kind is ParameterKind.bias]
        self.parameters = [p for _, p in weights + biases]
        self.weights = len(weights)
        device = self.parameters[0].device
        position = {label: index for index, label in enumerate(self.labels)}
        self._index = torch.tensor([position[fact.label] for fact, _ in weights + biases], device=device)

    def squares(self, tensors: list[Tensor]) -> Tensor:
        """‖t‖² of each tensor, in the order of `parameters`; 1-D float64."""
        return torch.stack(torch._foreach_norm(tensors)).double().square()

    def by_label(self, squares: Tensor) -> Tensor:
        """Sums per label. A label has one weight and one bias at most: the sum has no order to depend on."""
        return squares.new_zeros(len(self.labels)).index_add_(0, self._index, squares)


@dataclass(frozen=True)
class GradientNorms:
    """L2 norms of one step's gradient before clipping (0-D float64 on the device; `per_site`: 1-D by label).

    `common`: all parameters but biases; `bias_share`: the biases' share of the squared norm.
    """

    total: Tensor
    common: Tensor
    bias: Tensor
    bias_share: Tensor
    per_site: Tensor


class GradientProbe:
    """Reads the gradients of `model` after backward. Build it once the model is on its device."""

    def __init__(self, model: nn.Module) -> None:
        self._sums = LabelSums(model)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of `GradientNorms.per_site`."""
        return tuple(f"grad/{label}" for label in self._sums.labels)

    def measure(self) -> GradientNorms:
        """The norms of the gradients as they stand, without a host sync."""
        squares = self._sums.squares([gradient_of(p) for p in self._sums.parameters])
        common = squares[: self._sums.weights].sum()
        bias = squares[self._sums.weights :].sum()
        total = common + bias
        per_site = self._sums.by_label(squares)
        return GradientNorms(total.sqrt(), common.sqrt(), bias.sqrt(), bias / total, per_site.sqrt())


class UpdateProbe:
    """‖θ_after − θ_before‖ / ‖θ_before‖ per label. Build it once the model is on its device.

    A label whose parameters are all zero before the update has ratio infinity (0/0: not a number).
    """

    def __init__(self, model: nn.Module) -> None:
        self._sums = LabelSums(model)
        self._before: list[Tensor] = []

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of what `after` returns."""
        return tuple(f"update/{label}" for label in self._sums.labels)

    def before(self) -> None:
        """Remember the parameters (right before the optimiser's step)."""
        self._before = [p.detach().clone() for p in self._sums.parameters]

    def after(self) -> Tensor:
        """The ratios, 1-D float64 on the device; forgets what `before` remembered."""
        assert self._before, "after() without before()"
        scale = self._sums.by_label(self._sums.squares(self._before))
        torch._foreach_sub_(self._before, [p.detach() for p in self._sums.parameters])
        change = self._sums.by_label(self._sums.squares(self._before))
        self._before = []
        return (change / scale).sqrt()
