"""Arms share every common weight bit for bit, and start at the same loss whatever their biases."""

import itertools

import pytest
import torch
from torch.nn.functional import cross_entropy

from ablate.model import parameter_facts

ALL = ("q", "k", "v", "o", "up", "gate", "down", "head", "norm", "qk_norm")


CROSS = ("cross_q", "cross_k", "cross_v", "cross_o")


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


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("norm", ["layernorm", "rmsnorm", "none"])
@pytest.mark.parametrize("placement", ["pre", "post", "peri", "sublayer"])
@pytest.mark.parametrize(
    ("stack", "changes"),
    [
        ("encoder", {"segments": 2, "head_transform": True, "embed_norm": True, "init": "normal"}),
        ("encoder", {"position": "rope", "qk_norm": True, "qk_norm_over": "all", "parallel": True}),
        ("encoder_decoder", {"position": "sinusoidal", "init": "xavier", "activation": "relu"}),
        ("encoder_decoder", {"position": "rope", "qk_norm": True, "kv_heads": 2, "scale_logits": True}),
        ("decoder", {"position": "rope", "rope_share": 0.5, "parallel": True, "shared_norm": False}),
    ],
)
@torch.no_grad()
def test_in_every_stack_logits_at_first_do_not_depend_on_biases(
    make, forward, tokens, stack, changes, placement, norm, dtype
):
    if norm == "none":
        changes = {**changes, "head_transform": False}
    sites = (*ALL, *CROSS) if stack == "encoder_decoder" else (*ALL, "transform")
    arms = [make(stack=stack, placement=placement, norm=norm, bias=bias, **changes) for bias in ((), sites)]
    for arm in arms:
        if dtype is torch.float64:
            arm.double()
        else:
            arm.set_compute_dtype(dtype)
    assert torch.equal(*(forward(arm, tokens) for arm in arms))


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


def test_stacks_share_common_weights(make):
    models = [make(stack=stack, init="normal") for stack in ("decoder", "encoder", "encoder_decoder")]
    first = dict(models[0].named_parameters())
    for model in models[1:]:
        others = dict(model.named_parameters())
        assert first.keys() <= others.keys()
        assert all(torch.equal(parameter, others[name]) for name, parameter in first.items())


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
    both = make(stack="encoder_decoder").state_dict()
    names = ("blocks.0.attention.q.weight", "blocks.0.cross.q.weight", "encoder.0.attention.q.weight")
    for name, other in itertools.combinations(names, 2):
        assert not torch.equal(both[name], both[other])


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


def test_parameter_names_of_an_encoder(make):
    model = make(
        stack="encoder", layers=1, bias=("transform",), segments=2, embed_norm=True, head_transform=True
    )
    assert [name for name, _ in model.named_parameters()] == [
        "embed.weight",
        "position.weight",
        "segment.weight",
        "embed_norm.weight",
        "blocks.0.attention.q.weight",
        "blocks.0.attention.k.weight",
        "blocks.0.attention.v.weight",
        "blocks.0.attention.o.weight",
        "blocks.0.mlp.up.weight",
        "blocks.0.mlp.down.weight",
        "blocks.0.norm1.weight",
        "blocks.0.norm2.weight",
        "final_norm.weight",
        "transform.weight",
        "transform.bias",
        "transform_norm.weight",
    ]


def test_parameter_names_of_an_encoder_decoder(make):
    model = make(stack="encoder_decoder", layers=1, bias=(), position="none", placement="peri", qk_norm=True)
    linears = ["q", "k", "v", "o", "q_norm", "k_norm"]
    ends = [
        *(f"attention.{part}" for part in linears),
        "mlp.up",
        "mlp.down",
        *("norm1", "out_norm1", "norm2", "out_norm2"),
    ]
    crossed = [*ends[:6], *(f"cross.{part}" for part in linears), *ends[6:10]]
    crossed += ["cross_norm", "out_cross_norm", *ends[10:]]
    assert [name.removesuffix(".weight") for name, _ in model.named_parameters()] == [
        "embed",
        *(f"encoder.0.{end}" for end in ends),
        "encoder_norm",
        *(f"blocks.0.{end}" for end in crossed),
        "final_norm",
    ]
    labels = [fact.label for fact in parameter_facts(model)]
    assert labels[1] == "e00_q"
    assert labels[-9:] == [
        "b00_up",
        "b00_down",
        "b00_norm1",
        "b00_out_norm1",
        "b00_cross_norm",
        "b00_out_cross_norm",
        "b00_norm2",
        "b00_out_norm2",
        "final_norm",
    ]
    assert labels[labels.index("b00_cross_q") :][:6] == [f"b00_cross_{part}" for part in linears]


def test_norms_of_parallel_blocks(make):
    def norms(**changes):
        block = make(parallel=True, layers=1, **changes).blocks[0]
        return [name for name, _ in block.named_children() if "norm" in name]

    assert norms() == ["norm1"]
    assert norms(shared_norm=False) == ["norm1", "norm2"]
    assert norms(placement="post") == ["norm1"]
    assert norms(placement="peri") == ["norm1", "out_norm1", "out_norm2"]
    assert norms(placement="peri", shared_norm=False) == ["norm1", "out_norm1", "norm2", "out_norm2"]
    assert norms(placement="sublayer") == ["norm1", "norm2"]


@pytest.mark.parametrize(
    ("placement", "norms"),
    [
        ("pre", ["norm1", "cross_norm", "norm2"]),
        ("post", ["norm1", "cross_norm", "norm2"]),
        ("peri", ["norm1", "out_norm1", "cross_norm", "out_cross_norm", "norm2", "out_norm2"]),
        ("sublayer", ["norm1", "cross_norm", "norm2"]),
    ],
)
def test_norms_of_blocks_with_cross_attention(make, placement, norms):
    model = make(stack="encoder_decoder", placement=placement, layers=1)
    for block, expected in (
        (model.blocks[0], norms),
        (model.encoder[0], [norm for norm in norms if "cross" not in norm]),
    ):
        assert [name for name, _ in block.named_children() if "norm" in name] == expected
    assert ("encoder_norm.weight" in model.state_dict()) == (placement != "post")
