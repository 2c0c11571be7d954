"""Published architectures: what their files say, what a scale keeps, and `model.bias=own`."""

import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ablate.config import (
    Config,
    ConfigError,
    ModelConfig,
    Scale,
    UserError,
    compose,
    compositions,
    conf_dir,
    expand,
    parse,
    preset_changes,
    presets,
    replace,
    run_id,
)
from ablate.config import overrides as overrides_module
from ablate.config.scale import RESIZED, SIZES, scaled

PLAIN = ("modern", "small", "tiny")  # no published architecture
PRESETS = sorted(path.stem for path in (conf_dir() / "model").glob("*.yaml") if path.stem not in PLAIN)
SIZE_FIELDS = (*(key.removeprefix("model.") for key in RESIZED), "vocab", "scale")


@cache
def full(preset: str) -> Config:
    return compose([f"model={preset}"])


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_says_its_name_and_its_vocabulary(preset: str) -> None:
    config = full(preset)
    assert config.model.preset == preset
    assert config.data.vocab_size == config.model.vocab
    text = (conf_dir() / "model" / f"{preset}.yaml").read_text()
    assert text.startswith("# ")
    assert any(word in text for word in ("arXiv", "Radford et al. 2019"))


@pytest.mark.parametrize("scale", list(Scale))
@pytest.mark.parametrize("preset", PRESETS)
def test_a_scale_keeps_the_character(preset: str, scale: Scale) -> None:
    size, whole = SIZES[scale], full(preset).model
    config = parse({"model": vars(scaled(whole, scale))})
    model = config.model
    assert (model.layers, model.width, model.context) == (size.layers, size.width, size.context)
    assert config.data.vocab_size == 512
    kept = {name: value for name, value in vars(whole).items() if name not in SIZE_FIELDS}
    assert {name: getattr(model, name) for name in kept} == kept
    assert model.ffn / model.width == pytest.approx(whole.ffn / whole.width, abs=0.5 / model.width)
    inner, full_inner = model.heads * model.head_dim, whole.heads * whole.head_dim
    assert inner / model.width == pytest.approx(full_inner / whole.width, abs=size.head_dim / model.width)
    assert (model.kv_heads == 1) >= (whole.kv_heads == 1)
    assert (model.kv_heads == model.heads) == (whole.kv_heads == whole.heads)
    assert model.heads / model.kv_heads >= min(whole.heads / whole.kv_heads, model.heads)
    assert (model.window is None) == (whole.window is None)
    if model.window is not None and whole.window is not None:
        assert model.window / model.context == pytest.approx(whole.window / whole.context, abs=0.02)


@given(
    st.sampled_from(list(Scale)),
    st.sampled_from([(8, 4), (32, 8), (28, 4), (48, 1), (12, 12), (6, 2)]),
    st.booleans(),
    st.sampled_from([None, 100, 4096]),
)
@settings(max_examples=60, deadline=None)
def test_every_scaled_model_is_allowed(
    scale: Scale, heads: tuple[int, int], derived: bool, ffn: int | None
) -> None:
    raw: dict[str, Any] = {
        "width": 64 * heads[0], "heads": heads[0], "kv_heads": heads[1], "ffn": ffn, "context": 256,
        "head_dim": None if derived else 64,
    }  # fmt: skip
    model = _shrunk(parse({"model": raw}).model, scale)
    assert model.heads % model.kv_heads == 0
    assert _shrunk(model, scale) == model


def _shrunk(model: ModelConfig, scale: Scale) -> ModelConfig:
    return parse({"model": vars(scaled(model, scale))}).model


def test_a_scale_acts_where_conf_is_composed() -> None:
    model = compose(["model=palm_540b", "model.scale=tiny"]).model
    assert model == parse({"model": vars(scaled(full("palm_540b").model, Scale.tiny))}).model
    assert (model.heads, model.kv_heads, model.head_dim, model.ffn) == (3, 1, 8, 128)


