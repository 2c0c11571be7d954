"""Arms share every common weight bit for bit, and start at the same loss whatever their biases."""

import itertools

import pytest
import torch
from torch.nn.functional import cross_entropy

ALL = ("q", "k", "v", "o", "up", "gate", "down", "head", "norm", "qk_norm")


def loss(model, tokens):
    return cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("norm", ["layernorm", "rmsnorm", "none"])
@pytest.mark.parametrize("position", ["learned", "sinusoidal", "rope", "none"])
@pytest.mark.parametrize("placement", ["pre", "post", "peri", "sublayer"])
def test_the_first_loss_does_not_depend_on_biases(make, tokens, placement, position, norm, dtype):
    arms = [
        make(placement=placement, position=position, norm=norm, bias=bias, qk_norm=position == "rope")
        for bias in ((), ALL)
    ]
    for arm in arms:
        arm.set_compute_dtype(dtype)
    assert torch.equal(loss(arms[0], tokens), loss(arms[1], tokens))


def test_arms_share_common_weights(make):
    arms = [
        make(bias=bias, norm=norm, placement=placement, parallel=parallel, qk_norm=qk_norm, position=position)
        for bias, norm, placement, parallel, qk_norm, position in itertools.product(
            ((), ALL),
            ("layernorm", "none"),
            ("pre", "peri"),
            (False, True),
            (False, True),
            ("learned", "rope"),
        )
    ]
    first = dict(arms[0].named_parameters())
    for arm in arms[1:]:
        others = dict(arm.named_parameters())
        common = first.keys() & others.keys()
        assert {"embed.weight", "blocks.1.attention.o.weight", "blocks.0.mlp.down.weight"} <= common
        assert all(torch.equal(first[name], others[name]) for name in common)


def test_an_untied_head_and_a_deeper_stack_leave_the_rest_alone(make):
    names = dict(make(init="fan_in", layers=1).named_parameters())
    others = dict(make(init="fan_in", layers=3, tie_embeddings=False).named_parameters())
    assert all(torch.equal(parameter, others[name]) for name, parameter in names.items())


def test_initialisation_depends_on_seed_and_name_only(make):
    torch.manual_seed(0)
    one = make(seed=3).state_dict()
    torch.manual_seed(99)
    same, other = make(seed=3).state_dict(), make(seed=4).state_dict()
    for name, value in one.items():
        assert torch.equal(value, same[name])
        constant = name.endswith("bias") or "norm" in name
        assert torch.equal(value, other[name]) == constant, name
    assert not torch.equal(one["blocks.0.attention.q.weight"], one["blocks.0.attention.k.weight"])
    assert not torch.equal(one["blocks.0.attention.q.weight"], one["blocks.1.attention.q.weight"])


def test_parameter_names(make):
    assert [name for name, _ in make(layers=1, bias=(), position="none").named_parameters()] == [
        "embed.weight",
        "blocks.0.attention.q.weight",
        "blocks.0.attention.k.weight",
        "blocks.0.attention.v.weight",
        "blocks.0.attention.o.weight",
        "blocks.0.mlp.up.weight",
        "blocks.0.mlp.down.weight",
        "blocks.0.norm1.weight",
        "blocks.0.norm2.weight",
        "final_norm.weight",
    ]
    assert set(make().state_dict()) == {name for name, _ in make().named_parameters()} | {"head.weight"}
