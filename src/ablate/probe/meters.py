"""Accumulators and the probes that fill them inside the (compiled) forward pass.

Legend: B batch, T tokens (of an attention: keys), D width, H query heads, K key/value heads, E head dim,
V vocabulary, Q sampled queries, C output columns of a linear, L lanes. Every accumulator is a float64 buffer
of shape [L], a kept bias [L, C]; there is one lane.
"""

import math
from enum import StrEnum

import torch
from torch import Tensor, nn

TINY = torch.finfo(torch.float32).tiny


class Reduction(StrEnum):
    """How an accumulator combines micro-batches, ranks and time."""

    sum = "sum"
    max = "max"
    last = "last"


class Meter(nn.Module):
    """One accumulator with its reduction, in float64 so that squares neither overflow nor lose digits.

    A buffer of its own, and not a slot in one large buffer, so that equal blocks share one compiled graph.
    """

    value: Tensor

    def __init__(self, reduction: Reduction, *shape: int) -> None:
        super().__init__()
        self.reduction = reduction
        self.register_buffer("value", torch.zeros(1, *shape, dtype=torch.float64), persistent=False)

    def add(self, amount: Tensor | int) -> None:
        self.value.add_(amount)

    def raise_to(self, amount: Tensor) -> None:
        self.value.copy_(torch.maximum(self.value, amount))

    def keep(self, amount: Tensor) -> None:
        self.value.copy_(amount)


def square_sum(x: Tensor) -> Tensor:
    """Σx² over all elements, 0-D in fp32 or wider. Infinite once it leaves the range of that type."""
    plain = x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)
    if plain and not torch.compiler.is_compiling():
        flat = x.reshape(-1)
        return torch.dot(flat, flat)  # BLAS, in two thirds of the time
    wide = torch.promote_types(x.dtype, torch.float32)
    norm: Tensor = torch.linalg.vector_norm(x, dtype=wide)
    return norm.double().square()


def product_square_sum(x: Tensor, weight_CD: Tensor, bias_C: Tensor | None) -> Tensor:
    """Σ(xWᵀ + b)² over all elements, 0-D float64, without reading the product: with X the rows of x,

    ⟨XᵀX, WᵀW⟩ + 2 ⟨Xᵀ1, Wᵀb⟩ + n ‖b‖². Much less work than reading n·C values when C ≫ D.
    """
    wide = torch.promote_types(x.dtype, torch.float32)
    x_ND = x.detach().to(wide).flatten(0, -2)
    weight_CD = weight_CD.detach().to(wide)
    total = ((x_ND.mT @ x_ND) * (weight_CD.mT @ weight_CD)).sum(dtype=torch.float64)
    if bias_C is not None:
        bias_C = bias_C.detach().to(wide)
        total += 2 * (x_ND.sum(0) @ (weight_CD.mT @ bias_C)) + len(x_ND) * bias_C.square().sum()
    return total.clamp(min=0)


class LinearProbe(nn.Module):
    """Σ‖y‖² of a linear's output y = Wx + b and, for a linear with a bias, the parts of the sum.

    Wx is taken as y − b, so its relative error is that of y times |y|/|Wx|.
    """

    def __init__(self, label: str, columns: int, has_bias: bool) -> None:
        super().__init__()
        self.label = label
        self.has_bias = has_bias
        self.squares = Meter(Reduction.sum)
        if has_bias:
            self.product_squares = Meter(Reduction.sum)
            self.dots = Meter(Reduction.sum)
            self.bias = Meter(Reduction.last, columns)

    def record(self, y: Tensor) -> None:
        """Every step: Σ‖y‖²."""
        self.squares.add(square_sum(y.detach()))

    def record_product(self, x: Tensor, weight_CD: Tensor, bias_C: Tensor | None) -> None:
        """The same from the operands, for a linear much wider than its input (the head)."""
        self.squares.add(product_square_sum(x, weight_CD, bias_C))

    def decompose(self, y: Tensor, added_C: Tensor, bias_C: Tensor) -> None:
        """On cadence: Σ‖Wx‖² and ⟨Wx, 1b⟩ with b as it was added; b itself, exactly, before it is updated."""
        wide = torch.promote_types(y.dtype, torch.float32)
        added_C = added_C.detach().to(wide)
        product = y.detach().to(wide) - added_C
        self.product_squares.add(square_sum(product))
        self.dots.add((product @ added_C).sum(dtype=torch.float64))
        self.bias.keep(bias_C.detach())


def sampled_queries(tokens: int, queries: int, device: torch.device) -> Tensor:
    """Positions of at most `queries` queries, evenly spaced over `tokens`, the last one included."""
    count = min(queries, tokens)
    return torch.arange(1, count + 1, device=device) * tokens // count - 1


class AttentionProbe(nn.Module):
    """Largest attention logit q·k/√E over all heads and the sampled queries; only allowed keys count."""

    def __init__(self, label: str, queries: int) -> None:
        super().__init__()
        self.label = label
        self.queries = queries
        self.max_logit = Meter(Reduction.max)

    def record(self, q_BHQE: Tensor, k_BKTE: Tensor, allowed_QT: Tensor) -> None:
        """`q_BHQE`: the sampled queries after qk-norm and rotation; `allowed_QT`: True where a key counts."""
        batch, kv_heads, _, head_dim = k_BKTE.shape
        wide = torch.promote_types(k_BKTE.dtype, torch.float32)
        q_BKGE = q_BHQE.detach().to(wide).reshape(batch, kv_heads, -1, head_dim)
        logits_BKGT = q_BKGE @ k_BKTE.detach().to(wide).transpose(-2, -1)
        logits_QT = logits_BKGT.reshape(-1, *allowed_QT.shape).amax(dim=0)
        largest = logits_QT.masked_fill(~allowed_QT, -torch.inf).amax()
        self.max_logit.raise_to(largest / math.sqrt(head_dim))


class ResidualProbe(nn.Module):
    """Residual stream x after a block: Σx², Σx⁴ and max |x| over all elements.

    Powers are taken of x / max |x|, so a stream that fp32 can hold is measured without overflow.
    """

    def __init__(self, label: str, width: int) -> None:
        super().__init__()
        self.label = label
        self.width = width
        self.squares = Meter(Reduction.sum)
        self.fourths = Meter(Reduction.sum)
        self.largest = Meter(Reduction.max)

    def record(self, x_BTD: Tensor) -> None:
        x = x_BTD.detach()
        largest = x.abs().amax()
        squared = (x / largest.clamp(min=TINY)).square()
        scale = largest.double().square()
        self.squares.add(squared.sum() * scale)
        self.fourths.add(squared.square().sum() * scale.square())
        self.largest.raise_to(largest)


class LogitProbe(nn.Module):
    """Output logits: the largest value and Σ log Z over predicted tokens, log Z = logsumexp over V."""

    def __init__(self) -> None:
        super().__init__()
        self.largest = Meter(Reduction.max)
        self.log_z = Meter(Reduction.sum)

    def record(self, logits_BTV: Tensor) -> None:
        logits = logits_BTV.detach()
        self.largest.raise_to(logits.amax())
        self.log_z.add(logits.logsumexp(-1).sum(dtype=torch.float64))