def test_the_command_line_comes_after_the_scale() -> None:
    config = compose(["model=llama", "model.scale=tiny", "model.layers=3", "data.vocab_size=300"])
    assert (config.model.layers, config.model.width, config.data.vocab_size) == (3, 32, 300)


def test_a_scale_can_be_an_axis() -> None:
    grid = expand(["model=llama", "model.scale=tiny,small"])
    assert [cell.model.width for cell in grid.cells] == [32, 64]


def test_a_scaled_run_is_the_run_that_says_its_sizes() -> None:
    tiny = compose(["model=gpt2", "model.scale=tiny"])
    spelt = compose(
        [
            "model.layers=2",
            "model.width=32",
            "model.heads=4",
            "model.context=32",
            "model.activation=gelu_tanh",
        ]
    )
    assert run_id(tiny, "data") == run_id(spelt, "data")


def test_a_run_that_stands_is_not_scaled() -> None:
    with pytest.raises(ConfigError, match=r"model\.scale"):
        replace(compose(["model=llama"]), {"model.scale": "tiny"})


@pytest.mark.parametrize(
    "text", ["model.preset=bert", "model.preset=bert,gpt2", "sweep.axes={model.preset:[gpt2]}"]
)
def test_a_preset_is_chosen_as_a_group(text: str) -> None:
    with pytest.raises(UserError, match=r"try: model="):
        expand([text])


def test_own_biases_are_those_that_the_files_say() -> None:
    grid = expand(["model=qwen,transformer,llama", "model.bias=own,none", "model.scale=tiny"])
    found = [(cell.model.preset, cell.model.bias) for cell in grid.cells]
    assert found == [
        ("qwen", ("q", "k", "v")),
        ("qwen", ()),
        ("transformer", ("up", "down", "norm")),
        ("transformer", ()),
        ("llama", ()),
        ("llama", ()),
    ]
    assert compose(["model=qwen", "model.bias=own"]) == compose(["model=qwen"])


def test_own_stands_alone_and_only_where_conf_is_composed() -> None:
    with pytest.raises(ConfigError, match="own alone"):
        compose(["model.bias=[own,q]"])
    with pytest.raises(ConfigError, match="own"):
        parse({"model": {"bias": "own"}})


def test_words_cover_the_sites_of_every_stack() -> None:
    model = compose(["model=transformer", "model.scale=tiny", "model.bias=qkv"]).model
    assert model.bias == ("q", "k", "v", "cross_q", "cross_k", "cross_v")
    assert compose(["model=bert", "model.scale=tiny", "model.bias=linear"]).model.bias == (
        "q", "k", "v", "o", "up", "down", "transform",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["model.bias=[cross_q]"], "cross_q needs model.stack=encoder_decoder"),
        (["model.bias=[transform]"], "transform needs model.head_transform=true"),
        (["model.segments=2"], "0 with model.stack=decoder"),
        (["model.stack=encoder", "model.segments=100"], "at most model.context"),
        (["model.stack=encoder_decoder", "model.parallel=true"], "model.parallel=false"),
        (["model.shared_norm=false"], "model.shared_norm=true"),
        (
            ["model.shared_norm=false", "model.parallel=true", "model.placement=post"],
            "model.shared_norm=true",
        ),
        (["model.rope_share=0.5"], "1 with model.position=learned"),
        (["model.rope_share=0.3", "model.position=rope"], "an even number of channels"),
        (["model.qk_norm_over=all"], "model.qk_norm=true"),
        (["model.head_transform=true", "model.norm=none"], "model.head_transform=false"),
        (["model.window_every=2"], "1 without a model.window"),
        (["model.window_every=9", "model.window=8"], "at most model.layers = 4"),
        (["data.objective=masked"], "next with model.stack=decoder"),
        (["model.stack=encoder", "data.objective=next"], "masked with model.stack=encoder"),
        (["data.mask_rate=0.3"], "data.objective=masked or data.objective=span"),
        (["model.stack=encoder", "data.mask_span=2"], "data.objective=span"),
        (["model.weights_sha256=abc"], "model.weights=FOLDER"),
    ],
)
def test_what_does_not_go_together_is_refused(overrides: list[str], said: str) -> None:
    raw: dict[str, dict[str, Any]] = {}
    for text in overrides:
        section, name, value = re.fullmatch(r"(\w+)\.(\w+)=(.*)", text).groups()
        raw.setdefault(section, {})[name] = yaml.safe_load(value)
    with pytest.raises(UserError) as error:
        parse(raw)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("stack", "objective"), [("decoder", "next"), ("encoder", "masked"), ("encoder_decoder", "prefix")]
)
def test_the_objective_follows_from_the_stack(stack: str, objective: str) -> None:
    config = compose([f"model.stack={stack}"])
    assert config.data.objective == objective
    assert replace(config, {"model.stack": "encoder_decoder"}).data.objective == "prefix"


