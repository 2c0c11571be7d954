"""The board: all accumulators of one model, when they are written, and how they become columns.

Definitions (y a linear's output, b its bias, n the tokens that this linear saw (see `Tokens`), C output
columns, x the residual stream):
- `out/<label>`              ‖y‖_F / √n                                     every step
- `wx/<label>`               ‖Wx‖_F / √n                                    on cadence, as all that follow
- `bias/<label>_norm`        ‖b‖₂
- `bias/<label>_cos`         ⟨Wx, 1b⟩ / (‖Wx‖_F · √n · ‖b‖); 0 for a zero bias
- `bias/<label>_cancellable` C·mean(b)² / ‖b‖², the share of ‖b‖² in the mean direction; 0 for a zero bias
- `attn/<block>_max_logit`   largest q·k/√E over heads and sampled queries, allowed keys only
- `resid/<block>_rms, _max, _kurtosis`   √E[x²], max |x|, E[x⁴] / E[x²]² over all elements of a block's output
- `logit/max, logit/logz`    largest output logit; mean log Z over the predicted tokens
Not-a-number and infinity pass through.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import cached_property

import torch
from torch import Tensor, nn

from ablate.probe.meters import AttentionProbe, LinearProbe, LogitProbe, Meter, Reduction, ResidualProbe


class Tokens(StrEnum):
    """Which tokens of a batch pass through a part of the model."""

    inputs = "inputs"  # what the last stack reads
    source = "source"  # what the encoder of an encoder_decoder reads
    targets = "targets"  # where something is predicted


def gather(meters: Iterable[Meter]) -> Tensor:
    """The accumulators' values as one 1-D float64 tensor on their device."""
    return torch.cat([meter.value for meter in meters])


def zero_where(empty: Tensor, value: Tensor) -> Tensor:
    return torch.where(empty, torch.zeros_like(value), value)


class Board:
    """Creates the probes of one model, switches them, and finishes their values without a host sync.

    `outputs`: is the output L2 of every linear recorded in every step; `queries`: query positions
    sampled for the largest attention logit. Nothing is recorded before the first `begin`.

    The two flags are plain booleans: a compiled block guards on them, one graph for each combination.
    """

    def __init__(self, outputs: bool, queries: int) -> None:
        self.outputs = outputs
        self.queries = queries
        self.recording = False
        self.sampling = False
        self.tokens = {tokens: Meter(Reduction.sum) for tokens in Tokens}
        self.logits = LogitProbe()
        self._linears: list[LinearProbe] = []
        self._attentions: list[AttentionProbe] = []
        self._residuals: list[ResidualProbe] = []
        self._seen: dict[str, Tokens] = {}

    @property
    def meters(self) -> tuple[nn.Module, ...]:
        """What belongs to no part of the model: the model itself must hold it (so that it moves along)."""
        return (*self.tokens.values(), self.logits)

    def linear(self, label: str, columns: int, has_bias: bool, tokens: Tokens) -> LinearProbe:
        """A new probe for one linear; the module that calls it must hold it (so that it moves along)."""
        self._linears.append(LinearProbe(label, columns, has_bias))
        self._seen[label] = tokens
        return self._linears[-1]

    def attention(self, block: str) -> AttentionProbe:
        self._attentions.append(AttentionProbe(block, self.queries))
        return self._attentions[-1]

    def residual(self, block: str, width: int, tokens: Tokens) -> ResidualProbe:
        self._residuals.append(ResidualProbe(block, width))
        self._seen[block] = tokens
        return self._residuals[-1]

    def begin(self, sample: bool) -> None:
        """Start a step: empty the accumulators; `sample`: record the costlier probes in this step too."""
        self.recording = True
        self.sampling = sample
        zeroed = [*self.tokens.values(), *(probe.squares for probe in self._linears)]
        if sample:
            zeroed += self._sampled[Reduction.sum]
            for meter in self._sampled[Reduction.max]:
                meter.value.fill_(-torch.inf)
        torch._foreach_zero_([meter.value for meter in zeroed])

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing is recorded inside (evaluation)."""
        before = self.recording, self.sampling
        self.recording = self.sampling = False
        try:
            yield
        finally:
            self.recording, self.sampling = before

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of `values`."""
        return tuple(f"out/{probe.label}" for probe in self._linears) if self.outputs else ()

    def values(self) -> Tensor:
        """The step's output L2 of every linear, 1-D float64 on the device."""
        if not self.outputs:
            return self.logits.log_z.value.new_zeros(0)
        return (gather(probe.squares for probe in self._linears) / self._tokens_of(self._linears)).sqrt()

    @property
    def sample_columns(self) -> tuple[str, ...]:
        """Names of `sample_values`."""
        biased = [probe.label for probe in self._linears if probe.has_bias]
        blocks = [probe.label for probe in self._residuals]
        return (
            *(f"attn/{probe.label}_max_logit" for probe in self._attentions),
            *(f"resid/{block}_rms" for block in blocks),
            *(f"resid/{block}_max" for block in blocks),
            *(f"resid/{block}_kurtosis" for block in blocks),
            "logit/max",
            "logit/logz",
            *(f"wx/{label}" for label in biased),
            *(f"bias/{label}_norm" for label in biased),
            *(f"bias/{label}_cos" for label in biased),
            *(f"bias/{label}_cancellable" for label in biased),
        )

    def sample_values(self) -> Tensor:
        """What the forward passes since `begin(sample=True)` showed, 1-D float64 on the device."""
        assert self.sampling, "this step was not begun with sample=True"
        return torch.cat(
            (
                gather(probe.max_logit for probe in self._attentions),
                *self._residual_values(),
                self.logits.largest.value,
                self.logits.log_z.value / self.tokens[Tokens.targets].value,
                *self._bias_values(),
            )
        )

    def _tokens_of(self, probes: Iterable[LinearProbe | ResidualProbe]) -> Tensor:
        """How many tokens each of the probes saw, 1-D float64."""
        return gather(self.tokens[self._seen[probe.label]] for probe in probes)

    def _residual_values(self) -> tuple[Tensor, Tensor, Tensor]:
        elements = self._tokens_of(self._residuals) * self._residuals[0].width
        squares = gather(probe.squares for probe in self._residuals) / elements
        fourths = gather(probe.fourths for probe in self._residuals) / elements
        largest = gather(probe.largest for probe in self._residuals)
        return squares.sqrt(), largest, fourths / squares.square()

    def _bias_values(self) -> tuple[Tensor, ...]:
        biased = [probe for probe in self._linears if probe.has_bias]
        if not biased:
            return ()
        tokens = self._tokens_of(biased)
        product = (gather(probe.product_squares for probe in biased) / tokens).sqrt()
        biases = [probe.bias.value for probe in biased]
        norm = torch.stack(torch._foreach_norm(biases))
        mean_norm = torch.stack([b_LC.mean().abs() * b_LC.shape[-1] ** 0.5 for b_LC in biases])
        cosine = gather(probe.dots for probe in biased) / tokens / (product * norm)
        share = (mean_norm / norm).square()
        return product, norm, zero_where(norm == 0, cosine), zero_where(norm == 0, share)

    @cached_property
    def _sampled(self) -> dict[Reduction, list[Meter]]:
        """The accumulators of the costlier probes by reduction; asked for once the model is complete."""
        probes = (self.logits, *self._linears, *self._attentions, *self._residuals)
        meters = [part for probe in probes for part in probe.modules() if isinstance(part, Meter)]
        return {kind: [meter for meter in meters if meter.reduction is kind] for kind in Reduction}
