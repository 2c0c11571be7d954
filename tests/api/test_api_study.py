"""A study as tables: every number is one of the files', whatever state the runs are in."""

import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import api_records as made
import pandas as pd
import pytest

import ablate
from ablate.api import Study
from ablate.api.frames import UnreadableRun
from ablate.config import UserError
from ablate.record import State


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """For tests that only read."""
    return ablate.load_study(made.study(tmp_path_factory.mktemp("made")))


@pytest.fixture
def home(study: Study, tmp_path: Path) -> Path:
    """A copy of the study's folder to change."""
    return Path(shutil.copytree(study.path, tmp_path / "s"))


def raw_rows(path: Path) -> list[dict[str, float]]:
    """A series file as any program reads it."""
    head, *rows = map(json.loads, path.read_text().splitlines())
    return [dict(zip(head["columns"], map(float, row), strict=True)) for row in rows]


def folder(study: Study, run: str) -> Path:
    return Path(study.runs.set_index("run").path[run])


def test_importing_the_package_loads_no_pandas() -> None:
    code = "import sys, ablate; assert not {'pandas', 'ablate.api'} & {*sys.modules}; print(dir(ablate))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "load_study" in done.stdout
    with pytest.raises(AttributeError, match="load_studi"):
        _ = ablate.load_studi


def test_one_row_a_run_with_its_factors(study: Study) -> None:
    runs = study.runs
    assert len(runs) == 12
    assert list(runs.columns[:5]) == ["run", "arm", "bias", "lr", "seed"]
    assert study.factors == {"bias": ["none", "all"]}
    assert (study.rates, study.seeds, study.name) == ([0.001, 0.01, 0.1], [0, 1], "s")
    assert runs.arm.unique().tolist() == ["bias=none", "bias=all"]
    assert runs.groupby(["bias", "lr", "seed"]).size().tolist() == [1] * 12
    lost = runs[runs.lr == 0.1]
    assert set(lost.verdict) == {"diverged"}
    assert lost.final_val.isna().all()
    assert lost.first_bad_step.tolist() == [5] * 4
    healthy = runs[runs.lr < 0.1]
    assert healthy.first_bad_step.isna().all()
    assert set(runs.loss_at_start) == {6.5}
    assert set(runs.unigram) == {5.5}
    expected = [made.loss(lr, seed, made.STEPS) for lr, seed in zip(healthy.lr, healthy.seed, strict=True)]
    assert healthy.final_val.tolist() == healthy.best_val.tolist() == expected


def test_tables_are_the_callers_to_change(study: Study) -> None:
    runs = study.runs
    runs["lr"] = 7.0
    assert study.rates == [0.001, 0.01, 0.1]
    assert 7.0 not in study.runs.lr.tolist()


@pytest.mark.parametrize(("cadence", "file"), [("series", ""), ("val", "val"), ("probes", "probe")])
def test_rows_are_those_of_the_files(study: Study, cadence: str, file: str) -> None:
    frame = getattr(study, cadence)()
    for run, own in frame.groupby("run"):
        name = f"metrics.{file}.jsonl" if file else "metrics.jsonl"
        rows = raw_rows(folder(study, run) / name)
        assert own.step.tolist() == [row.pop("step") for row in rows]
        for column in rows[0]:
            pd.testing.assert_series_equal(
                own[column].reset_index(drop=True), pd.Series([r[column] for r in rows]), check_names=False
            )
    assert frame.run.nunique() == 12


def test_columns_by_name_and_pattern(study: Study) -> None:
    assert list(study.series(["out/*", "train/loss"])) == [
        "run",
        "step",
        "out/b00_o",
        "out/b00_down",
        "train/loss",
    ]
    assert list(study.series("train/loss")) == ["run", "step", "train/loss"]
    with pytest.raises(UserError, match="train/loss"):
        study.series("train/los")
    with pytest.raises(UserError, match="no column 'attn/"):
        study.series("attn/*")


def test_a_column_that_some_runs_lack_is_nan_when_wide_and_absent_when_long(study: Study) -> None:
    wide = study.probes("bias/*").merge(study.runs, on="run")
    assert wide[wide.bias == "none"]["bias/b00_up_norm"].isna().all()
    assert wide[wide.bias == "all"]["bias/b00_up_norm"].notna().all()
    long = study.probes(long=True).merge(study.runs, on="run")
    assert set(long.column[long.bias == "none"]) == {"attn/b00_max_logit"}
    assert set(long.column[long.bias == "all"]) == {"attn/b00_max_logit", "bias/b00_up_norm"}


@pytest.mark.parametrize("cadence", ["series", "probes"])
def test_long_and_wide_say_the_same(study: Study, cadence: str) -> None:
    long, wide = getattr(study, cadence)(long=True), getattr(study, cadence)()
    again = long.pivot(index=["run", "step"], columns="column", values="value").reset_index()
    pd.testing.assert_frame_equal(
        again[list(wide)].sort_values(["run", "step"], ignore_index=True),
        wide.sort_values(["run", "step"], ignore_index=True),
        check_names=False,
        check_column_type=False,
    )


def test_select_by_factor_rate_and_condition(study: Study) -> None:
    assert len(study.select(bias="none")) == 6
    assert set(study.select("lr>=0.01", bias="all", seed=0).lr) == {0.01, 0.1}
    assert len(study.select(lr=[0.001, 0.01], seed=1)) == 4
    assert set(study.select("verdict!=stable").lr) == {0.1}
    assert study.select(bias="linear").empty
    one = study.select(bias="none", lr=0.01, seed=1)
    assert study.series(runs=one).run.unique().tolist() == one.run.tolist()
    assert study.series(runs=one.run).equals(study.series(runs=one.run[0]))
    assert study.series("train/loss", study.select(bias="linear")).empty


