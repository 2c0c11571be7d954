"""Every study of conf/experiment/: it composes, expands to what it says, and its first cell trains."""

import re
from pathlib import Path

import pytest

from ablate.config import Grid, conf_dir, expand, run_id
from ablate.record import Run, State
from ablate.sweep import Task, freeze, launch, plan_cells

NAMES = sorted(path.stem for path in (conf_dir() / "experiment").glob("*.yaml"))
SMALL = (
    "model.layers=2", "model.width=16", "model.heads=2", "model.context=16", "data=synthetic",
    "data.tokens=4000", "data.vocab_size=32", "data.val_tokens=256", "data.streaming=false",
    "data.name=null", "data.subset=null",
    "data.max_bytes=null", "optim.batch=4", "optim.accumulation=1", "optim.steps=2",
)  # fmt: skip
RUNS = {"bias_stability": 96, "bias_sites": 400, "placebo": 84, "width_ladder": 300, "depth_ladder": 400}
RUNS |= {"warmup": 400, "precision": 200, "published_830m": 12, "smoke": 8, "architectures": 180}
ASKED = {"architectures": 252}  # where some combinations are the same run


class Ignore:
    def tick(self, folder: object) -> None: ...

    def ended(self, result: object) -> None: ...


def grid(name: str, *overrides: str) -> Grid:
    return expand([f"experiment={name}", *overrides])


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_expands_to_as_many_different_runs_as_it_says(name: str) -> None:
    cells = grid(name).cells
    assert {cell.study for cell in cells} == {name}
    assert len({run_id(cell, "data") for cell in cells}) == RUNS[name]
    assert len(cells) == ASKED.get(name, RUNS[name])
    said = re.search(r"(\d+) runs", (conf_dir() / "experiment" / f"{name}.yaml").read_text())
    assert said is None or int(said[1]) == RUNS[name]


def test_every_experiment_is_documented_with_its_number_of_runs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "studies.md").read_text(encoding="utf-8")
    for name in NAMES:
        row = re.search(rf"^\| `{name}` \|.*$", text, re.M)
        assert row is not None, name
        assert f" {RUNS[name]} " in row[0]


def test_the_first_cell_of_every_experiment_trains(tmp_path: Path) -> None:
    folders = []
    for name in NAMES:
        small = grid(name, *SMALL, f"run.root={tmp_path}")
        folders += freeze(plan_cells(small.base, (), small.cells[:1]))
    results = launch([Task(folder) for folder in folders], Ignore())
    assert [(r.state, r.reason) for r in results] == [(State.done, None)] * len(NAMES)
    assert [len(Run(folder).series()) for folder in folders] == [2] * len(NAMES)


def test_the_default_study_is_the_one_described() -> None:
    found = grid("bias_stability")
    cell = found.base
    assert {axis.key: len(axis.values) for axis in found.axes} == {
        "model.bias": 3, "model.norm": 2, "model.placement": 2, "optim.lr": 4, "seed": 2,
    }  # fmt: skip
    assert (cell.model.layers, cell.model.width, cell.model.heads, cell.model.context) == (4, 64, 4, 64)
    assert (cell.optim.batch, cell.optim.steps, cell.optim.warmup) == (16, 120, 12)
    assert (cell.optim.schedule, cell.data.source, cell.data.vocab_size) == ("constant", "stdlib", 512)


def test_the_published_study_has_the_published_shape_and_ladder() -> None:
    found = grid("published_830m")
    model, optim = found.base.model, found.base.optim
    assert (model.layers, model.width, model.heads, model.context) == (24, 1024, 16, 4096)
    assert (optim.batch, optim.clip, optim.precision) == (512, 1.0, "bf16")
    rates = next(axis.values for axis in found.axes if axis.key == "optim.lr")
    assert rates == (6e-3, 8e-3, 20e-3, 40e-3, 60e-3, 80e-3)


def test_the_placebo_is_null_by_construction() -> None:
    cells = grid("placebo").cells
    assert {cell.model.bias for cell in cells} == {(), ("k",)}
    assert {(cell.model.position, cell.model.qk_norm) for cell in cells} == {("learned", False)}
