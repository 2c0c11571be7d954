"""D width."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from ablate.config import Decay, Decayed, ModelConfig, OptimConfig, ProbeConfig
from ablate.model import build
from ablate.probe import parameter_facts
from ablate.train import AdamW, DecayGroups, decay_groups, factor

STEPS = 12


def optim(**changes: object) -> OptimConfig:
    settings = {"lr": 0.03, "steps": STEPS, "warmup": 3.0, "cooldown": 2.0} | changes
    return OptimConfig(**settings)


def toy() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 2)).double()


def gradients(module: nn.Module, step: int) -> None:
    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(step), dtype=torch.float64)
    module.zero_grad()
    module(x).square().sum().backward()


GROUPS = DecayGroups(decayed=("0.weight", "2.weight"), exempt=("0.bias", "2.bias"))


def by_hand(module: nn.Module, config: OptimConfig, decay: Callable[[float], float]) -> None:
    """Loshchilov & Hutter 2019, algorithm 2, written out; `decay(s)`: share of θ taken away in an update."""
    moments = {name: (torch.zeros_like(p), torch.zeros_like(p)) for name, p in module.named_parameters()}
    for step in range(STEPS):
        gradients(module, step)
        scale = factor(config, step)
        for name, p in module.named_parameters():
            assert p.grad is not None
            m, v = moments[name]
            m = config.beta1 * m + (1 - config.beta1) * p.grad
            v = config.beta2 * v + (1 - config.beta2) * p.grad**2
            moments[name] = (m, v)
            direction = (m / (1 - config.beta1 ** (step + 1))) / (
                (v / (1 - config.beta2 ** (step + 1))).sqrt() + config.eps
            )
            kept = 1 - decay(scale) if name in GROUPS.decayed else 1.0
            p.data = kept * p.data - scale * config.lr * direction


def ours(module: nn.Module, config: OptimConfig, divisor: Tensor | None = None) -> None:
    optimizer = AdamW(module, GROUPS, config)
    for step in range(STEPS):
        gradients(module, step)
        optimizer.step(factor(config, step), divisor)


def assert_close(a: nn.Module, b: nn.Module, tolerance: float = 1e-12) -> None:
    for p, q in zip(a.parameters(), b.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=tolerance, atol=tolerance)


def test_coupled_decay_follows_the_learning_rate() -> None:
    config, a, b = optim(weight_decay=0.5), toy(), toy()
    ours(a, config)
    by_hand(b, config, lambda scale: scale * config.lr * config.weight_decay)
    assert_close(a, b)


def test_independent_decay_follows_the_schedule_only() -> None:
    config, a, b = optim(weight_decay=0.02, decay=Decay.independent), toy(), toy()
    ours(a, config)
    by_hand(b, config, lambda scale: scale * config.weight_decay)
    assert_close(a, b)


def test_coupled_decay_equals_torchs_own_unfused_adamw() -> None:
    config, a, b = optim(weight_decay=0.5), toy(), toy()
    ours(a, config)
    named = dict(b.named_parameters())
    reference = torch.optim.AdamW(
        [
            {"params": [named[name] for name in GROUPS.decayed], "weight_decay": 0.5},
            {"params": [named[name] for name in GROUPS.exempt], "weight_decay": 0.0},
        ],
        betas=(config.beta1, config.beta2),
        eps=config.eps,
        foreach=False,
        fused=False,
    )
    for step in range(STEPS):
        gradients(b, step)
        for group in reference.param_groups:
            group["lr"] = config.lr * factor(config, step)
        reference.step()
    assert_close(a, b)


def test_the_divisor_divides_every_gradient() -> None:
    config, a, b = optim(eps=0.5), toy(), toy()  # with a large epsilon the size of a gradient matters
    ours(a, config, torch.tensor(4.0))
    optimizer = AdamW(b, GROUPS, config)
    for step in range(STEPS):
        gradients(b, step)
        for p in b.parameters():
            p.grad = None if p.grad is None else p.grad / 4
        optimizer.step(factor(config, step))
    assert_close(a, b)


def test_state_continues_where_it_was() -> None:
    config, straight, resumed = optim(), toy(), toy()
    ours(straight, config)
    first = AdamW(resumed, GROUPS, config)
    for step in range(5):
        gradients(resumed, step)
        first.step(factor(config, step))
    second = AdamW(resumed, GROUPS, config)
    second.load({name: value.clone() for name, value in first.state().items()}, 5)
    for step in range(5, STEPS):
        gradients(resumed, step)
        second.step(factor(config, step))
    assert all(torch.equal(p, q) for p, q in zip(straight.parameters(), resumed.parameters(), strict=True))


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({}, {"matrix", "embedding"}),
        ({"decay_embeddings": False}, {"matrix"}),
        ({"decayed": Decayed.all}, {"matrix", "embedding", "bias", "gain"}),
        ({"decayed": Decayed.all, "decay_embeddings": False}, {"matrix", "bias", "gain"}),
    ],
)
def test_groups_are_as_declared(changes: dict[str, object], kinds: set[str]) -> None:
    model = ModelConfig(
        layers=1, width=8, heads=2, kv_heads=2, head_dim=4, ffn=16, final_norm=True, bias=("q", "norm")
    )
    facts = parameter_facts(build(model, 11, 0, ProbeConfig()))
    groups = decay_groups(facts, optim(**changes))
    kind_of = {fact.name: str(fact.kind) for fact in facts}
    assert {kind_of[name] for name in groups.decayed} == kinds
    assert not kinds & {kind_of[name] for name in groups.exempt}
    assert {*groups.decayed, *groups.exempt} == set(kind_of)