def test_what_cannot_be_meant_is_refused_with_what_could(study: Study) -> None:
    with pytest.raises(UserError, match="verdict") as error:
        study.select(verdikt="stable")
    assert "--filter" not in str(error.value)
    with pytest.raises(UserError, match="try: bias=none"):
        study.select(bias="nonne")
    with pytest.raises(UserError, match="fits 12 runs"):
        study.run("0000")
    with pytest.raises(UserError, match="no run 'zz'"):
        study.series(runs=["zz"])
    with pytest.raises(UserError, match="column `run`"):
        study.series(runs=pd.DataFrame({"id": ["a"]}))


def test_facts_of_any_key(study: Study) -> None:
    facts = study.facts("beta2", "max/resid/rms", "bias").merge(study.runs[["run", "lr"]], on="run")
    assert set(facts.beta2) == {0.95}
    assert [math.isinf(x) for x in facts["max/resid/rms"]] == [lr == 0.1 for lr in facts.lr]
    assert set(facts.bias) == {"none", "all"}
    with pytest.raises(UserError, match="beta2"):
        study.facts("betta2")


def test_runs_that_go_on_failed_or_never_began(home: Path) -> None:
    made.record(home.parent, 100, "none", 0.3, 0, State.running, rows=3)
    made.record(home.parent, 101, "none", 0.3, 1, State.failed, rows=2)
    study = ablate.load_study(home)
    rest = study.select(lr=0.3).set_index("seed")
    assert rest.state.tolist() == ["running", "failed"]
    assert rest.verdict.isna().all()
    assert rest.final_val.isna().all()
    assert rest.impaired.isna().all()
    assert rest.reason[1] == "no space; left"
    assert rest.step.tolist() == [3, 2]
    assert study.series(runs=study.select(lr=0.3)).groupby("run").size().tolist() == [3, 2]
    assert "1 running" in repr(study)


def test_an_unreadable_run_is_named_and_the_others_stand(home: Path) -> None:
    broken = sorted(home.glob("made-*"))[0]
    (broken / "metrics.jsonl").write_text('{"schema":9}\n[0,1]\n')
    (broken / "config.yaml").write_text(": : :")
    (broken / "meta.json").unlink()
    study = ablate.load_study(home)
    with pytest.warns(UnreadableRun, match="000000000000 is left out"):
        rows = study.series()
    assert rows.run.nunique() == 11
    own = study.runs.set_index("run").loc["000000000000"]
    assert pd.isna(own.arm)
    assert pd.isna(own.bias)
    with pytest.raises(UserError, match="unknown schema"):
        study.run("000000000000").series()
    with pytest.raises(UserError, match="no readable configuration"):
        study.twin("000000000000")


def test_a_study_of_which_nothing_is_recorded_yet(tmp_path: Path) -> None:
    (tmp_path / "s" / "requests").mkdir(parents=True)
    study = ablate.load_study(tmp_path / "s")
    assert study.runs.empty
    assert study.series("train/loss").empty
    assert list(study.series("train/loss", long=True)) == ["run", "step", "column", "value"]
    assert "0 runs (none)" in repr(study)


def test_where_there_is_no_study(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="load_study") as error:
        ablate.load_study(home.parent / "s1")
    assert str(home) in str(error.value)
    with pytest.raises(UserError, match="holds studies"):
        ablate.load_study(home.parent)
    with pytest.raises(UserError, match="is one run"):
        ablate.load_study(next(home.glob("made-*")))
    (home.parent / "empty").mkdir()
    with pytest.raises(UserError, match="neither runs nor requests"):
        ablate.load_study(home.parent / "empty")
    monkeypatch.chdir(home)
    assert ablate.load_study(".").name == "s"


@pytest.mark.parametrize(
    ("ask", "allowed"),
    [
        (lambda s: s.effects(["unstable"]), "ln_lr_half, sensitivity, unstable, best_loss"),
        (lambda s: s.effects(kind=3), "main, interaction"),
        (lambda s: s.run(None), "the beginning of an id"),
        (lambda s: s.twin(3), "the beginning of an id"),
        (lambda s: s.series("train/loss", runs=3), "the beginning of an id"),
        (lambda s: s.series("train/loss", runs=[0]), "the beginning of an id"),
        (lambda s: s.series(3), "names or shell patterns"),
        (lambda s: s.series([3]), "names or shell patterns"),
        (lambda s: s.run("000000000000").series(3), "names or shell patterns"),
        (lambda s: s.select(3), "verdict!=stable"),
        (lambda s: s.facts(["lr"]), "configuration keys"),
        (lambda s: ablate.load_study(3), "a study's folder"),
    ],
)
def test_arguments_of_a_wrong_type_are_refused_with_what_is_allowed(
    study: Study, ask: Callable[[Study], object], allowed: str
) -> None:
    with pytest.raises(UserError) as caught:
        ask(study)
    assert allowed in str(caught.value.allowed)


def test_a_path_that_is_too_long_is_no_study() -> None:
    with pytest.raises(UserError, match=r"no study at 'aaa.*too long"):
        ablate.load_study("a" * 5000)
