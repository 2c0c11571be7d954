"""The objective. B batch, T tokens, V vocabulary; N = B·T."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Loss:
    """Sums over the tokens of one micro-batch, 0-D, in the type of the logits (fp32 also under bf16)."""

    objective: Tensor  # cross entropy + z_loss · log² Z; what is differentiated
    cross_entropy: Tensor  # in nats; no gradient


def token_loss(logits_BTV: Tensor, targets_BT: Tensor, z_loss: float) -> Loss:
    """Summed cross entropy, and the objective: z_loss · Σ log² Z added (PaLM, Chowdhery et al. 2022, §5)."""
    logits_NV = logits_BTV.reshape(-1, logits_BTV.shape[-1])
    target_N1 = targets_BT.reshape(-1, 1)
    return Loss(*_TokenLoss.apply(logits_NV, target_N1, z_loss))  # type: ignore[no-untyped-call]


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
