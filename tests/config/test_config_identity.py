"""Run ids that must never move by themselves, and what may not move them."""

import dataclasses
from typing import Any

import pytest

from ablate.config import (
    SCIENCE_VERSION,
    ConfigError,
    FieldClass,
    ModelConfig,
    compose,
    fields,
    parse,
    replace,
    run_id,
    science,
    slug,
)
from ablate.config.settings import science as science_field


def test_golden_ids() -> None:
    """These change only with SCIENCE_VERSION: records on people's disks carry them."""
    assert SCIENCE_VERSION == 1
    assert run_id(parse({}), "fingerprint") == "b4fcc1b1c766"
    modern = parse(
        {
            "model": {"bias": ["v", "o"], "norm": "rmsnorm", "placement": "post", "activation": "swiglu"},
            "optim": {"lr": 0.1, "warmup": 0.05, "steps": 120},
            "seed": 7,
        }
    )
    assert run_id(modern, "fingerprint") == "9119c153a749"


SAME: list[tuple[list[str], list[str]]] = [
    (["optim.lr=3e-4"], ["optim.lr=0.0003"]),
    (["optim.clip=2"], ["optim.clip=2.0"]),
    (["optim.weight_decay=0"], ["optim.weight_decay=-0.0"]),
    (["model.bias=[v,q]"], ["model.bias=[q,v,q]"]),
    (["model.bias=none"], ["model.bias=[]"]),
    (["data=hub", "data.name=/here/rows.csv"], ["data=hub", "data.name=/there/rows.csv"]),
    (["model.bias=linear"], ["model.bias=[qkv,o,ffn]"]),
    ([], ["model.kv_heads=4", "model.head_dim=16", "model.ffn=256", "model.final_norm=true"]),
    (["model.activation=swiglu"], ["model.activation=swiglu", "model.ffn=168"]),
    (["seed=3"], ["seed=3", "data.data_seed=3"]),
    (["optim.steps=120", "optim.warmup=0.1"], ["optim.steps=120", "optim.warmup=12"]),
    ([], ["probe.every=7", "eval.every=3", "run.threads=2", "run.notes=x", "study=other", "verdict.rise=1"]),
    ([], ["model=small", "optim=default", "data=stdlib"]),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_two_ways_to_say_the_same_run_have_one_id(one: list[str], other: list[str]) -> None:
    assert run_id(compose(one), "data") == run_id(compose(other), "data")


def test_the_data_enter_the_id() -> None:
    assert run_id(parse({}), "a") != run_id(parse({}), "b")


@dataclasses.dataclass(frozen=True, kw_only=True)
class WiderModel(ModelConfig):
    """A later schema: one more science field, whose value 0 means what always was."""

    smear: int = science_field(0, "a field added later", ge=0, neutral=0)


def test_a_field_added_later_leaves_old_ids() -> None:
    config = parse({})
    plain: dict[str, Any] = {
        leaf.name: getattr(config.model, leaf.name) for leaf in dataclasses.fields(config.model)
    }
    neutral = dataclasses.replace(config, model=WiderModel(**plain))
    changed = dataclasses.replace(config, model=WiderModel(**plain, smear=1))
    assert science(neutral) == science(config)
    assert run_id(neutral, "data") == run_id(config, "data") != run_id(changed, "data")
    assert science(changed)["model"]["smear"] == 1


def test_science_holds_every_science_field_and_no_other() -> None:
    tree = science(parse({}))
    keys = {f"{name}.{leaf}" for name, part in tree.items() if isinstance(part, dict) for leaf in part}
    keys |= {name for name, part in tree.items() if not isinstance(part, dict)}
    own = {info.key for info in fields() if info.klass is FieldClass.science}
    added_later = {info.key for info in fields() if "neutral" in info.rules}
    assert added_later < own
    assert keys == own - added_later  # at their neutral values


def test_slug_says_what_differs_from_the_defaults() -> None:
    assert slug(parse({})) == "default"
    asked = ["model.bias=[v,o]", "model.placement=post", "optim.lr=3e-3", "optim.lr=0.1", "seed=2"]
    assert slug(compose(asked)) == "bias=v+o_placement=post_lr=0.1_seed=2"
    assert slug(compose(["model.bias=linear", "optim.steps=60", "model.norm=rmsnorm"])) == (
        "bias=linear_norm=rmsnorm_steps=60"
    )
    assert slug(compose(["optim.eps=1e-6", "model.eps=1e-6"])) == "model.eps=1e-06_optim.eps=1e-06"
    long = slug(compose(["model=gpt2", "optim=wsd", "optim.lr=0.01", "seed=9", "model.qk_norm=true"]))
    assert len(long) <= 80
    assert long.endswith("_lr=0.01_seed=9")


def test_slug_names_the_preset_and_what_differs_from_it() -> None:
    tiny = ["model=bert", "model.scale=tiny"]
    assert slug(compose(tiny)) == "preset=bert_scale=tiny"
    changed = [*tiny, "model.bias=none", "model.layers=3", "optim.lr=0.01", "seed=9"]
    assert slug(compose(changed)) == "preset=bert_scale=tiny_bias=none_layers=3_lr=0.01_seed=9"
    assert slug(compose(["model=gpt2", "model.norm=rmsnorm"])) == "preset=gpt2_norm=rmsnorm"
    unknown = parse({"model": {"preset": "mine", "layers": 2}})
    assert slug(unknown) == "layers=2"


@pytest.mark.parametrize(("width", "hidden"), [(64, 168), (32, 88), (768, 2048), (1, 8)])
def test_swiglu_is_two_thirds_as_wide(width: int, hidden: int) -> None:
    """8/3 of the width to the nearest multiple of 8, so that three matrices weigh what two did."""
    model = {"width": width, "heads": 1, "activation": "swiglu"}
    assert parse({"model": model}).model.ffn == hidden
    assert parse({"model": {"width": width, "heads": 1}}).model.ffn == 4 * width


def test_replace_derives_again_what_had_been_derived() -> None:
    config = compose(["model.bias=linear"])
    wide = replace(config, {"model.width": 128, "seed": 5, "optim.steps": 400})
    assert (wide.model.head_dim, wide.model.ffn, wide.data.data_seed) == (32, 512, 5)
    assert (wide.optim.warmup, wide.eval.every, wide.run.checkpoint_every) == (40, 100, 80)
    assert replace(config, {"model.placement": "post"}).model.final_norm is False
    gated = replace(config, {"model.activation": "swiglu"})
    assert gated == compose(["model.bias=linear", "model.activation=swiglu"])
    assert "gate" in gated.model.bias


def test_replace_keeps_what_was_chosen() -> None:
    config = compose(["model.head_dim=8", "model.bias=[q,down]", "data.data_seed=4", "optim.warmup=7"])
    other = replace(config, {"model.width": 128, "model.activation": "swiglu", "seed": 5, "optim.steps": 400})
    assert other.model.head_dim == 8
    assert other.model.bias == ("q", "down")
    assert (other.data.data_seed, other.optim.warmup) == (4, 7)


def test_replace_asks_where_the_old_bias_could_mean_two_things() -> None:
    bare = compose(["model.norm=none", "model.bias=all"])
    with pytest.raises(ConfigError, match=r"model\.bias=linear or model\.bias=all"):
        replace(bare, {"model.norm": "layernorm"})
    assert "norm" in replace(bare, {"model.norm": "layernorm", "model.bias": "all"}).model.bias
    with pytest.raises(ConfigError, match=r"optim\.lr"):
        replace(bare, {"optim.lrr": 1})
