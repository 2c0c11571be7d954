"""One run: its facts, twin, verdict with other thresholds, and repetitions."""

import shutil
from pathlib import Path

import api_records as made
import pytest

import ablate
from ablate.api import Study
from ablate.config import UserError
from ablate.record import find_run


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.study(tmp_path_factory.mktemp("made"))


@pytest.fixture
def study(whole: Path, tmp_path: Path) -> Study:
    return ablate.load_study(shutil.copytree(whole, tmp_path / "s"))


def test_a_run_by_the_beginning_of_its_id_or_its_folder(study: Study) -> None:
    lost = study.run("000000000004")
    assert (lost.lr, lost.seed, lost.arm, lost.verdict) == (0.1, 0, "bias=none", "diverged")
    assert (lost.first_bad_step, lost.state, lost.reasons) == (5, "done", ("because",))
    assert lost.config["optim.steps"] == made.STEPS
    assert lost.summary["planned_steps"] == made.STEPS
    assert study.run(lost.path.name).name == lost.name
    assert lost.series("train/loss").step.tolist() == [0, 1, 2, 3, 4, 5]
    assert lost.series(["train/loss"])["train/loss"].isna().tolist() == [False] * 5 + [True]
    assert lost.val().equals(study.val(lost.name))
    assert lost.probes().equals(study.probes(runs=lost.name))


def test_the_stable_twin(study: Study) -> None:
    for run in study.select("lr>0.001").run:
        twin, own = study.twin(run), study.run(run)
        assert (twin.arm, twin.seed, twin.lr, twin.verdict) == (own.arm, own.seed, 0.001, "stable")
    assert study.runs.set_index("run").twin.dropna().to_dict() == {
        run: study.twin(run).name for run in study.select("lr>0.001").run
    }
    with pytest.raises(UserError, match=r"best learning rate \(0.001\) itself"):
        study.twin(study.select(lr=0.001).run[0])


def test_no_twin_where_the_best_run_of_a_seed_is_not_stable(study: Study, tmp_path: Path) -> None:
    best = find_run(tmp_path, "s/000000000001")  # none, 0.001, seed 1
    best.summary.write_text(best.summary.read_text().replace('"stable"', '"spiked"'))
    again = ablate.load_study(study.path)
    with pytest.raises(UserError, match="no run of seed 1 is stable"):
        again.twin(again.select(bias="none", lr=0.1, seed=1).run[0])
    assert again.twin(again.select(bias="none", lr=0.1, seed=0).run[0]).seed == 0


def test_other_thresholds_give_other_verdicts(study: Study) -> None:
    run = study.run("000000000000")
    with pytest.raises(UserError, match="try: giveback"):
        run.judge(givback=1)
    assert run.judge() == run.judge(cap=0.05)
    assert (run.judge().kind, run.judge(cap=30.0).kind) == ("stable", "undertrained")


def test_repetitions_with_their_rows(study: Study) -> None:
    run = study.run("000000000004")
    assert run.reruns == ()
    with pytest.raises(UserError, match="never repeated"):
        study.run(f"{run.name}/reruns/001")
    made.repeat(find_run(study.path.parent, f"s/{run.name}"), "none", 0.1, 0, start=2)
    (again,) = run.reruns
    assert (again.name, again.from_step, run.from_step) == (f"{run.name}/reruns/001", 2, 0)
    assert again.series("train/loss").run.unique().tolist() == [again.name]
    assert study.run(again.name).path == again.path
    with pytest.raises(UserError, match="001"):
        study.run(f"{run.name}/reruns/009")