@pytest.mark.parametrize(
    ("overrides", "changed"),
    [
        (["model=gpt2"], ()),
        (["model=gpt2", "model.bias=none", "optim.lr=1e-2", "data.source=synthetic"], ()),
        (["model=gpt2", "model.norm=rmsnorm", "model.layers=6"], ("layers", "norm")),
        (["model=gpt2", "model.ffn=3000", "data.vocab_size=512"], ("ffn", "vocab_size")),
        (["model=bert", "model.scale=tiny", "data.vocab_size=600"], ()),
        (["model=bert", "model.scale=small", "model.layers=2", "model.eps=1e-5"], ("layers", "eps")),
        (["model=tiny", "model.norm=rmsnorm"], ()),  # no preset
    ],
)
def test_what_a_model_changes_of_its_preset(overrides: list[str], changed: tuple[str, ...]) -> None:
    assert preset_changes(compose(overrides)) == changed


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_changes_nothing_of_itself(preset: str) -> None:
    """Also with the names of the file that it inherits from."""
    assert preset_changes(full(preset)) == ()


def test_a_file_that_bears_a_known_name_is_compared_with_it(conf: Path) -> None:
    (conf / "model" / "mine.yaml").write_text("defaults: [gpt2]\nnorm: rmsnorm\n")
    (conf / "model" / "ours.yaml").write_text("defaults: [gpt2]\npreset: ours\nnorm: rmsnorm\n")
    assert preset_changes(compose(["model=mine"])) == ("norm",)
    assert preset_changes(compose(["model=ours"])) == ()


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of conf/ to add files to."""
    copy = shutil.copytree(conf_dir(), tmp_path / "conf")
    for module in (compositions, overrides_module, presets):
        monkeypatch.setattr(module, "conf_dir", lambda: copy)
    return copy


def test_beside_presets_a_model_is_called_by_its_file() -> None:
    """And nowhere else: the name enters no id."""
    beside = expand(["model=modern,gpt2", "model.scale=tiny"]).cells
    assert [cell.model.preset for cell in beside] == ["modern", "gpt2"]
    alone = compose(["model=modern", "model.scale=tiny"])
    assert alone.model.preset is None
    assert run_id(alone, "data") == run_id(beside[0], "data")
    assert {cell.model.preset for cell in expand(["model=modern,tiny"]).cells} == {None}


def test_the_preset_of_the_docs_works(conf: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(# conf/model/mine\.yaml\n.*?)```", page, re.DOTALL)
    (conf / "model" / "mine.yaml").write_text(text)
    whole = compose(["model=mine"])
    assert (whole.model.preset, whole.data.vocab_size, preset_changes(whole)) == ("mine", 32_000, ())
    cells = expand(["model=mine,gpt2", "model.bias=own,none,all", "model.scale=tiny"]).cells
    assert [cell.model.bias for cell in cells[:2]] == [("q", "k", "v"), ()]
    assert {cell.model.preset for cell in cells} == {"mine", "gpt2"}
