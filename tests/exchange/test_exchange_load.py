"""Loading a folder: every form that files come in, and every difference by name."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from tests.exchange.conftest import MakeFolder, tiny

from ablate.config import ModelConfig, UserError, compose
from ablate.exchange import FAMILIES, load_weights

NAMES = [family.name for family in FAMILIES]


@pytest.mark.parametrize("name", NAMES)
def test_what_was_written_is_loaded(name: str, folder: MakeFolder) -> None:
    assert folder(f"model={name}").loads_the_same()


def test_zeros_stand_for_biases_that_the_model_lacks(folder: MakeFolder) -> None:
    made = folder("model=gpt2", "model.bias=[q,norm]")
    assert made.loads_the_same()
    tensors = made.tensors
    tensors["transformer.h.1.attn.c_attn.bias"][40] = 1e-20  # of k
    made.tensors = tensors
    with pytest.raises(UserError) as error:
        made.load()
    name, own = "transformer.h.1.attn.c_attn.bias", "blocks.1.attention.k.bias"
    assert f"surplus: {name} is not zero, and this model has no {own}" in str(error.value)


def test_every_difference_is_named_and_nothing_is_loaded(folder: MakeFolder) -> None:
    made = folder("model=llama")
    tensors = made.tensors
    del tensors["model.norm.weight"]
    tensors["model.layers.0.mlp.up_proj.weight"] = np.zeros((3, 4), np.float32)
    tensors["model.layers.0.self_attn.sinks"] = np.zeros(4, np.float32)
    tensors["model.layers.1.mlp.down_proj.weight"] = np.zeros((32, 86), np.int32)
    made.tensors = tensors
    made.config = {**made.config, "rms_norm_eps": 1e-5, "num_attention_heads": 2, "hidden_act": "gelu"}
    with pytest.raises(UserError) as error:
        made.load()
    lines = [line.strip() for line in str(error.value).splitlines()]
    assert lines[0].endswith("is not this model, and nothing of it was loaded:")
    assert set(lines[1:-1]) == {
        "config.json: num_attention_heads = 2; model.heads says 4",
        "config.json: rms_norm_eps = 1e-05; model.eps says 1e-06",
        "config.json: hidden_act = gelu; model.activation says swiglu",
        "missing: model.norm.weight [32]",
        "shape: model.layers.0.mlp.up_proj.weight [3, 4]; this model has [86, 32]",
        "type: model.layers.1.mlp.down_proj.weight is I32; allowed: F64, F32, F16, BF16",
        "surplus: model.layers.0.self_attn.sinks [4]",
    }


def test_a_long_list_is_cut_and_counted(folder: MakeFolder) -> None:
    made = folder("model=llama")
    with pytest.raises(UserError, match=r"\n  … \d+ more") as error:
        made.load(dataclasses.replace(made.model, layers=6))
    assert len(error.value.problem.splitlines()) == 22


def test_another_family_is_named_by_its_settings(folder: MakeFolder) -> None:
    made = folder("model=llama")
    with pytest.raises(UserError) as error:
        made.load(tiny("model=gpt2"))
    for says in ("model.norm = layernorm (it has rmsnorm): llama", "model.position = learned (it has rope)"):
        assert says in str(error.value)
    made.config = {**made.config, "model_type": "gemma"}
    with pytest.raises(UserError, match="model_type = gemma\n  allowed: gpt2, bert"):
        made.load()


def test_half_precision_is_widened(folder: MakeFolder) -> None:
    made = folder("model=qwen2")
    exact = {name: np.round(array * 8) / 8 for name, array in made.tensors.items()}
    made.tensors = {name: array.astype(np.float16) for name, array in exact.items()}
    half = made.load()
    _as_bfloat16(made.path, exact)
    bfloat = made.load()
    made.tensors = exact
    whole = made.load()
    assert all(array.dtype == np.float32 for array in [*half.values(), *bfloat.values()])
    assert all(np.array_equal(whole[name], half[name]) for name in whole)
    assert all(np.array_equal(whole[name], bfloat[name]) for name in whole)


def _as_bfloat16(path: Path, tensors: dict[str, Any]) -> None:
    """Written by hand: numpy has no such type."""
    data = {
        name: (array.astype(np.float32).view(np.uint32) >> 16).astype("<u2")
        for name, array in tensors.items()
    }
    header, at = {}, 0
    for name, words in data.items():
        header[name] = {"dtype": "BF16", "shape": words.shape, "data_offsets": [at, at + words.nbytes]}
        at += words.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    whole = len(text).to_bytes(8, "little") + text + b"".join(words.tobytes() for words in data.values())
    (path / "model.safetensors").write_bytes(whole)


def test_shards_are_one_model(folder: MakeFolder) -> None:
    made = folder("model=mistral")
    tensors = list(made.tensors.items())
    (made.path / "model.safetensors").unlink()
    weight_map = {}
    for number, part in enumerate((tensors[:5], tensors[5:]), start=1):
        name = f"model-{number:05d}-of-00002.safetensors"
        save_file(dict(part), made.path / name)
        weight_map |= {key: name for key, _ in part}
    (made.path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    assert made.loads_the_same()


def test_gpt2_as_it_is_published(folder: MakeFolder) -> None:
    """Without the prefix, with masks among the tensors, and with most of its config.json left to defaults."""
    made = folder("model=gpt2")
    bare = {name.removeprefix("transformer."): array for name, array in made.tensors.items()}
    mask = np.tril(np.ones((1, 1, 32, 32), np.float32))
    made.tensors = {**bare, "h.0.attn.bias": mask, "h.1.attn.bias": mask}
    sizes = ("vocab_size", "n_embd", "n_layer", "n_head", "n_positions", "model_type")
    made.config = {key: made.config[key] for key in sizes}
    assert made.loads_the_same()


def test_bert_as_it_is_published(folder: MakeFolder) -> None:
    """With heads that are no part of it, which are announced, old names, and the tied matrix twice."""
    made = folder("model=bert")
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): array
        for name, array in made.tensors.items()
    }
    embeddings = old["bert.embeddings.word_embeddings.weight"]
    more = {
        "bert.pooler.dense.weight": np.ones((32, 32), np.float32),
        "cls.seq_relationship.bias": np.ones(2, np.float32),
        "cls.predictions.decoder.weight": embeddings,
    }
    made.tensors = {**old, **more}
    made.config = {**made.config, "hidden_dropout_prob": 0.1, "pad_token_id": 0}
    said: list[str] = []
    made.load(announce=said.append)
    assert said == ["left out, as no part of the model: bert.pooler.dense.weight, cls.seq_relationship.bias"]
    assert made.loads_the_same()
    made.tensors = {**old, "cls.predictions.decoder.weight": embeddings + 1}
    with pytest.raises(UserError, match=r"decoder\.weight is not bert\.embeddings\.word_embeddings\.weight"):
        made.load()


def test_a_tied_matrix_may_go_by_its_second_name(folder: MakeFolder) -> None:
    made = folder("model=gpt2")
    tensors = made.tensors
    tensors["lm_head.weight"] = tensors.pop("transformer.wte.weight")
    made.tensors = tensors
    assert made.loads_the_same()


def test_rope_as_earlier_versions_wrote_it(folder: MakeFolder) -> None:
    made = folder("model=llama3")
    raw = made.config
    del raw["rope_parameters"]
    made.config = {**raw, "rope_theta": 500000.0, "rope_scaling": None}
    assert made.loads_the_same()
    made.config = {**raw, "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}}
    with pytest.raises(UserError, match=r"rope_parameters.rope_type = llama3; models here have default"):
        made.load()
    raw.pop("rope_theta")
    made.config = raw
    with pytest.raises(UserError, match=r"rope_theta = 10000.0; model.rope_theta says 500000.0"):
        made.load()


def test_gpt_neox_as_earlier_versions_wrote_it(folder: MakeFolder) -> None:
    made = folder("model=gpt_neox")
    raw = made.config
    del raw["rope_parameters"], raw["use_parallel_residual"], raw["attention_bias"]
    made.config = {**raw, "rotary_emb_base": 10000, "rotary_pct": 0.25, "hidden_act": "gelu_new"}
    assert made.loads_the_same()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("start", ["gpt2", "olmo2"])
def test_the_error_says_the_settings_that_fit(name: str, start: str, folder: MakeFolder) -> None:
    """From the configuration of another model, with nothing but what the error says to try."""
    made = folder(f"model={name}", *(["model.window=9"] if name == "qwen3" else []))
    asked = [f"model={start}", "model.scale=tiny", "data=synthetic", "data.branching=2"]
    settings = {"model.layers": "3", "model.eps": "0.5", "model.ffn": "9", "data.vocab_size": "12"}
    for _ in range(2):
        config = compose([*asked, *(f"{key}={value}" for key, value in settings.items())])
        try:
            loaded = load_weights(made.path, config.model, config.data.vocab_size, print)
            break
        except UserError as error:
            settings |= dict(word.split("=", 1) for word in str(error.hint).split())
    else:
        pytest.fail(f"not with {settings}")
    assert len(settings) > 4 or name == start
    assert loaded.keys() == made.ours.keys()


def test_a_window_that_spans_the_context_is_none(folder: MakeFolder) -> None:
    made = folder("model=mistral")
    made.config = {**made.config, "sliding_window": 4096}
    with pytest.raises(UserError, match="sliding_window = 4096") as error:
        made.load()
    assert error.value.hint == "model.window=null"
    assert made.load(dataclasses.replace(made.model, window=None)).keys() == made.ours.keys()
    made.config = {**made.config, "sliding_window": 20}
    with pytest.raises(UserError, match=r"sliding_window = 20; model\.window says null"):
        made.load(dataclasses.replace(made.model, window=None))


def changed(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bool) or value is None:
        return 7 if value is None else not value
    return value * 2 if isinstance(value, int | float) else value[:-1] if isinstance(value, list) else "other"


@pytest.mark.parametrize("name", NAMES)
def test_every_fact_that_makes_another_model_is_noticed(name: str, folder: MakeFolder) -> None:
    made = folder(f"model={name}", *(["model.window=9"] if name.startswith("qwen") else []))
    (family,) = (family for family in FAMILIES if family.name == name)
    raw = made.config
    for fact in (fact for fact in family.facts if fact.compared):
        key = fact.keys[0]
        home, last = raw, key
        if "." in key:
            outer, _, last = key.partition(".")
            home = raw[outer]
        before = home[last]
        home[last] = changed(before)
        made.config = raw
        with pytest.raises(UserError) as error:
            made.load()
        assert f"config.json: {key} = " in str(error.value)
        home[last] = before


def test_every_setting_of_a_model_has_its_place() -> None:
    """A setting that a family forgets would be lost in silence."""
    elsewhere = {"preset", "scale", "bias", "bias_init", "init", "vocab", "weights", "weights_sha256"}
    settings = set(ModelConfig.__dataclass_fields__) - elsewhere
    for family in FAMILIES:
        told = {need.setting for need in family.needs} | {fact.setting for fact in family.facts}
        unread = {"rope_theta"} if family.name in ("gpt2", "bert") else set()  # nothing is turned
        assert settings - told - unread == set(), family.name
