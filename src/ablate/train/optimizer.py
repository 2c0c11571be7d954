"""AdamW with declared decay groups, its state kept by parameter name.

The update is torch's own fused kernel, through the functional form: the `Optimizer` class would import
torch's compiler in every process (as long as importing torch itself), and would hold the state by index.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

from ablate.config import Decay, Decayed, OptimConfig
from ablate.probe import ParameterFact, ParameterKind


@dataclass(frozen=True)
class DecayGroups:
    """Names of the parameters with and without weight decay, in the order of the model."""

    decayed: tuple[str, ...]
    exempt: tuple[str, ...]

    def to_dict(self) -> dict[str, list[str]]:
        """Plain lists, for the record."""
        return {"decayed": list(self.decayed), "exempt": list(self.exempt)}


def decay_groups(facts: Iterable[ParameterFact], optim: OptimConfig) -> DecayGroups:
    """Which parameters decay.

    `matrices`: matrices, and embeddings if `decay_embeddings`; biases and gains never. `all`: biases and
    gains too. A tied head is the embedding.
    """
    chosen = {ParameterKind.matrix}
    if optim.decayed is Decayed.all:
        chosen |= {ParameterKind.bias, ParameterKind.gain}
    if optim.decay_embeddings:
        chosen.add(ParameterKind.embedding)
    facts = tuple(facts)
    return DecayGroups(
        decayed=tuple(fact.name for fact in facts if fact.kind in chosen),
        exempt=tuple(fact.name for fact in facts if fact.kind not in chosen),
    )


def group_decay(optim: OptimConfig) -> float:
    """The weight decay to hand to an update that multiplies it by the learning rate.

    Coupled: λ itself, θ ← θ − sη(D + λθ), with schedule factor s, peak rate η and Adam direction D.
    Independent (Wortsman et al. 2023, section 3.2.2): θ ← θ − s(ηD + λθ), which is λ / η.
    """
    if optim.decay is Decay.independent:
        return optim.weight_decay / optim.lr
    return optim.weight_decay


class AdamW:
    """AdamW (Loshchilov & Hutter 2019, algorithm 2) over the parameters of one lane.

    `lr` is a 0-D float64 CPU tensor: a schedule fills it in place, and the kernel reads it on the host
    without waiting for a device. First and second moments are fp32 like the parameters.
    """

    def __init__(self, module: nn.Module, groups: DecayGroups, optim: OptimConfig) -> None:
        self._parameters = dict(module.named_parameters())
        assert set(self._parameters) == {*groups.decayed, *groups.exempt}
        self._optim = optim
        self.groups = groups
        self.lr = torch.zeros((), dtype=torch.float64)
        self._mean = {name: torch.zeros_like(p) for name, p in self._parameters.items()}
        self._square = {name: torch.zeros_like(p) for name, p in self._parameters.items()}
        self._steps = {
            name: torch.zeros((), dtype=torch.float32, device=p.device)
            for name, p in self._parameters.items()
        }

    @torch.no_grad()
    def step(self, factor: float, gradient_scale: Tensor | None = None) -> None:
        """One update at `factor` times the peak learning rate.

        `gradient_scale` (0-D fp32 on the parameters' device) divides every gradient inside the kernel; the
        gradients are left divided.
        """
        self.lr.fill_(self._optim.lr * factor)
        decay = group_decay(self._optim)
        self._update(self.groups.decayed, decay, gradient_scale)
        self._update(self.groups.exempt, 0.0, gradient_scale)

    def _update(self, names: tuple[str, ...], decay: float, gradient_scale: Tensor | None) -> None:
        if not names:
            return
        parameters: list[Tensor] = [self._parameters[name] for name in names]
        gradients = [p.grad for p in parameters if p.grad is not None]
        assert len(gradients) == len(parameters), "a parameter has no gradient"
        adamw(
            parameters,
            gradients,
            [self._mean[name] for name in names],
            [self._square[name] for name in names],
            [],
            [self._steps[name] for name in names],
            fused=True,
            foreach=False,
            grad_scale=gradient_scale,
            amsgrad=False,
            beta1=self._optim.beta1,
            beta2=self._optim.beta2,
            lr=self.lr,
            weight_decay=decay,
            eps=self._optim.eps,
            maximize=False,
        )

    def state(self) -> dict[str, Tensor]:
        """The moments as `mean/<parameter>` and `square/<parameter>` (not copies)."""
        return {f"mean/{name}": value for name, value in self._mean.items()} | {
            f"square/{name}": value for name, value in self._square.items()
        }

    @torch.no_grad()
    def load(self, state: Mapping[str, Tensor], step: int) -> None:
        """Continue after `step` updates with moments as given by `state()`."""
        for name, value in self.state().items():
            value.copy_(state[name])
        for counter in self._steps.values():
            counter.fill_(step)
