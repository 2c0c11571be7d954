"""The objective. B examples, T tokens, M targets, V vocabulary; N = B·M."""

from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ablate.data import Examples
from ablate.model import Transformer


@dataclass(frozen=True)
class Loss:
    """Sums over the targets of one micro-batch, 0-D, in the type of the logits (fp32 also under bf16)."""

    objective: Tensor  # cross entropy + z_loss · log² Z; what is differentiated
    cross_entropy: Tensor  # in nats; no gradient


def example_loss(module: Transformer, examples: Examples, z_loss: float) -> Loss:
    """The loss of a model on examples, which are taken to its device."""
    device = module.embed.weight.device
    more = (to_device(part, device) for part in (examples.source_BS, examples.positions_BM))
    logits_BMV = module(to_device(examples.inputs_BT, device), *more)
    return token_loss(logits_BMV, to_device(examples.targets_BM, device), z_loss)


def token_loss(logits_BMV: Tensor, targets_BM: Tensor, z_loss: float) -> Loss:
    """Summed cross entropy, and the objective: z_loss · Σ log² Z added (PaLM, Chowdhery et al. 2022, §5)."""
    logits_NV = logits_BMV.reshape(-1, logits_BMV.shape[-1])
    target_N1 = targets_BM.reshape(-1, 1)
    return Loss(*_TokenLoss.apply(logits_NV, target_N1, z_loss))  # type: ignore[no-untyped-call]  # torch's


class _TokenLoss(torch.autograd.Function):
    """Cross entropy that makes its gradient in place of the saved log-probabilities.

    With p the softmax, d objective / d logits = p · (1 + 2 · z_loss · log Z) − onehot(target). torch's own
    pair of kernels takes two more passes over N·V values: at a small width the loss is a tenth of a step.
    """

    @staticmethod
    def forward(ctx: Any, logits_NV: Tensor, target_N1: Tensor, z_loss: float) -> tuple[Tensor, Tensor]:
        log_p_NV = torch.log_softmax(logits_NV, -1)
        target_log_p_N1 = log_p_NV.gather(1, target_N1)
        cross_entropy = -target_log_p_N1.sum()
        objective, weight_N1 = cross_entropy.clone(), None
        if z_loss > 0:
            log_z_N1 = logits_NV.gather(1, target_N1) - target_log_p_N1
            objective = cross_entropy + z_loss * log_z_N1.square().sum()
            weight_N1 = 1 + 2 * z_loss * log_z_N1
        ctx.save_for_backward(log_p_NV, target_N1, weight_N1)
        ctx.mark_non_differentiable(cross_entropy)
        return objective, cross_entropy

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, scale: Tensor, _: Tensor) -> tuple[Tensor, None, None]:
        log_p_NV, target_N1, weight_N1 = ctx.saved_tensors
        gradient_NV = log_p_NV.exp_()
        if weight_N1 is not None:
            gradient_NV *= weight_N1
        gradient_NV.scatter_(1, target_N1, gradient_NV.gather(1, target_N1) - 1)
        return gradient_NV.mul_(scale), None, None


@overload
def to_device(array: NDArray[np.int64], device: torch.device) -> Tensor: ...


@overload
def to_device(array: None, device: torch.device) -> None: ...


def to_device(array: NDArray[np.int64] | None, device: torch.device) -> Tensor | None:
    """The array on the device, None as it is; the copy to CUDA does not wait."""
    if array is None:
        return None
    tensor = torch.from_numpy(array)
    if device.type == "cuda":
        # A part of an array would be gathered into memory that is not pinned, and copying from there waits.
        return tensor.contiguous().pin_memory().to(device, non_blocking=True)
    return tensor
