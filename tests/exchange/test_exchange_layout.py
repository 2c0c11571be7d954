"""How their tensors are made of ours: by hand, and there and back for any shape."""

from functools import cache
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ablate.config import ConfigError, ModelConfig, Site, compose, parse
from ablate.exchange import FAMILIES, Family, Tensor
from ablate.exchange.layout import Part


@cache
def tiny(preset: str) -> ModelConfig:
    return compose([f"model={preset}", "model.scale=tiny"]).model


def numbered(*shape: int, start: int = 0) -> Any:
    return np.arange(start, start + int(np.prod(shape)), dtype=np.float32).reshape(shape)


def test_turned_rows_by_hand() -> None:
    part = Part("q.weight", (12, 1), head_dim=6, turned=4, present=True)
    tensor = Tensor("q_proj.weight", (part,))
    theirs = tensor.of({"q.weight": numbered(12, 1)})
    assert theirs[:, 0].tolist() == [0, 2, 1, 3, 4, 5, 6, 8, 7, 9, 10, 11]
    assert np.array_equal(tensor.split(theirs)["q.weight"], numbered(12, 1))


def test_side_by_side_and_transposed_by_hand() -> None:
    parts = tuple(Part(name, (2, 3), 2, 0, present=name != "k") for name in "qkv")
    tensor = Tensor("c_attn.weight", parts, transposed=True)
    theirs = tensor.of({"q": numbered(2, 3), "v": numbered(2, 3, start=10)})
    assert theirs.tolist() == [[0, 3, 0, 0, 10, 13], [1, 4, 0, 0, 11, 14], [2, 5, 0, 0, 12, 15]]
    assert tensor.shape == (3, 6)


def test_head_by_head_by_hand() -> None:
    parts = tuple(Part(name, (4,), 2, 0, present=True) for name in "qkv")
    tensor = Tensor("query_key_value.bias", parts, heads=2)
    ours = {"q": numbered(4), "k": numbered(4, start=10), "v": numbered(4, start=20)}
    theirs = tensor.of(ours)
    assert theirs.tolist() == [0, 1, 10, 11, 20, 21, 2, 3, 12, 13, 22, 23]
    back = tensor.split(theirs)
    assert all(np.array_equal(back[name], ours[name]) for name in "qkv")


@st.composite
def models(draw: st.DrawFn) -> tuple[Family, ModelConfig]:
    """A family and a model that it can say."""
    family = draw(st.sampled_from(FAMILIES))
    heads, head_dim = draw(st.integers(1, 4)), 2 * draw(st.integers(2, 4))
    kv_heads = draw(st.sampled_from([k for k in range(1, heads + 1) if heads % k == 0]))
    sites = draw(st.sets(st.sampled_from(sorted(family.biases)), max_size=4)) if family.biases else set()
    said = {
        "layers": draw(st.integers(1, 2)), "heads": heads, "head_dim": head_dim, "width": heads * head_dim,
        "kv_heads": kv_heads, "ffn": draw(st.integers(1, 9)), "bias": sorted(sites) or ["none"], "context": 8,
        "window": None, "rope_share": 0.5 if family.name == "gpt_neox" and head_dim % 4 == 0 else 1.0,
    }  # fmt: skip
    base = tiny(family.name)
    kept = {key: getattr(base, key) for key in ModelConfig.__dataclass_fields__ if key not in said}
    if family.name in ("gpt2", "bert", "gpt_neox"):
        said["kv_heads"] = heads
    return family, parse({"model": {**kept, **said}}).model


@settings(max_examples=60, deadline=None)
@given(models())
def test_there_and_back_is_exact(case: tuple[Family, ModelConfig]) -> None:
    """Every parameter of ours is in exactly one of theirs; nothing is lost, zeros stand for what is added."""
    family, model = case
    assert family.obstacles(model) == []
    tensors = family.tensors(model, 11)
    parts = list(chain.from_iterable(tensor.parts for tensor in tensors))
    assert len({part.name for part in parts}) == len(parts)
    random = np.random.default_rng(0)
    ours = {part.name: random.normal(size=part.shape).astype(np.float32) for part in parts if part.present}
    back: dict[str, Any] = {}
    for tensor in tensors:
        theirs = tensor.of(ours)
        assert theirs.shape == tensor.shape
        assert theirs.flags["C_CONTIGUOUS"]
        back |= tensor.split(theirs)
    for part in parts:
        expected = ours[part.name] if part.present else np.zeros(part.shape)
        assert np.array_equal(back[part.name], expected), part.name
    added = sum(family.additions(model, 11).values())
    assert added == sum(int(np.prod(part.shape)) for part in parts if not part.present)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_site_has_a_bias_there_or_is_refused(family: Family) -> None:
    base = tiny(family.name)
    for site in Site:
        try:
            model = parse({"model": {**_plain(base), "bias": [str(site)]}}).model
        except ConfigError:
            continue  # a site that the preset does not have
        named = {part.name for tensor in family.tensors(model, 11) for part in tensor.parts if part.present}
        biases = [name for name in named if name.endswith(".bias")]
        assert bool(biases) == (site in family.biases), site
        assert [need.setting for need in family.obstacles(model)] == ([] if biases else ["bias"])


def _plain(model: ModelConfig) -> dict[str, Any]:
    return {key: getattr(model, key) for key in ModelConfig.__dataclass_fields__}
