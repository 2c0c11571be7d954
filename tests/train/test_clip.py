import pytest
import torch
from torch import nn

from ablate.config import ClipOver, OptimConfig
from ablate.probe import GradientNorms
from ablate.train import clip_divisor


def norms(common: float, bias: float) -> GradientNorms:
    squares = torch.tensor([common, bias], dtype=torch.float64).square()
    total = squares.sum()
    return GradientNorms(total.sqrt(), squares[0].sqrt(), squares[1].sqrt(), squares[1] / total, squares)


def divisor(clip: float, over: ClipOver, found: GradientNorms) -> float:
    value = clip_divisor(found, OptimConfig(clip=clip, clip_over=over))
    assert value is not None
    return float(value)


def test_the_divisor_is_that_of_torch() -> None:
    parameters = [nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(2))]
    for parameter, value in zip(parameters, (3.0, -1.0), strict=True):
        parameter.grad = torch.full_like(parameter, value)
    before = float(parameters[0].grad[0])
    norm = torch.nn.utils.clip_grad_norm_(parameters, 0.5)
    after = float(parameters[0].grad[0])
    assert divisor(0.5, ClipOver.all, norms(float(norm), 0.0)) == pytest.approx(before / after, rel=1e-5)


def test_common_leaves_biases_out_of_the_norm() -> None:
    assert divisor(2.0, ClipOver.all, norms(6.0, 8.0)) == pytest.approx(5.0, rel=1e-6)
    assert divisor(2.0, ClipOver.common, norms(6.0, 8.0)) == pytest.approx(3.0, rel=1e-6)


def test_small_gradients_and_zero_mean_no_clipping() -> None:
    assert divisor(2.0, ClipOver.all, norms(1.0, 0.5)) == 1.0
    assert clip_divisor(norms(6.0, 8.0), OptimConfig(clip=0.0)) is None


def test_a_norm_that_is_not_finite_stays_visible() -> None:
    assert not torch.isfinite(torch.tensor(divisor(2.0, ClipOver.all, norms(float("nan"), 0.0))))
    assert not torch.isfinite(torch.tensor(divisor(2.0, ClipOver.all, norms(float("inf"), 0.0))))
