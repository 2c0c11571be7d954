"""One optimiser step: forward and backward over the micro-batches, clip, update, and what was measured.

C columns.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ablate.config import Config
from ablate.data import Examples
from ablate.model import Transformer
from ablate.probe import GradientNorms, GradientProbe, UpdateProbe, parameter_facts
from ablate.train.clip import clip_divisor
from ablate.train.loss import example_loss
from ablate.train.optimizer import AdamW, decay_groups
from ablate.train.schedule import factor
from ablate.train.world import World

HOST_COLUMNS = ("train/unigram", "train/lr")  # known without the device; they stand after train/loss
_STEP_COLUMNS = (
    "train/loss",
    "grad/norm",
    "grad/norm_common",
    "grad/norm_bias",
    "grad/bias_share",
    "grad/clipped",
)


@dataclass(frozen=True)
class Measured:
    """What one step measured, in float64 on the device: at the parameters before the update, and of the
    update itself.
    """

    dense_C: Tensor
    probe_C: Tensor | None


class Stepper:
    """Model, optimiser and probes of one lane, and the step that ties them together.

    The model is where it stays: on its device, in its types.
    """

    def __init__(self, module: Transformer, config: Config, world: World | None = None) -> None:
        self.module = module
        self.optimizer = AdamW(module, decay_groups(parameter_facts(module), config.optim), config.optim)
        self._config = config
        self._world = world or World()
        self._parameters = list(module.parameters())
        self.device = self._parameters[0].device
        self._gradients = GradientProbe(module)
        self._updates = UpdateProbe(module)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of `Measured.dense_C`."""
        probe = self._config.probe
        outputs = self.module.board.columns if probe.outputs else ()
        gradients = self._gradients.columns if probe.gradients else ()
        return (*_STEP_COLUMNS, *outputs, *gradients)

    @property
    def probe_columns(self) -> tuple[str, ...]:
        """Columns of `Measured.probe_C`; none when the cadence is off."""
        if not self._config.probe.every:
            return ()
        return (*self.module.board.sample_columns, *self._updates.columns)

    def learning_rate(self, step: int) -> float:
        """The learning rate of update `step`."""
        return self._config.optim.lr * factor(self._config.optim, step)

    def step(self, step: int, examples: Examples) -> Measured:
        """Update `step` on its global batch of examples. Never waits for the device."""
        every = self._config.probe.every
        sample = every > 0 and step % every == 0
        self.module.board.begin(sample)
        loss = self._backward(examples)
        norms = self._gradients.measure()
        divisor = clip_divisor(norms, self._config.optim)
        if sample:
            self._updates.before()
        self.optimizer.step(factor(self._config.optim, step), divisor)
        probe_C = None
        if sample:
            probe_C = torch.cat([self.module.board.sample_values(), self._updates.after()])
        for parameter in self._parameters:
            parameter.grad = None
        return Measured(self._dense(loss, norms, divisor), probe_C)

    def _backward(self, examples: Examples) -> Tensor:
        """Gradients of the objective over this rank's examples; returns the mean cross entropy, 0-D."""
        optim = self._config.optim
        targets = examples.targets_BM.size
        total: Tensor | None = None
        for part in self._world.rows(examples).split(optim.accumulation):
            loss = example_loss(self.module, part, optim.z_loss)
            (loss.objective / targets).backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
            total = loss.cross_entropy if total is None else total + loss.cross_entropy
        assert total is not None
        return total / targets

    def _dense(self, loss: Tensor, norms: GradientNorms, divisor: Tensor | None) -> Tensor:
        loss = loss.double()
        clipped = torch.zeros_like(loss) if divisor is None else (divisor > 1).double()
        single = torch.stack([loss, norms.total, norms.common, norms.bias, norms.bias_share, clipped])
        probe = self._config.probe
        outputs = [self.module.board.values()] if probe.outputs else []
        gradients = [norms.per_site] if probe.gradients else []
        return torch.cat([single, *outputs, *gradients])
