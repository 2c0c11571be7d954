"""Gradient and update norms against loops over parameters."""

import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from ablate.probe import GradientProbe, ParameterKind, UpdateProbe, parameter_facts

BIASED = ("q", "v", "o", "up", "down", "head", "norm")


def backward(model, tokens):
    cross_entropy(model(tokens).flatten(0, 1), tokens.roll(-1, 1).flatten()).backward()


def squares(model, tensor_of, keep=lambda fact: True):
    parameters = dict(model.named_parameters())
    kept = [fact for fact in parameter_facts(model) if keep(fact)]
    return sum(tensor_of(parameters[fact.name]).double().square().sum().item() for fact in kept)


def labels(model):
    return {fact.label for fact in parameter_facts(model)}


def is_bias(fact):
    return fact.kind is ParameterKind.bias


@pytest.mark.parametrize("changes", [{}, {"tie_embeddings": False, "norm": "rmsnorm", "qk_norm": True}])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_gradient_norms_under_accumulation(scrambled, tokens, changes, dtype):
    model = scrambled(bias=BIASED, **changes).to(dtype)
    probe = GradientProbe(model)
    for part in (tokens[:2], tokens[2:]):
        backward(model, part)
    norms = probe.measure()
    rel = 1e-12 if dtype is torch.float64 else 1e-5

    def size(keep=lambda fact: True):
        return squares(model, lambda p: p.grad, keep)

    assert norms.total.item() == pytest.approx(size() ** 0.5, rel=rel)
    assert norms.common.item() == pytest.approx(size(lambda f: not is_bias(f)) ** 0.5, rel=rel)
    assert norms.bias.item() == pytest.approx(size(is_bias) ** 0.5, rel=rel)
    assert norms.bias_share.item() == pytest.approx(size(is_bias) / size(), rel=rel)
    assert set(probe.columns) == {f"grad/{label}" for label in labels(model)}
    assert len(probe.columns) == len(set(probe.columns)) == len(norms.per_site)
    for column, value in zip(probe.columns, norms.per_site.tolist(), strict=True):
        label = column.removeprefix("grad/")
        assert value == pytest.approx(size(lambda f, label=label: f.label == label) ** 0.5, rel=rel), column


def test_a_model_without_biases_has_no_bias_share(make, tokens):
    model = make(bias=())
    backward(model, tokens)
    norms = GradientProbe(model).measure()
    assert norms.bias.item() == norms.bias_share.item() == 0
    assert torch.equal(norms.total, norms.common)


def test_total_is_torchs_own_norm(make, tokens):
    model = make()
    backward(model, tokens)
    total = GradientProbe(model).measure().total.item()
    assert total == pytest.approx(torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9).item(), rel=1e-6)


def test_infinity_stays_at_its_site(make, tokens):
    model = make()
    backward(model, tokens)
    model.blocks[0].mlp.up.weight.grad[0, 0] = math.inf
    model.blocks[1].norm1.bias.grad[0] = math.nan
    probe = GradientProbe(model)
    norms = probe.measure()
    values = dict(zip(probe.columns, norms.per_site.tolist(), strict=True))
    assert values.pop("grad/b00_up") == math.inf
    assert math.isnan(values.pop("grad/b01_norm1"))
    assert all(math.isfinite(value) for value in values.values())
    assert norms.common.item() == math.inf
    assert math.isnan(norms.total.item())


def test_huge_gradients_do_not_overflow(make, tokens):
    model = make()
    backward(model, tokens)
    before = GradientProbe(model).measure().total.item()
    for parameter in model.parameters():
        parameter.grad.mul_(1e18)
    assert GradientProbe(model).measure().total.item() == pytest.approx(before * 1e18, rel=1e-5)


@pytest.mark.parametrize("changes", [{}, {"tie_embeddings": False, "qk_norm": True}])
def test_update_ratios(scrambled, tokens, changes):
    model = scrambled(bias=BIASED, **changes)
    backward(model, tokens)
    probe = UpdateProbe(model)
    old = {name: p.detach().clone() for name, p in model.named_parameters()}
    probe.before()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    ratios = probe.after()
    assert set(probe.columns) == {f"update/{label}" for label in labels(model)}
    new = dict(model.named_parameters())
    for column, value in zip(probe.columns, ratios.tolist(), strict=True):
        names = [f.name for f in parameter_facts(model) if f.label == column.removeprefix("update/")]
        change = sum((new[name] - old[name]).square().sum().item() for name in names)
        scale = sum(old[name].square().sum().item() for name in names)
        assert value == pytest.approx((change / scale) ** 0.5, rel=1e-12), column
    assert all(torch.equal(p, new[name]) for name, p in model.named_parameters())
    with pytest.raises(AssertionError):
        probe.after()


def test_nothing_waits_for_the_device(make, tokens):
    """On the meta device no value exists, so reading one on the host would fail."""
    with torch.device("meta"):
        model = make(bias=BIASED, position="rope", window=3).to("meta")
        gradients, updates = GradientProbe(model), UpdateProbe(model)
        model.board.begin(sample=True)
        backward(model, tokens.to("meta"))
        values = [model.board.values(), model.board.sample_values(), gradients.measure().per_site]
        updates.before()
        torch.optim.SGD(model.parameters(), lr=0.1).step()
        assert all(value.is_meta for value in [*values, updates.after()])
