"""Every model of conf/: at a study size it is built, runs, and has the biases that its configuration says."""

from functools import cache

import pytest
import torch
from torch.nn.functional import cross_entropy

from ablate.config import Config, compose, conf_dir, replace
from ablate.model import Description, build, describe

NAMES = sorted(path.stem for path in (conf_dir() / "model").glob("*.yaml"))


@cache
def configured(name: str, *changes: str) -> Config:
    return compose([f"model={name}", *changes])


def tiny(name, **changes):
    """The model at a study size."""
    config = configured(name, "model.scale=tiny")
    model = replace(config, {f"model.{key}": value for key, value in changes.items()}).model
    return build(model, 64, 0, config.probe)


def logits_of(model, tokens):
    return model(tokens) if model.encoder is None else model(tokens, tokens.flip(1)[:, :9])


@pytest.fixture
def batch():
    return torch.randint(0, 64, (2, 32), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("name", NAMES)
def test_realised_biases_are_those_of_the_configuration(name):
    config = configured(name, "model.scale=tiny").model
    description = Description.of(tiny(name))
    assert description == describe(config, 64)
    assert description.bias_sites == tuple(map(str, config.bias))
    assert {(norm.kind, norm.eps) for norm in description.norms} == {(config.norm, config.eps)}


@pytest.mark.slow  # tests/train trains each of them on text
@pytest.mark.parametrize("name", NAMES)
def test_every_preset_learns_a_batch(name, batch):
    """Ten plain steps on one batch."""
    model = tiny(name)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    losses = []
    for _ in range(10):
        loss = cross_entropy(logits_of(model, batch).flatten(0, 1), batch.roll(-1, 1).flatten())
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        assert all(parameter.grad is not None for parameter in model.parameters())
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    assert losses[-1] < losses[0] - 0.02


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_logits_at_first_do_not_depend_on_biases(name, batch, dtype):
    arms = [tiny(name, bias=["none"]), tiny(name, bias=["all"]), tiny(name)]
    for arm in arms:
        if dtype is torch.float64:
            arm.double()
        else:
            arm.set_compute_dtype(dtype)
    first, *others = (logits_of(arm, batch) for arm in arms)
    assert all(torch.equal(first, other) for other in others)


@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_each_token_is_seen_by_whom_it_should_be(name, batch):
    """Of the inputs: later ones within reach, or with an encoder all. Of a source: all."""
    config = configured(name, "model.scale=tiny").model
    model = spread(tiny(name))
    count, here = batch.shape[1], 9
    other = batch.clone()
    other[:, here] = (other[:, here] + 1) % 64
    source = batch.flip(1)[:, :9]
    sources = () if model.encoder is None else (source,)
    seen_by = (model(batch, *sources) != model(other, *sources)).any(-1).any(0).tolist()
    reach = sum(span_of(config, index) - 1 for index in range(config.layers))
    if config.stack == "encoder":
        assert all(seen_by)
    else:
        assert seen_by == [here <= query <= here + reach for query in range(count)]
    if sources:
        changed = source.clone()
        changed[:, 0] = (changed[:, 0] + 1) % 64
        assert (model(batch, source) != model(batch, changed)).any(-1).all()


def span_of(config, index):
    """How many tokens, itself included, a query of a block sees at most."""
    banded = config.window is not None and (index + 1) % config.window_every == 0
    return config.window if banded else config.context


def spread(model):
    """With parameters so large that what is seen shows."""
    generator = torch.Generator().manual_seed(2)
    for parameter in model.parameters():
        parameter.add_(torch.empty_like(parameter).normal_(0, 0.2, generator=generator))
    return model
