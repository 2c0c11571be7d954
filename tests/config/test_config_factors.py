"""Grids beyond products: logspace, zipped axes, exclusions, several experiments."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablate.config import ConfigError, UserError, compose, conf_dir, expand, run_id
from ablate.config.overrides import logspace

ZIP = "sweep.zip=[[model.width,model.heads]]"
INVALID = "sweep.exclude=[{model.norm:none,model.placement:post}]"


def values(*overrides: str) -> tuple[object, ...]:
    (axis,) = expand(overrides).axes
    return axis.values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("optim.lr=logspace(1e-4,1e-1,4)", (1e-4, 1e-3, 1e-2, 1e-1)),
        ("optim.lr=logspace(1e-3,1e-2,3)", (1e-3, 0.00316228, 1e-2)),
        ("optim.lr=logspace(1,1e-2,3)", (1.0, 0.1, 0.01)),
        ("optim.lr=logspace(1e-3,1e-1,3),1", (1e-3, 1e-2, 1e-1, 1.0)),
        ("model.width=logspace(32,512,5)", (32, 64, 128, 256, 512)),
        ("sweep.axes={optim.lr:'logspace(1e-3,1e-1,3),1'}", (1e-3, 1e-2, 1e-1, 1.0)),
    ],
)
def test_logspace(text: str, expected: tuple[object, ...]) -> None:
    assert values(text) == expected


@given(st.floats(1e-9, 1e9), st.floats(1e-9, 1e9), st.integers(2, 40))
def test_logspace_is_what_is_printed(a: float, b: float, n: int) -> None:
    found = logspace(a, b, n)
    assert len(found) == n
    assert found == [float(f"{x:.6g}") for x in found]
    assert found[0] == pytest.approx(a, rel=1e-5)
    assert found[-1] == pytest.approx(b, rel=1e-5)
    assert found == sorted(found, reverse=a > b)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("optim.lr=logspace(0,1,3)", "above 0"),
        ("optim.lr=logspace(1e-3,1,1)", "from 2 to"),
        ("optim.lr=logspace(1e-3,1,2.5)", "n = 2.5"),
        ("optim.lr=logspace(1e-3,1)", "try: optim.lr=logspace"),
        ("model.width=logspace(32,100,4)", r"model.width = 46.784"),
    ],
)
def test_a_bad_logspace_says_why(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        expand([text])


def test_zipped_axes_advance_together() -> None:
    grid = expand(["model.width=32,64,128", "model.heads=2,4,8", "seed=0,1", ZIP])
    assert [(c.model.width, c.model.heads, c.seed) for c in grid.cells] == [
        (32, 2, 0), (32, 2, 1), (64, 4, 0), (64, 4, 1), (128, 8, 0), (128, 8, 1),
    ]  # fmt: skip
    assert grid.zipped == (("model.width", "model.heads"),)
    assert [axis.key for axis in grid.axes] == ["model.width", "model.heads", "seed"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"model.width=32,64 model.heads=2,4,8 {ZIP}", "model.width has 2, model.heads has 3"),
        (f"model.width=32,64 model.heads=2 {ZIP}", "model.heads has 1"),
        (f"model.width=32,64 {ZIP}", "model.heads is no axis"),
        ("model.width=32,64 sweep.zip=[[model.width,model.widht]]", "unknown setting model.widht"),
        ("model.width=32,64 sweep.zip=[model.width,model.heads]", r"'\[\[model.width,model.heads\]\]'"),
        ("model.width=32,64 sweep.zip=[[model.width]]", "two or more axes"),
    ],
)
def test_a_zip_that_cannot_be_is_refused(line: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        expand(line.split(" "))


def test_excluded_combinations_are_never_checked() -> None:
    request = ["model.norm=none,layernorm", "model.placement=pre,post"]
    with pytest.raises(ConfigError, match=r"model\.placement"):
        expand(request)
    grid = expand([*request, INVALID])
    assert [(c.model.norm, c.model.placement) for c in grid.cells] == [
        ("none", "pre"), ("layernorm", "pre"), ("layernorm", "post"),
    ]  # fmt: skip
    assert grid.excluded == 1


def test_an_entry_matches_lists_of_values_biases_and_groups() -> None:
    grid = expand(
        ["model=tiny,small", "model.bias=none,all,[v,o]", "seed=0,1,2",
         "sweep.exclude=[{model:small,model.bias:[none,all]},{model.bias:[[v,o]],seed:'range(1,3)'}]"]
    )  # fmt: skip
    left = [(c.model.width, len(c.model.bias), c.seed) for c in grid.cells]
    assert left == [(32, n, s) for n in (0, 7) for s in (0, 1, 2)] + [(32, 2, 0), (64, 2, 0)]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("[{model.norm:rmsnorm}]", r"\{model.norm:rmsnorm\} matches no combination"),
        ("[{model.nrm:none}]", "unknown setting model.nrm"),
        ("{model.norm:none}", "list of mappings"),
        ("[{}]", "empty entry"),
        ("[{model.norm:[none,layernorm]}]", "every combination"),
    ],
)
def test_an_exclusion_that_does_nothing_is_refused(entry: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        expand(["model.norm=none,layernorm", f"sweep.exclude={entry}"])


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Adds files to a copy of conf/."""
    folder = tmp_path / "conf"
    shutil.copytree(conf_dir(), folder)
    for module in ("compositions", "overrides"):
        monkeypatch.setattr(f"ablate.config.{module}.conf_dir", lambda: folder)

    def write(name: str, text: str) -> None:
        (folder / f"{name}.yaml").write_text(f"# @package _global_\n{text}")

    return write


