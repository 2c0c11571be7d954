"""Clipping by the global gradient norm, without asking the device for the norm."""

import torch
from torch import Tensor

from ablate.config import ClipOver, OptimConfig
from ablate.probe import GradientNorms

_SLACK = 1e-6  # as in torch.nn.utils.clip_grad_norm_


def clip_divisor(norms: GradientNorms, optim: OptimConfig) -> Tensor | None:
    """What to divide all gradients by: max(1, (norm + 1e-6) / clip), 0-D fp32; None when clipping is off.

    `clip_over: common` takes the norm from parameters that are not biases, which all arms of a bias study
    share, so that the coefficient does not depend on how many biases there are. All gradients, those of
    biases included, are divided by it. A non-finite norm gives a non-finite divisor.
    """
    if optim.clip == 0:
        return None
    norm = norms.common if optim.clip_over is ClipOver.common else norms.total
    return ((norm + _SLACK) / optim.clip).clamp(min=1.0).to(torch.float32)
