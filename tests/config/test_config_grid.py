"""What a sweep asks for: axes, their order, and the cells."""

from pathlib import Path

import pytest

from ablate.config import Axis, compose, expand, run_id


def _keys(overrides: list[str]) -> list[str]:
    return [axis.key for axis in expand(overrides).axes]


def test_seeds_vary_fastest_then_learning_rates() -> None:
    grid = expand(
        ["seed=range(0,3)", "optim.lr=1e-3,1e-2", "model.norm=layernorm,rmsnorm", "model.qk_norm=true,false"]
    )
    assert [axis.key for axis in grid.axes] == ["model.norm", "model.qk_norm", "optim.lr", "seed"]
    assert [(cell.optim.lr, cell.seed) for cell in grid.cells[:7]] == [
        (1e-3, 0), (1e-3, 1), (1e-3, 2), (1e-2, 0), (1e-2, 1), (1e-2, 2), (1e-3, 0),
    ]  # fmt: skip
    assert len(grid.cells) == 24
    assert grid.base == grid.cells[0]


def test_a_cell_is_the_run_that_compose_gives() -> None:
    grid = expand(["model=tiny,modern", "model.bias=none,all", "optim.steps=40,80", "seed=1"])
    assert len(grid.cells) == 8
    for cell, (model, bias, steps) in zip(
        grid.cells,
        [(m, b, s) for m in ("tiny", "modern") for b in ("none", "all") for s in (40, 80)],
        strict=True,
    ):
        alone = compose([f"model={model}", f"model.bias={bias}", f"optim.steps={steps}", "seed=1"])
        assert cell == alone
        assert run_id(cell, "data") == run_id(alone, "data")


def test_no_sweep_is_one_cell() -> None:
    assert expand([]).cells == (compose([]),)
    assert expand(["-m", "--multirun"]).axes == ()


def test_the_order_of_axes_as_written() -> None:
    assert _keys(["model=tiny,small", "model.bias=none,all"]) == ["model", "model.bias"]
    assert _keys(["model.bias=none,all", "model=tiny,small"]) == ["model.bias", "model"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("model.bias=[v,o],[q]", (("v", "o"), ("q",))),
        ("model.bias=none,[q,norm]", (("none",), ("q", "norm"))),
        ("optim.lr=3e-4,1", (0.0003, 1.0)),
        ("optim.lr=choice(1,2)", (1.0, 2.0)),
        ("seed=range(3)", (0, 1, 2)),
        ("seed=range(5,1,-2)", (5, 3)),
        ("optim.lr=range(0.1,0.4,0.1)", (0.1, 0.2, 0.3)),
        ("optim.lr=range(0.3,0,-0.1)", (0.3, 0.2, 0.1)),
        ("optim.warmup=0.1,12", (0.1, 12)),
        ("model.window=null,8", (None, 8)),
        ("model.qk_norm=true,false", (True, False)),
        ("model=glob([s*,t*],exclude=transformer*)", ("small", "tiny")),
        ("data.paths=[a],[b,c]", (("a",), ("b", "c"))),
    ],
)
def test_values_of_a_sweep(text: str, values: tuple[object, ...]) -> None:
    more = ["data=text"] if text.startswith("data.paths") else []
    (axis,) = expand([text, *more]).axes
    assert axis == Axis(text.partition("=")[0], values)
    assert [type(value) for value in axis.values] == [type(value) for value in values]


AXES = 'sweep.axes={model.bias:[none,[v,o]],optim.lr:"1e-3,1e-2",seed:"range(0,2)",model:[tiny,small]}'


def test_axes_from_the_configuration() -> None:
    grid = expand([AXES])
    assert [axis.key for axis in grid.axes] == ["model.bias", "model", "optim.lr", "seed"]
    assert grid.axes[0].values == (("none",), ("v", "o"))
    assert {cell.model.width for cell in grid.cells} == {32, 64}
    assert all(cell.sweep.axes == {} for cell in grid.cells)


def test_an_override_replaces_the_axis_of_its_key_and_one_value_pins_it() -> None:
    assert expand([AXES, "optim.lr=0.5,0.6,0.7"]).axes[2].values == (0.5, 0.6, 0.7)
    pinned = expand([AXES, "optim.lr=0.5", "model=tiny"])
    assert [axis.key for axis in pinned.axes] == ["model.bias", "seed"]
    assert {cell.optim.lr for cell in pinned.cells} == {0.5}
    assert {cell.model.width for cell in pinned.cells} == {32}


def test_an_axis_with_one_value_is_no_axis() -> None:
    grid = expand(["sweep.axes={optim.lr:[0.5],seed:3}"])
    assert grid.axes == ()
    assert (grid.base.optim.lr, grid.base.seed) == (0.5, 3)


def test_the_smoke_experiment() -> None:
    grid = expand(["experiment=smoke"])
    assert [axis.key for axis in grid.axes] == ["model.bias", "model.placement", "optim.lr"]
    assert len({run_id(cell, "data") for cell in grid.cells}) == 8
    assert {cell.study for cell in grid.cells} == {"smoke"}
    small = expand(["experiment=smoke", "model=small", "study=mine"])
    assert {(cell.model.width, cell.study) for cell in small.cells} == {(64, "mine")}


def test_a_derived_field_follows_its_axis_and_a_given_one_stays() -> None:
    grid = expand(["optim.steps=100,200", "optim.warmup=0.25", "seed=0,1", "data.data_seed=0"])
    assert [cell.optim.warmup for cell in grid.cells] == [25, 25, 50, 50]
    assert {cell.data.data_seed for cell in grid.cells} == {0}
    assert [cell.data.data_seed for cell in expand(["seed=0,1"]).cells] == [0, 1]


def test_paths_of_the_command_line_are_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/someone")
    data = compose(
        ["data=text", "data.paths=[docs/*.md,'~/a.txt']", "data.tokenizer=t.json", "data.cache=c"]
    ).data
    assert data.paths == (f"{tmp_path}/docs/*.md", "/home/someone/a.txt")
    assert (data.tokenizer, data.cache) == (f"{tmp_path}/t.json", f"{tmp_path}/c")
    assert compose(["data.cache=null"]).data.cache is None
    assert compose(["data=hub", "data.name=./rows.csv"]).data.name == f"{tmp_path}/rows.csv"
    assert compose(["data=hub", "data.name=owner/rows"]).data.name == "owner/rows"
