"""Folders that are odd, damaged or made to hurt: one clear error each, and never a tensor too many."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from tests.exchange.conftest import VOCAB, Folder, MakeFolder, tiny

from ablate.config import ConfigError, UserError, compose
from ablate.config.weights import weights_digest
from ablate.exchange import FAMILIES, check_folder, load_weights
from ablate.exchange.folder import Stored

INDEX = "model.safetensors.index.json"


def refused(made: Folder, *says: str, by_headers: bool = True) -> UserError:
    """The error, the same whether tensors are read or not."""
    with pytest.raises(UserError) as error:
        made.load()
    assert all(text in str(error.value) for text in says), str(error.value)
    assert all(line.isprintable() for line in str(error.value).splitlines())
    if by_headers:
        with pytest.raises(UserError) as planned:
            check_folder(made.path, made.model, VOCAB)
        assert str(planned.value) == str(error.value)
    else:
        check_folder(made.path, made.model, VOCAB)
    return error.value


def add(made: Folder, name: str, array: Any) -> None:
    made.tensors = {**made.tensors, name: array}


@pytest.mark.parametrize("name", [family.name for family in FAMILIES])
def test_headers_alone_tell_a_model(name: str, folder: MakeFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    made = folder(f"model={name}")
    tensors = made.tensors
    first = sorted(tensors)[0]
    monkeypatch.setattr(Stored, "read", lambda _: pytest.fail("a tensor was read"))
    check_folder(made.path, made.model, VOCAB)
    made.tensors = {own: array for own, array in tensors.items() if own != first}
    with pytest.raises(UserError, match=f"missing: {first}"):
        check_folder(made.path, made.model, VOCAB)
    made.tensors = tensors
    with pytest.raises(UserError, match=r"shape: [\s\S]*data\.vocab_size=11"):
        check_folder(made.path, made.model, VOCAB + 1)


def test_an_untied_head_of_gpt_neox_goes_by_the_name_that_is_saved(folder: MakeFolder) -> None:
    made = folder("model=gpt_neox")
    tensors = made.tensors
    assert "embed_out.weight" in tensors
    made.tensors = {name.replace("embed_out.", "lm_head."): array for name, array in tensors.items()}
    assert made.loads_the_same()
    made.tensors = {**made.tensors, "embed_out.weight": tensors["embed_out.weight"]}
    refused(made, "duplicate: embed_out.weight is there 2 times: ")


@pytest.mark.parametrize("twin", ["embeddings.LayerNorm.weight", "bert.embeddings.LayerNorm.gamma"])
def test_two_names_of_one_tensor_are_refused(twin: str, folder: MakeFolder) -> None:
    made = folder("model=bert")
    name = "bert.embeddings.LayerNorm.weight"
    add(made, twin, made.tensors[name] * 5)
    refused(made, f"duplicate: {name} is there 2 times: ", f"{twin} in model.safetensors")


def shards(made: Folder, *parts: dict[str, Any]) -> None:
    """The folder in shards a, b, …"""
    (made.path / "model.safetensors").unlink()
    files = [f"{letter}.safetensors" for letter, _ in zip("abcd", parts, strict=False)]
    for file, part in zip(files, parts, strict=True):
        save_file(part, made.path / file)
    index(made, dict(zip(files, files, strict=True)))


def index(made: Folder, names: Any) -> None:
    (made.path / INDEX).write_text(json.dumps({"weight_map": names}))


def test_a_tensor_in_two_shards_is_refused(folder: MakeFolder) -> None:
    made = folder("model=llama")
    tensors = made.tensors
    shards(made, tensors, {"model.norm.weight": tensors["model.norm.weight"] * 2})
    refused(
        made,
        "duplicate: model.norm.weight is there 2 times: model.norm.weight in a.safetensors, "
        "model.norm.weight in b.safetensors",
    )


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a\0b", "../x", "/etc/passwd", "a\nb", "\ud800", 3, None, ["a"]]
)
def test_shards_are_files_of_the_folder(name: Any, folder: MakeFolder) -> None:
    made = folder("model=llama")
    shards(made, made.tensors)
    index(made, {"a": "a.safetensors", "b": name})
    with pytest.raises(ConfigError, match=r"\n  allowed: a (readable )?model\.safetensors\.index\.json"):
        weights_digest(made.path)


DEEP = "[" * 200_000


def _config(text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "config.json").write_text(text)


def _index(text: str) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        (folder / INDEX).write_text(text)

    return change


def _pipe(name: str) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        if name == INDEX:
            (folder / "model.safetensors").unlink()
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_config(DEEP), "config.json: it is nested too deeply"),
        (_index('{"weight_map":' + DEEP), f"{INDEX}: it is nested too deeply"),
        (_config("9" * 5000), "config.json: "),
        (_pipe("config.json"), "config.json: not a regular file"),
        (_pipe("model.safetensors"), "model.safetensors: not a regular file"),
        (_pipe(INDEX), f"{INDEX}: not a regular file"),
    ],
    ids=["deep config", "deep index", "long number", "pipe config", "pipe weights", "pipe index"],
)
def test_files_that_cannot_be_read(change: Callable[[Path], object], says: str, folder: MakeFolder) -> None:
    made = folder("model=llama")
    change(made.path)

    def start() -> None:
        compose(["model=tiny", "data=synthetic", f"model.weights={made.path}"])
        made.load()

    with pytest.raises(UserError) as error:
        start()
    assert says in str(error.value)
    assert "try:" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"hidden_act": ["gelu"]}, "hidden_act is a list, and no text"),
        ({"num_attention_heads": {"a": 1}}, "num_attention_heads is a mapping, and no finite number"),
        ({"num_attention_heads": True}, "num_attention_heads is true, and no finite number"),
        ({"layer_norm_eps": "x\u001b[31m"}, r"layer_norm_eps is 'x\\x1b[31m', and no finite number"),
        ({"layer_norm_eps": float("nan")}, "layer_norm_eps is nan, and no finite number"),
        ({"type_vocab_size": "a"}, "type_vocab_size is 'a', and no finite number"),
        ({"vocab_size": {"x": 1}}, "vocab_size is a mapping, and no finite number"),
        ({"is_decoder": 1}, "is_decoder is 1, and no true or false"),
        ({"model_type": ["bert"]}, "model_type = no text"),
    ],
)
def test_values_of_a_wrong_type(change: dict[str, Any], says: str, folder: MakeFolder) -> None:
    made = folder("model=bert")
    made.config = {**made.config, **change}
    assert refused(made, says).hint is None


def test_values_of_a_wrong_type_in_other_families(folder: MakeFolder) -> None:
    made = folder("model=qwen2")
    for key, value in (
        ("layer_types", 5),
        ("layer_types", [["a"]]),
        ("max_window_layers", [1]),
        ("rope_parameters", [1]),
        ("rope_scaling", "linear"),
        ("rope_parameters", {"rope_theta": {}}),
    ):
        made.config = {**made.config, "use_sliding_window": True, key: value}
        refused(made, f"config.json: {key}")
        made.config = {**made.config, key: None}


def test_no_end_of_layers_is_counted(folder: MakeFolder) -> None:
    made = folder("model=qwen2")
    raw = {**made.config, "use_sliding_window": True, "sliding_window": 9, "num_hidden_layers": 10**30}
    made.config = {**raw, "layer_types": None, "max_window_layers": 1}
    error = refused(made, "sliding_window = 9 in some blocks; model.window says null")
    assert "model.window" not in str(error.hint)


def test_what_no_setting_says_is_not_suggested(folder: MakeFolder) -> None:
    made = folder("model=llama")
    made.config = {**made.config, "hidden_act": "tanh\n", "rms_norm_eps": None}
    error = refused(made, r"hidden_act = tanh\n; model.activation says swiglu", "rms_norm_eps = null")
    assert error.hint is None


def test_tied_tensors_of_a_type_that_nobody_reads(folder: MakeFolder) -> None:
    made = folder("model=gpt2")
    add(made, "lm_head.weight", made.tensors["transformer.wte.weight"].astype(np.int8))
    refused(made, "type: lm_head.weight is I8; allowed: F64, F32, F16, BF16")
    tensors = made.tensors
    tensors["transformer.wte.weight"] = tensors["lm_head.weight"]
    made.tensors = tensors
    refused(made, "type: lm_head.weight is I8", "type: transformer.wte.weight is I8")


def test_names_are_shown_in_printable_letters(folder: MakeFolder) -> None:
    made = folder("model=bert")
    add(made, "bad\x1b[31m\nname", np.zeros(3, np.float32))
    add(made, "x" * 5000, np.zeros(3, np.float32))
    error = refused(made, r"surplus: bert.bad\x1b[31m\nname [3]", "xxx… [3]")
    assert max(map(len, str(error).splitlines())) < 300


def test_one_kind_of_segment_is_suggested_where_it_is_used(folder: MakeFolder) -> None:
    made = folder("model=bert", "model.segments=1")
    made.model = tiny("model=bert", "model.segments=0")
    error = refused(made, "is not zero, and this model has no segment.weight", by_headers=False)
    assert error.hint == "model.segments=1"
    loaded = load_weights(made.path, tiny("model=bert", "model.segments=1"), VOCAB, print)
    assert loaded.keys() == made.ours.keys()
