"""Published integers, reproduced by built models: parameters and biases of every preset of conf/model/."""

import re
from functools import cache

import pytest
import torch

from ablate.config import ARCHITECTURES, compose, conf_dir
from ablate.model import Description, describe

COUNTS = {
    "transformer": 63_045_632,
    "bert": 109_482_240 - 590_592 + 592_128 + 30_522,
    "bert_large": 335_141_888 - 1_049_600 + 1_051_648 + 30_522,
    "gpt2": 124_439_808,
    "gpt2_medium": 354_823_168,
    "gpt2_large": 774_030_080,
    "gpt2_xl": 1_557_611_200,
    "gpt3": 125_226_240,
    "gpt3_175b": 174_604_259_328,
    "palm": 8_632_012_800,
    "palm_62b": 62_495_662_080,
    "palm_540b": 540_356_474_880,
    "llama": 6_738_415_616,
    "llama2": 6_738_415_616,
    "llama3": 8_030_261_248,
    "mistral": 7_241_732_096,
    "qwen": 7_721_324_544,
    "qwen2": 7_615_616_512,
    "qwen3": 8_190_735_360,
    "olmo2": 7_298_617_344,
    "gpt_neox": 20_554_567_680,
}


@cache
def built(name: str, *changes: str) -> Description:
    config = compose([f"model={name}", *changes])
    return describe(config.model, config.data.vocab_size)


def biases(name: str, *changes: str) -> tuple[int, int]:
    """Of linears and of norms."""
    description = built(name, *changes)
    return description.linear_biases, description.norm_biases


@pytest.mark.parametrize("name", COUNTS)
def test_parameters(name: str) -> None:
    description = built(name)
    assert description.parameters == COUNTS[name]
    assert sum(description.by_site.values()) + sum(description.biases.values()) == COUNTS[name]


def test_every_preset_has_facts_and_its_published_count() -> None:
    named = {path.stem: path.read_text() for path in (conf_dir() / "model").glob("*.yaml")}
    assert {name for name, text in named.items() if re.search(r"^preset:", text, re.M)} == set(ARCHITECTURES)
    agreeing = {name for name, fact in ARCHITECTURES.items() if fact.published.agrees(built(name).parameters)}
    # The 2017 paper gives no breakdown of its rounded counts.
    assert set(ARCHITECTURES) - agreeing == {"transformer", "transformer_big"}
    for name in agreeing & {"gpt2", "llama", "qwen2", "bert", "gpt_neox"}:
        assert ARCHITECTURES[name].published.exact
        assert not ARCHITECTURES[name].published.agrees(built(name).parameters + 1)
    assert not ARCHITECTURES["palm"].published.agrees(8_640_000_000)
    assert not ARCHITECTURES["gpt3"].published.agrees(124_000_000)


@pytest.mark.parametrize(
    ("preset", "layers", "width", "head_dim", "published"),
    [
        ("palm", 32, 4096, 256, 8_632_012_800),
        ("palm_62b", 64, 8192, 256, 62_495_662_080),
        ("palm_540b", 118, 18432, 256, 540_356_474_880),
    ],
)
def test_palm_by_the_formula_of_its_paper(
    preset: str, layers: int, width: int, head_dim: int, published: int
) -> None:
    """Multi-query attention, SwiGLU of four widths, a scale a block and a last one, 256,000 tokens, tied."""
    heads = compose([f"model={preset}"]).model.heads
    attention = 2 * width * heads * head_dim + 2 * width * head_dim
    blocks = layers * (attention + 3 * width * 4 * width + width)
    assert 256_000 * width + blocks + width == published == built(preset).parameters


@pytest.mark.parametrize(
    ("name", "linear", "norm"),
    [
        ("gpt2", 82_944, 19_200),
        ("gpt2_xl", 691_200, 155_200),
        ("gpt3_175b", 10_616_832, 2_371_584),
        ("qwen", 393_216, 0),
        ("qwen2", 28 * (3584 + 2 * 512), 0),
        ("transformer", 12 * (2048 + 512), (12 + 18) * 512),
        *(
            (name, 0, 0)
            for name in ("palm", "palm_540b", "llama", "llama2", "llama3", "mistral", "qwen3", "olmo2")
        ),
    ],
)
def test_biases(name: str, linear: int, norm: int) -> None:
    assert biases(name) == (linear, norm)


def test_biases_by_site() -> None:
    assert built("gpt2").biases == {
        "q": 9216, "k": 9216, "v": 9216, "o": 9216, "up": 36_864, "down": 9216, "norm": 19_200,
    }  # fmt: skip
    assert built("transformer").biases == {"up": 24_576, "down": 6144, "norm": 15_360}
    assert built("qwen").biases == {"q": 131_072, "k": 131_072, "v": 131_072}
    assert set(built("gpt_neox").biases) == {"q", "k", "v", "o", "up", "down", "norm"}
    assert built("bert").biases["head"] == 30_522
    for name in ("gpt2", "gpt3_175b", "gpt_neox"):
        assert "head" not in built(name).biases