def test_several_experiments_bring_their_own_axes(conf: Callable[[str, str], None]) -> None:
    conf("experiment/a", "study: s\nsweep:\n  axes: {model.bias: [none, all], seed: '0,1'}\n")
    conf("experiment/b", "study: s\nsweep:\n  axes: {model.norm: [layernorm, rmsnorm]}\n")
    grid = expand(["experiment=a,b"])
    assert [axis.key for axis in grid.axes] == ["experiment", "model.bias", "seed", "model.norm"]
    assert [(len(c.model.bias), c.seed, str(c.model.norm)) for c in grid.cells] == [
        (0, 0, "layernorm"), (0, 1, "layernorm"), (7, 0, "layernorm"), (7, 1, "layernorm"),
        (7, 0, "layernorm"), (7, 0, "rmsnorm"),
    ]  # fmt: skip
    assert len({run_id(cell, "data") for cell in grid.cells}) == 5  # one is asked for by both
    pinned = expand(["experiment=a,b", "model.bias=none", "seed=3"])
    assert [axis.key for axis in pinned.axes] == ["experiment", "model.norm"]
    assert {(c.model.bias, c.seed) for c in pinned.cells} == {((), 3)}
    with pytest.raises(UserError, match="6 runs"):
        compose(["experiment=a,b"])


def test_several_experiments_need_one_study(conf: Callable[[str, str], None]) -> None:
    conf("experiment/a", "study: one\n")
    conf("experiment/b", "study: two\n")
    with pytest.raises(UserError, match=r"disagree on study \(a: one, b: two\)"):
        expand(["experiment=a,b"])
    assert {c.study for c in expand(["experiment=a,b", "study=three"]).cells} == {"three"}


def test_an_experiments_zip_and_exclusions_give_way_to_the_command_line(
    conf: Callable[[str, str], None],
) -> None:
    conf(
        "experiment/a",
        "sweep:\n"
        "  axes: {model.width: [32, 64], model.heads: [2, 4], model.norm: [none, layernorm],"
        " model.placement: [pre, post], optim.lr: 'logspace(1e-3,1e-1,3)'}\n"
        "  zip: [[model.width, model.heads]]\n"
        "  exclude: [{model.norm: none, model.placement: post}]\n",
    )
    assert len(expand(["experiment=a"]).cells) == 2 * 3 * 3
    assert len(expand(["experiment=a", "model.norm=layernorm"]).cells) == 2 * 2 * 3
    assert len(expand(["experiment=a", "model.width=32", "model.heads=4"]).cells) == 3 * 3
    with pytest.raises(UserError, match=r"model\.width has 1"):
        expand(["experiment=a", "model.width=32"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "hydra:\n  sweeper:\n    params: {optim.lr: '1,2'}\n",
            r"hydra.sweeper.params would be lost \(optim.lr\)",
        ),
        ("defaults:\n  - override /hydra/launcher: joblib\n", "launcher"),
    ],
)
def test_axes_and_launchers_given_to_hydra_are_not_lost_in_silence(
    conf: Callable[[str, str], None], text: str, said: str
) -> None:
    conf("experiment/h", text)
    with pytest.raises(UserError, match=said):
        expand(["experiment=h"])


def test_the_axes_of_a_swept_groups_option_are_not_lost_in_silence(conf: Callable[[str, str], None]) -> None:
    conf("data/axes", "data: {source: synthetic}\nsweep:\n  axes: {seed: [0, 1]}\n")
    assert len(expand(["data=axes"]).cells) == 2
    with pytest.raises(UserError, match=r"sweep.axes that come with data=axes would be lost"):
        expand(["data=synthetic,axes"])
