"""The list of runs and the study's table."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from view_runs import made_run
from view_studies import record

from ablate.config import UserError
from ablate.record import Run
from ablate.view import parse_filters, read_facts, records, run_page, runs_table, select, study_table

RUNS = [
    made_run(1, {"model.bias": ["none"], "optim.lr": 0.1, "seed": 0}, val=3.0, growth={"b00_q": 0.01}),
    made_run(2, {"model.bias": ["none"], "optim.lr": 0.1, "seed": 1}, val=5.0, growth={"b03_down": 0.02}),
    made_run(3, {"model.bias": ["all"], "optim.lr": 0.1, "seed": 0}, verdict="diverged", val="NaN"),
    made_run(4, {"model.bias": ["all"], "optim.lr": 0.1, "seed": 1}, val=4.0),
    made_run(5, {"model.bias": ["all"], "optim.lr": 0.0003, "seed": 0}, verdict=None, state="killed"),
]


def ids(filters: list[str], sort: list[str] | None = None) -> list[int]:
    return [int(r.run_id, 16) for r in select(RUNS, parse_filters(filters), sort or ())]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (["verdict=diverged"], [3]),
        (["optim.lr=3e-4"], [5]),
        (["lr=0.10"], [1, 2, 3, 4]),
        (["model.bias=none"], [1, 2]),
        (["model.bias=none", "seed=1"], [2]),
        (["state=killed"], [5]),
        (["final/val/loss=NaN"], [3]),
        (["arm=bias=all", "verdict=stable"], [4]),
        (["model.tie_embeddings=true", "seed=1"], [2, 4]),
        (["verdict=spiked"], []),
        (["optim.lr>1e-3"], [1, 2, 3, 4]),
        (["optim.lr<=0.0003"], [5]),
        (["final/val/loss>=4"], [2, 4]),
        (["final/val/loss<4"], [1]),
        (["verdict!=diverged", "state!=killed"], [1, 2, 4]),
        (["model.bias!=none", "seed != 0"], [4]),
        (["model.bias~^(linear|all)$", "seed=0"], [3, 5]),
        (["arm~none"], [1, 2]),
        (["seed=0,1", "lr=0.1", "bias=all"], [3, 4]),
        (["verdict=diverged,stable", "seed=0"], [1, 3]),
        (["bias=[down,norm,up,o,v,k,q]", "seed=1"], [4]),
        (["verdict=-"], [5]),
        (["id=00000000000"], [1, 2, 5, 3, 4]),
        (["data=ffff", "seed=1"], [2, 4]),
        (["final_val=nan"], [3]),
    ],
)
def test_filters(filters: list[str], expected: list[int]) -> None:
    assert sorted(ids(filters)) == sorted(expected)


def test_sorting_by_several_columns_with_absent_and_nan_last() -> None:
    assert ids([], ["final_val"]) == [1, 4, 2, 3, 5]
    assert ids([], ["-seed", "lr"]) == [2, 4, 5, 1, 3]


@pytest.mark.parametrize("request_", [["verdct=x"], ["optim.lrr=1"]])
def test_an_unknown_filter_is_refused_with_a_suggestion(request_: list[str]) -> None:
    with pytest.raises(UserError, match=r"verdict|optim\.lr"):
        ids(request_)


@pytest.mark.parametrize(
    ("text", "said"),
    [("verdict", "key=value"), ("lr<x", "a number after <"), ("arm~(", "regular expression")],
)
def test_a_filter_that_says_nothing_is_refused(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        parse_filters([text])


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ("verdict=colapsed", ["stable, spiked", "--filter verdict=collapsed"]),
        ("verdict=stable,divergd", ["divergd", "verdict=diverged"]),
        ("state=don", ["--filter state=done"]),
        ("norm=layernrom", ["layernorm, rmsnorm, none", "norm=layernorm"]),
        ("bias=nne", ["bias=none"]),
        ("bias=[v,oo]", ["qk_norm"]),
        ("qk_norm=yes", ["true, false"]),
        ("lr=fast", ["a number"]),
        ("optim.steps=many", ["a number"]),
        ("study=z", ["allowed: s"]),
        ("eps=1", ["short for 2 keys", "model.eps, optim.eps"]),
    ],
)
def test_a_value_no_run_can_have_is_refused(request_: str, says: list[str]) -> None:
    with pytest.raises(UserError) as refused:
        ids([request_])
    assert all(word in str(refused.value) for word in says), refused.value


def test_short_names_stand_for_whole_keys() -> None:
    shown = runs_table(RUNS[:1], RUNS, ["bias", "norm", "steps"])
    assert shown.columns == ("bias", "norm", "steps")
    assert shown.rows == (("none", "layernorm", "200"),)
    assert ids(["placement=pre"], ["-bias", "lr"])


def test_the_order_is_study_arm_learning_rate_seed() -> None:
    keys = [
        ("t", 8, 0.1, 0), ("s", 128, 0.1, 0), ("s", 64, 1.0, 10), ("s", 64, 1.0, 9), ("s", 64, 0.5, 11)
    ]  # fmt: skip
    runs = [
        made_run(i, {"model.width": w, "optim.lr": lr, "seed": seed}, study=study)
        for i, (study, w, lr, seed) in enumerate(keys)
    ]
    assert [int(r.run_id, 16) for r in select(runs)] == [4, 3, 2, 1, 0]
    words = [made_run(i, {"model.placement": p}) for i, p in enumerate(["peri", "post", "pre"])]
    assert [int(r.run_id, 16) for r in select(words)] == [2, 1, 0]


def test_columns_may_be_any_key() -> None:
    shown = runs_table(RUNS[:1], RUNS, ["id", "model.width", "final/val/loss", "attempt"])
    assert shown.rows == (("000000000001", "64", "3.000", "1"),)
    with pytest.raises(UserError, match=r"model\.width"):
        runs_table(RUNS, RUNS, ["model.widht"])


def test_default_columns() -> None:
    shown = runs_table(RUNS, RUNS)
    assert shown.columns == ("id", "state", "verdict", "arm", "lr", "seed", "step", "final val")
    assert shown.rows[4] == ("000000000005", "killed", "-", "bias=all", "0.0003", "0", "200", "-")


def test_records_hold_everything() -> None:
    (record,) = records(RUNS[2:3], RUNS)
    assert record["verdict"] == "diverged"
    assert record["arm"] == "bias=all"
    assert record["config"]["optim.lr"] == 0.1
    assert record["summary"]["reasons"] == ["because"]


def test_study_table_takes_medians_over_seeds_and_counts_divergence_as_infinite() -> None:
    shown = study_table(RUNS)
    assert shown.column("arm") == ("bias=none", "bias=all", "bias=all")
    assert shown.column("lr") == ("0.1", "0.0003", "0.1")
    assert shown.column("final val") == ("4.000", "-", "inf")
    assert shown.column("n") == ("2", "0/1", "2")
    assert shown.column("verdict") == ("2 stable", "killed", "diverged / stable")


def test_a_run_that_was_stopped_has_no_final_loss_whatever_it_evaluated_last() -> None:
    stopped = made_run(1, verdict="diverged", val=6.2)
    stopped = replace(stopped, summary={**stopped.summary, "final/val/step": 0})
    assert runs_table([stopped], [stopped]).column("final val") == ("nan",)
    assert study_table([stopped]).column("final val") == ("inf",)


def test_study_table_names_the_fastest_growing_linear_over_the_seeds() -> None:
    factor = math.exp(0.02 * 100)
    assert study_table(RUNS).column("grown most")[0] == f"b03_down ×{factor:.2f}/100 steps"
    assert study_table(RUNS).column("grown most")[2] == "-"


def test_an_unstable_run_without_a_known_breakdown_is_looked_into_from_its_start(tmp_path: Path) -> None:
    folders = [record(tmp_path, number, verdict=word) for number, word in enumerate(("collapsed", "stable"))]
    broken, healthy = (
        "\n".join(" ".join(row) for tab in run_page(Run(f), read_facts(f)) for row in tab.rows)
        for f in folders
    )
    assert f"ablate rerun {folders[0].path} --from-step 0" in broken
    assert "--from-step" not in healthy
