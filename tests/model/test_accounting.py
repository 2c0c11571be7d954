"""Exact counts of known models, read from built modules."""

import pytest

from ablate.config import Norm
from ablate.model import Description, ParameterKind, describe, parameter_facts

LINEAR = ("q", "k", "v", "o", "up", "gate", "down")
LLAMA = {
    "layers": 32,
    "width": 4096,
    "heads": 32,
    "ffn": 11008,
    "activation": "swiglu",
    "norm": "rmsnorm",
    "position": "rope",
    "tie_embeddings": False,
    "bias": (),
    "context": 2048,
}
GPT2 = {"layers": 12, "width": 768, "heads": 12, "ffn": 3072, "activation": "gelu_tanh", "context": 1024}


@pytest.mark.parametrize(
    ("changes", "vocab", "expected"),
    [
        (LLAMA, 32000, 6_738_415_616),
        ({**LLAMA, "ffn": 14336, "kv_heads": 8}, 128256, 8_030_261_248),
        ({**LLAMA, "ffn": 14336, "kv_heads": 8, "window": 4096, "context": 8192}, 32000, 7_241_732_096),
        ({**LLAMA, "bias": ("q", "k", "v")}, 151936, 7_721_324_544),
        ({**GPT2, "bias": (*LINEAR, "norm")}, 50257, 124_439_808),
        (
            {**GPT2, "layers": 48, "width": 1600, "heads": 25, "ffn": 6400, "bias": (*LINEAR, "norm")},
            50257,
            1_557_611_200,
        ),
    ],
    ids=["llama-7b", "llama3-8b", "mistral-7b", "qwen-7b", "gpt2", "gpt2-xl"],
)
def test_published_sizes(config, changes, vocab, expected):
    description = describe(config(**changes), vocab)
    assert description.parameters == expected
    assert sum(description.by_site.values()) + sum(description.biases.values()) == expected
    assert sum(description.by_kind.values()) == expected


def test_bias_counts(config):
    gpt2 = describe(config(**GPT2, bias=(*LINEAR, "norm")), 50257)
    assert (gpt2.linear_biases, gpt2.norm_biases) == (82_944, 19_200)
    assert gpt2.bias_sites == ("q", "k", "v", "o", "up", "down", "norm")
    assert gpt2.non_embedding == 124_439_808 - 50257 * 768 - 1024 * 768
    assert gpt2.tied
    attention = describe(config(**{**LLAMA, "bias": ("q", "k", "v", "o")}), 32000)
    everything = describe(config(**{**LLAMA, "bias": LINEAR}), 32000)
    assert (attention.linear_biases, everything.linear_biases) == (524_288, 1_359_872)
    assert attention.norm_biases == 0


def test_realised_not_requested(config, make):
    """Sites that the architecture does not have carry no bias, whatever was asked for."""
    model = make(bias=("q", "gate", "norm", "qk_norm"), norm="none", activation="gelu")
    description = Description.of(model)
    assert description.bias_sites == ("q",)
    assert description.norms == ()
    assert description == describe(model.config, 23)
    model.blocks[0].attention.q.bias = None
    model.blocks[1].attention.q.bias = None
    assert Description.of(model).bias_sites == ()


def test_norms_and_kinds(make):
    description = Description.of(
        make(placement="peri", qk_norm=True, norm="rmsnorm", bias=("norm",), eps=1e-6, layers=1)
    )
    assert [norm.label for norm in description.norms] == [
        "b00_q_norm",
        "b00_k_norm",
        "b00_norm1",
        "b00_out_norm1",
        "b00_norm2",
        "b00_out_norm2",
        "final_norm",
    ]
    assert {(norm.kind, norm.eps) for norm in description.norms} == {(Norm.rmsnorm, 1e-6)}
    assert [norm.bias for norm in description.norms] == [False, False, True, True, True, True, True]
    assert [norm.width for norm in description.norms][:3] == [4, 4, 16]
    assert description.biases == {"norm": 5 * 16}
    assert description.by_site["norm"] == 5 * 16
    assert description.by_site["qk_norm"] == 2 * 4
    assert description.by_kind["gain"] == 5 * 16 + 2 * 4
    assert description.to_dict()["bias_sites"] == ["norm"]


def test_parameter_facts(make):
    model = make(tie_embeddings=False, bias=("up", "head", "norm"), norm="rmsnorm")
    facts = {fact.name: fact for fact in parameter_facts(model)}
    assert set(facts) == {name for name, _ in model.named_parameters()}
    up = facts["blocks.1.mlp.up.bias"]
    assert (up.kind, up.site, up.label, up.shape) == (ParameterKind.bias, "up", "b01_up", (32,))
    assert facts["head.weight"].kind is ParameterKind.matrix
    assert facts["embed.weight"].kind is ParameterKind.embedding
    assert facts["embed.weight"].site is None
    assert facts["position.weight"].label == "position"
    assert facts["blocks.0.norm2.weight"].label == "b00_norm2"
    assert facts["blocks.0.norm2.weight"].kind is ParameterKind.gain


def test_embeddings_and_the_head_transform_are_counted(make):
    model = make(stack="encoder", segments=2, head_transform=True, bias=("transform", "head"), norm="rmsnorm")
    description = Description.of(model)
    assert description.by_site["segment"] == 2 * 16
    assert description.by_site["transform"] == 16 * 16
    assert description.biases == {"transform": 16, "head": 23}
    assert description.norms[-1].label == "transform_norm"
    outer = sum(description.by_site[name] for name in ("embed", "position", "segment"))
    assert description.parameters - description.non_embedding == outer
    facts = {fact.name: fact for fact in parameter_facts(model)}
    assert facts["segment.weight"].kind is ParameterKind.embedding


def test_cross_attention_is_counted_at_its_own_sites(make):
    model = make(stack="encoder_decoder", kv_heads=2, bias=("k", "cross_k", "cross_o", "norm"), layers=3)
    description = Description.of(model)
    assert description.by_site["k"] == 2 * description.by_site["cross_k"] == 2 * 3 * 16 * 8
    assert description.by_site["q"] == 2 * description.by_site["cross_q"] == 2 * 3 * 16 * 16
    assert description.biases == {"k": 6 * 8, "cross_k": 3 * 8, "cross_o": 3 * 16, "norm": (3 * 5 + 2) * 16}
    assert sum(description.by_site.values()) + sum(description.biases.values()) == description.parameters


def test_a_tied_head_is_counted_once_and_belongs_to_the_embedding(make):
    tied, untied = Description.of(make()), Description.of(make(tie_embeddings=False))
    assert untied.parameters - tied.parameters == 23 * 16
    assert untied.non_embedding == tied.non_embedding
    assert "head" not in tied.by_site
    assert untied.by_site["head"] == 23 * 16
