"""The output norm of a linear much wider than its input comes from its operands. B, T, V, D as everywhere."""

import pytest
import torch

from ablate.config import parse
from ablate.model import build
from ablate.probe.meters import product_square_sum


@pytest.mark.parametrize("bias", [False, True])
def test_the_operands_give_the_norm_of_the_product(bias):
    generator = torch.Generator().manual_seed(0)
    x_BTD = torch.randn(3, 50, 8, generator=generator)
    weight_CD = torch.randn(200, 8, generator=generator)
    bias_C = 3 * torch.randn(200, generator=generator) if bias else None
    y = torch.nn.functional.linear(
        x_BTD.double(), weight_CD.double(), None if bias_C is None else bias_C.double()
    )
    found = product_square_sum(x_BTD, weight_CD, bias_C)
    assert float(found) == pytest.approx(float(y.square().sum()), rel=1e-5)


def test_a_product_that_is_not_finite_stays_visible():
    x = torch.tensor([[1.0, float("nan")]])
    assert product_square_sum(x, torch.ones(20, 2), None).isnan()


@pytest.mark.parametrize("bias", ["none", "head"])
def test_the_heads_column_is_the_norm_of_the_logits(bias):
    config = parse({"model": {"layers": 1, "width": 16, "heads": 2, "context": 16, "bias": [bias]}})
    model = build(config.model, 256, 0, config.probe)
    with torch.no_grad():
        if model.head.bias is not None:
            model.head.bias.normal_()
    x_BT = torch.randint(256, (4, 16), generator=torch.Generator().manual_seed(0))
    model.board.begin(False)
    logits_BTV = torch.cat([model(part_BT) for part_BT in x_BT.split(2)])
    found = dict(zip(model.board.columns, model.board.values().tolist(), strict=True))["out/head"]
    assert model.head.wide
    assert found == pytest.approx(float(logits_BTV.detach().double().norm() / x_BT.numel() ** 0.5), rel=1e-5)
