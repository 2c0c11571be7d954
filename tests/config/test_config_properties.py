"""Round trips and identities over arbitrary valid configurations."""

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from ablate.config import (
    Activation,
    Config,
    FieldClass,
    Norm,
    Placement,
    Position,
    Site,
    dump,
    fields,
    flatten,
    load,
    parse,
    replace,
    run_id,
    sites_of,
    slug,
    to_dict,
)

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def raw_configs(draw: st.DrawFn) -> dict[str, Any]:
    """A raw tree that is valid, with derived fields sometimes given and sometimes left out."""
    heads = draw(st.sampled_from([1, 2, 4]))
    model: dict[str, Any] = {
        "heads": heads,
        "width": heads * draw(st.sampled_from([8, 12])),
        "norm": draw(st.sampled_from([norm.value for norm in Norm])),
        "activation": draw(st.sampled_from([word.value for word in Activation])),
        "position": draw(st.sampled_from([word.value for word in Position])),
        "qk_norm": draw(st.booleans()),
        "eps": draw(st.floats(1e-12, 0.5)),
    }
    if model["norm"] != "none":
        model["placement"] = draw(st.sampled_from([word.value for word in Placement]))
    if draw(st.booleans()):
        model["head_dim"] = draw(st.sampled_from([2, 6, 8]))
    if draw(st.booleans()):
        model["kv_heads"] = draw(st.sampled_from([k for k in (1, 2, 4) if heads % k == 0]))
    sites = sites_of(parse({"model": model}).model)
    model["bias"] = draw(
        st.one_of(
            st.sampled_from(["none", "linear", "all", "qkv", "ffn"]),
            st.lists(st.sampled_from([site.value for site in sites] + ["linear", "ffn"])),
        )
    )
    steps = draw(st.integers(1, 10_000))
    optim = {
        "lr": draw(st.floats(1e-12, 1e6)),
        "weight_decay": draw(st.floats(0, 10)),
        "steps": steps,
        "warmup": draw(st.one_of(st.floats(0, 0.999), st.integers(0, steps))),
    }
    run = {"notes": draw(st.text(st.characters(exclude_categories=("Cs", "Cc"))))}
    data = {"data_seed": draw(st.one_of(st.none(), st.integers(0, 2**63 - 1)))}
    return {"model": model, "optim": optim, "run": run, "data": data, "seed": draw(st.integers(0, 2**40))}


@given(raw_configs())
@quick
def test_dump_and_load_give_the_same_configuration(tmp_path: Path, raw: dict[str, Any]) -> None:
    config = parse(raw)
    path = tmp_path / "config.yaml"
    path.write_text(dump(config), encoding="utf-8")
    assert load(path) == config


@given(raw_configs())
@quick
def test_a_plain_tree_gives_the_same_configuration(raw: dict[str, Any]) -> None:
    config = parse(raw)
    assert parse(to_dict(config)) == config
    assert replace(config, {}) == config
    assert list(flatten(config)) == [info.key for info in fields()]


@given(raw_configs())
@quick
def test_asking_for_derived_values_by_hand_changes_no_id(raw: dict[str, Any]) -> None:
    """null and the value it stands for, a word and its sites, a fraction and its steps: one identity."""
    asked = parse(raw)
    resolved = parse(to_dict(asked))
    assert run_id(asked, "data") == run_id(resolved, "data")
    assert slug(asked) == slug(resolved)


@given(raw_configs(), st.randoms())
@quick
def test_the_order_of_bias_sites_changes_no_id(raw: dict[str, Any], random: Any) -> None:
    config = parse(raw)
    sites = [*config.model.bias, *config.model.bias]
    random.shuffle(sites)
    raw["model"]["bias"] = sites
    assert parse(raw) == config


@given(raw_configs())
@quick
def test_slugs_are_short_folder_names(raw: dict[str, Any]) -> None:
    name = slug(parse(raw))
    assert 0 < len(name) <= 80
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._=+-")


OTHER: dict[str, object] = {
    "model.bias": ("q",),
    "data.name": "x",
    "data.subset": "x",
    "data.revision": "x",
    "data.max_bytes": 10,
    "model.window": 5,
    "model.preset": "x",
    "model.scale": "tiny",
    "model.vocab": 100,
    "model.weights": "x",
    "model.weights_sha256": "x",
    "data.paths": ("a",),
    "data.tokenizer": "x",
    "data.cache": "x",
    "sweep.axes": {"seed": [1, 2]},
    "sweep.jobs": 2,
    "tracker.project": "x",
    "tracker.entity": "x",
    "tracker.tags": ("x",),
    "run.timeout": 10.0,
    "sweep.zip": (("model.width", "model.heads"),),
    "sweep.exclude": ({"seed": 1},),
    "sweep.allow": ("data.vocab_size",),
}


def _another(value: Any) -> Any:
    """A different value of the same type."""
    kind = type(value)
    if kind is bool:
        return not value
    if kind in (int, float):
        return value + 1
    if kind is str:
        return value + "x"
    return next(member for member in kind if member is not value)


SEVERAL = [info for info in fields() if info.choices is None or len(info.choices) > 1]


@pytest.mark.parametrize("info", SEVERAL, ids=lambda info: info.key)
def test_science_fields_and_only_they_change_the_id(info: Any) -> None:
    config = parse({})
    section = getattr(config, info.section) if info.section else config
    value = OTHER[info.key] if info.key in OTHER else _another(getattr(section, info.name))
    changed = dataclasses.replace(section, **{info.name: value})
    other = dataclasses.replace(config, **{info.section: changed}) if info.section else changed
    assert isinstance(other, Config)
    same = run_id(other, "data") == run_id(config, "data")
    assert same == (info.klass is not FieldClass.science)


def test_no_two_sites_lists_share_an_id() -> None:
    sites = sites_of(parse({}).model)
    subsets = itertools.chain.from_iterable(itertools.combinations(sites, n) for n in range(len(sites) + 1))
    ids = [run_id(parse({"model": {"bias": list(chosen)}}), "data") for chosen in subsets]
    assert len(set(ids)) == len(ids) == 2 ** len(sites)
    assert Site.gate not in sites
