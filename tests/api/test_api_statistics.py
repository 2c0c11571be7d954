"""The statistics of a study as tables: those of the report, and of plain arithmetic."""

import csv
import io
import math
import shutil
from pathlib import Path

import api_records as made
import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_rel

import ablate
from ablate.api import Study
from ablate.config import UserError
from ablate.record import find_run
from ablate.view.analysis import Analysis
from ablate.view.frames import csv_text, frames
from ablate.view.report import study_runs
from ablate.view.results import Results

SEEDS = range(6)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Two arms, two rates, six seeds; biases lower the loss at 0.01 by a tenth and a little by seed."""
    root = tmp_path_factory.mktemp("made")
    number = 0
    for bias, gain in (("none", 0.0), ("all", -0.1)):
        for lr in made.RATES[:2]:
            for seed in SEEDS:
                folder = made.record(root, number, bias, lr, seed)
                text = folder.summary.read_text()
                final = made.loss(lr, seed, made.STEPS)
                moved = final + (gain + 0.01 * (seed % 3) * (gain < 0) if lr == 0.01 else 0.5)
                folder.summary.write_text(
                    text.replace(f'"final/val/loss": {final}', f'"final/val/loss": {moved}')
                )
                number += 1
    return ablate.load_study(root / "s")


def test_an_effect_is_the_mean_difference_paired_by_seed(study: Study) -> None:
    (row,) = study.effects("best_loss", "main").itertuples()
    runs = study.select(lr=0.01).pivot(index="seed", columns="bias", values="final_val")
    differences = runs["all"] - runs["none"]
    assert row.n == 6
    assert row.mean == pytest.approx(differences.mean())
    reference = ttest_rel(runs["all"], runs["none"])
    assert row.p == pytest.approx(reference.pvalue)
    assert (row.low, row.high) == pytest.approx(tuple(reference.confidence_interval()))
    assert row.contrast == "bias: all − none"


def test_arms_and_seeds(study: Study) -> None:
    arms = study.arms
    assert list(arms[arms.response == "best_loss"].arm) == ["bias=none", "bias=all"]
    by_seed = study.by_seed
    assert by_seed.seed.tolist() == [*SEEDS, *SEEDS]
    for row in by_seed.itertuples():
        own = study.select(lr=0.01, seed=row.seed)
        wanted = own[own.arm == row.arm].final_val.iloc[0]
        assert row.loss_at_best_lr == pytest.approx(wanted)
    means = by_seed.groupby("arm").sensitivity.mean()
    of_arms = arms[arms.response == "sensitivity"].set_index("arm")["mean"]
    assert means.to_dict() == pytest.approx(of_arms.to_dict())


def test_the_same_numbers_as_the_reports_files(study: Study) -> None:
    results = Results.of(study_runs(study.path.parent, study.name))
    files = {frame.name: frame for frame in frames(results, Analysis.of(results))}
    for name, table in (("arms", study.arms), ("effects", study.effects()), ("floor", study.floor)):
        rows = list(csv.DictReader(io.StringIO(csv_text(files[name]))))
        assert len(rows) == len(table)
        for row, own in zip(rows, table.to_dict("records"), strict=True):
            for key, text in row.items():
                cell = own[key]
                if isinstance(cell, bool | np.bool_):
                    assert text == str(cell).lower()
                elif isinstance(cell, float | int):
                    assert (math.nan if text == "" else float(text)) == pytest.approx(cell, nan_ok=True)
                else:
                    assert text == ("" if cell is None or pd.isna(cell) else cell)


def test_rows_are_chosen_and_holm_is_over_the_whole_family(study: Study) -> None:
    every, few = study.effects(), study.effects("sensitivity")
    assert set(every.response) >= {"ln_lr_half", "sensitivity", "unstable", "best_loss"}
    pd.testing.assert_frame_equal(few, every[every.response == "sensitivity"].reset_index(drop=True))
    with pytest.raises(UserError, match="try: sensitivity"):
        study.effects("sensitivty")
    with pytest.raises(UserError, match="main, interaction"):
        study.effects(kind="three-way")


def test_twins_and_impairment_are_the_reports(study: Study, tmp_path: Path) -> None:
    home = Path(shutil.copytree(study.path, tmp_path / "s"))
    broken = find_run(tmp_path, "s/000000000006")
    broken.summary.write_text(broken.summary.read_text().replace('"stable"', '"collapsed"'))
    found = ablate.load_study(home)
    results = Results.of(study_runs(tmp_path, "s"))
    runs = found.runs.set_index("run")
    assert runs.twin.dropna().to_dict() == {run: twin.run_id for run, twin in results.twins.items()}
    assert set(runs.index[runs.impaired.fillna(False)]) == set(results.impaired)


def test_few_seeds_describe(tmp_path: Path) -> None:
    study = ablate.load_study(made.study(tmp_path))
    effects = study.effects()
    assert set(effects.n) <= {0, 1, 2}
    assert effects[["low", "high", "p", "p_holm", "mde"]].isna().all(axis=None)
    assert effects.low.dtype == np.float64


def test_a_study_without_ended_runs_has_empty_statistics(tmp_path: Path) -> None:
    (tmp_path / "s" / "requests").mkdir(parents=True)
    study = ablate.load_study(tmp_path / "s")
    assert study.arms.empty
    assert study.effects().empty