def test_shares_of_biases() -> None:
    assert f"{82_944 / built('gpt2').parameters:.3%}" == "0.067%"
    assert f"{393_216 / built('qwen').parameters:.4%}" == "0.0051%"
    some, most = (built("llama", f"model.bias={bias}") for bias in ("[q,k,v,o]", "linear"))
    assert (some.linear_biases, most.linear_biases) == (524_288, 1_359_872)
    assert f"{524_288 / built('llama').parameters:.4%}" == "0.0078%"
    assert f"{1_359_872 / most.parameters:.4%}" == "0.0202%"


@pytest.mark.parametrize(
    ("name", "width", "layers", "encoder", "pretraining", "encoder_biases"),
    [
        ("bert", 768, 12, 109_482_240, 110_106_428, (83_712, 19_200)),
        ("bert_large", 1024, 24, 335_141_888, 336_226_108, (222_208, 50_176)),
    ],
)
def test_bert_has_no_pooler_and_no_next_sentence_head_here(
    name: str, width: int, layers: int, encoder: int, pretraining: int, encoder_biases: tuple[int, int]
) -> None:
    """The published counts from the masked language model: what is added, what is taken away."""
    model = built(name)
    pooler, next_sentence = width * width + width, 2 * width + 2
    head = (width * width + width) + 2 * width + 30_522  # transform, its norm, one bias a token
    assert model.parameters - head + pooler == encoder
    assert model.parameters + pooler + next_sentence == pretraining
    assert dict(ARCHITECTURES[name].published.beyond) == {
        "pooler": pooler,
        "next-sentence head": next_sentence,
    }
    linear = model.linear_biases - 30_522 - width + width  # no head, no transform; the pooler's
    norm = model.norm_biases - width  # not the transform's
    assert (linear, norm) == encoder_biases
    assert norm == (2 * layers + 1) * width


def test_bitfit_trains_every_bias_of_cased_bert() -> None:
    """All biases of the encoder with its pooler, and those of queries and the first MLP matrix alone (Ben
    Zaken et al. 2022, table 1), of models with cased vocabularies of 28,996.
    """
    for name, width, whole, trained, share in (
        ("bert", 768, 108_310_272, 102_912, "0.0950%"),
        ("bert_large", 1024, 333_579_264, 272_384, "0.0817%"),
    ):
        model = built(name, "model.vocab=28996")
        pooler, head = width * width + width, width * width + 3 * width + 28_996
        assert model.parameters - head + pooler == whole
        found = sum(model.biases.values()) - 28_996 - 2 * width + width
        assert (found, f"{found / whole:.4%}") == (trained, share)
    large = built("bert_large").biases
    assert large["q"] + large["up"] == 122_880
    assert f"{122_880 / 333_579_264:.4%}" == "0.0368%"


def test_what_nanogpt_prints() -> None:
    """Millions without learned positions: no bias and a vocabulary padded to 50,304; all biases, 50,257."""
    positions = 1024 * 768
    assert (
        f"{(built('gpt2', 'model.bias=none', 'model.vocab=50304').parameters - positions) / 1e6:.2f}"
        == "123.59"
    )
    assert f"{(built('gpt2').parameters - positions) / 1e6:.2f}" == "123.65"


def test_the_card_of_gpt_neox_counts_what_two_ranks_share_twice() -> None:
    weights = built("gpt_neox")
    shared = 2 * weights.biases["norm"] + weights.biases["o"] + weights.biases["down"]
    assert weights.parameters + shared == 20_556_201_984
    assert sum(ARCHITECTURES["gpt_neox"].published.beyond.values()) == shared


# Width, MLP, blocks, heads, key and value heads, vocabulary of the released config.json; what more it says.
RELEASED = {
    "qwen2": ("Qwen2", (3584, 18944, 28, 28, 4, 152064), {}),
    "qwen3": ("Qwen3", (4096, 12288, 36, 32, 8, 151936), {"head_dim": 128}),
    "olmo2": ("Olmo2", (4096, 11008, 32, 32, 32, 100352), {}),
    "gpt_neox": ("GPTNeoX", (6144, 24576, 44, 64, None, 50432), {}),
}
KEYS = (
    "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
    "vocab_size",
)  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("name", RELEASED)
def test_the_released_configurations_have_these_counts_in_transformers(name: str) -> None:
    import transformers

    family, sizes, more = RELEASED[name]
    said = {key: size for key, size in zip(KEYS, sizes, strict=True) if size is not None}
    config = getattr(transformers, f"{family}Config")(**said, **more, tie_word_embeddings=False)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    parameters = dict(model.named_parameters())
    assert sum(p.numel() for p in parameters.values()) == built(name).parameters
    theirs = sum(p.numel() for key, p in parameters.items() if key.endswith(".bias"))
    assert theirs == sum(built(name).biases.values())
