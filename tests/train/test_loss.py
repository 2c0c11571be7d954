"""B batch, T tokens, V vocabulary."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from ablate.train import token_loss

B, T, V = 3, 5, 7


def sample(scale: float = 2.0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    logits_BTV = scale * torch.randn(B, T, V, generator=generator, dtype=torch.float64)
    return logits_BTV.requires_grad_(), torch.randint(V, (B, T), generator=generator)


@pytest.mark.parametrize("z_loss", [0.0, 0.3])
@pytest.mark.parametrize("scale", [1.0, 1e4])  # 1e4: probabilities of targets underflow
def test_value_and_gradient_are_those_of_autograd(z_loss: float, scale: float) -> None:
    logits_BTV, targets_BT = sample(scale)
    loss = token_loss(logits_BTV, targets_BT, z_loss)
    (loss.objective / (B * T)).backward()
    reference_BTV = logits_BTV.detach().clone().requires_grad_()
    summed = cross_entropy(reference_BTV.flatten(0, 1), targets_BT.flatten(), reduction="sum")
    z = reference_BTV.logsumexp(-1).square().sum()
    ((summed + z_loss * z) / (B * T)).backward()
    torch.testing.assert_close(loss.cross_entropy, summed)
    torch.testing.assert_close(loss.objective, summed + z_loss * z)
    torch.testing.assert_close(logits_BTV.grad, reference_BTV.grad)


def test_cross_entropy_carries_no_gradient() -> None:
    logits_BTV, targets_BT = sample()
    assert not token_loss(logits_BTV, targets_BT, 0.1).cross_entropy.requires_grad
