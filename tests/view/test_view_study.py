"""The study's tables: sensitivities, twins, departures, and what they say of themselves."""

import shlex
from pathlib import Path

import pytest
from view_studies import product, record

from ablate.config import Config, expand, run_id
from ablate.record import Run, State, write_json
from ablate.view import (
    Results,
    answer_command,
    reading_notes,
    results_table,
    sensitivity_table,
    study_runs,
    write_report,
)


def results(root: Path) -> Results:
    return Results.of(study_runs(root, "s"))


def run_id_of(config: Config) -> str:
    return run_id(config, "")


def test_points_depart_from_their_stable_twin(tmp_path: Path) -> None:
    product(tmp_path, ["none", "all"], [0.001, 0.01, 0.1], [0, 1])
    shown = results_table(results(tmp_path))
    assert shown.column("departs first") == ("stable twin", "none", "o from step 2") * 2
    assert any("Departs first: the site" in note for note in reading_notes(results(tmp_path)))
    assert shown.column("grown most")[0].startswith("b01_o ×1.00/")
    assert shown.column("grown most")[2].endswith(" ×inf")
    assert shown.column("verdict") == ("2 stable", "2 stable", "2 diverged") * 2


def test_sensitivity_is_averaged_over_whole_seeds(tmp_path: Path) -> None:
    product(tmp_path, ["none"], [0.001, 0.01, 0.1], [0, 1])
    record(tmp_path, 90, {"bias": "none"}, lr=0.001, seed=2)  # the other rates of seed 2 are missing
    (arm,) = results(tmp_path).arms
    assert set(arm.sensitivities) == {"0", "1"}
    expected = [((6 - 4.001 - 0.1 * seed) + 0.009) / 3 for seed in (0, 1)]
    (row,) = sensitivity_table(results(tmp_path)).rows
    assert float(row[3]) == pytest.approx(sum(expected) / 2, abs=6e-4)
    assert (row[1], row[4], row[6]) == ("0.001", "0.000", "2")


def test_without_a_stable_run_there_is_no_twin_and_the_growth_rate_stands_in(tmp_path: Path) -> None:
    for number, lr in enumerate([0.01, 0.1]):
        record(tmp_path, number, lr=lr, verdict="diverged", final=9.0, growth=1.2)
    shown = results_table(results(tmp_path))
    assert shown.column("departs first") == ("-", "-")
    assert shown.column("grown most")[0] == "b01_o ×6.19/10 steps"
    assert sensitivity_table(results(tmp_path)).column("LR sensitivity") == ("no rate trains",)


def test_verdicts_of_few_seeds_stand_in_their_order(tmp_path: Path) -> None:
    for seed, verdict in enumerate(["stable", "collapsed", "stable"]):
        record(tmp_path, seed, seed=seed, verdict=verdict)
    assert results_table(results(tmp_path)).column("verdict") == ("stable / collapsed / stable",)
    record(tmp_path, 9, seed=3)
    assert results_table(results(tmp_path)).column("verdict") == ("3 stable, 1 collapsed",)


def test_impaired_runs_are_named(tmp_path: Path) -> None:
    record(tmp_path, 0, lr=0.01, final=4.0)
    record(tmp_path, 1, lr=0.1, final=4.6)
    assert results_table(results(tmp_path)).column("verdict") == ("stable", "stable (impaired)")
    assert any("Impaired" in note for note in reading_notes(results(tmp_path)))


def test_an_uneven_grid_is_named(tmp_path: Path) -> None:
    product(tmp_path, ["none"], [0.01, 0.02, 0.5], [0])
    assert any("evenly" in note for note in reading_notes(results(tmp_path)))


def test_the_command_for_an_answer_is_the_last_request_with_more_seeds(tmp_path: Path) -> None:
    requests = tmp_path / "requests"
    requests.mkdir()
    words = ["ablate", "sweep", "experiment=bias_stability", "seed=0,1", "sweep.redo=true"]
    write_json(requests / "1.json", {"argv": ["other"], "run_ids": []})
    write_json(requests / "2.json", {"argv": words, "run_ids": []})
    expected = "ablate sweep experiment=bias_stability 'seed=range(0,8)'"
    assert answer_command(tmp_path, "s") == expected
    requests.joinpath("2.json").unlink()
    requests.joinpath("1.json").unlink()
    assert answer_command(tmp_path, "s").startswith("repeat the runs with other seeds")


def test_without_a_request_the_command_for_an_answer_asks_for_the_runs_own_settings(tmp_path: Path) -> None:
    product(tmp_path, ["none", "all"], [0.01, 0.1], [3])
    runs = study_runs(tmp_path, "s")
    command = answer_command(tmp_path / "s", "s", runs)
    expected = {run_id_of(Run(run.folder).config) for run in runs}
    words = [word for word in shlex.split(command)[2:] if not word.startswith("seed=")]
    assert {run_id_of(cell) for cell in expand([*words, "seed=3"]).cells} == expected
    assert command.endswith("optim.lr=0.01,0.1 'seed=range(0,8)'")
    record(tmp_path, 90, {"bias": "linear"}, lr=1.0)
    uneven = answer_command(tmp_path / "s", "s", study_runs(tmp_path, "s"))
    assert uneven.startswith("repeat the runs with other seeds")


def test_arms_stand_in_the_order_asked_for(tmp_path: Path) -> None:
    product(tmp_path, ["none", "all"], [0.01], [0])
    (tmp_path / "s" / "requests").mkdir()
    write_json(tmp_path / "s" / "requests" / "1.json", {"argv": [], "run_ids": ["000000000001"]})
    assert [arm.name for arm in results(tmp_path).arms] == ["bias=all", "bias=none"]


def test_a_study_that_is_going_on(tmp_path: Path) -> None:
    record(tmp_path, 0, lr=0.01)
    record(tmp_path, 1, lr=0.1, verdict=None, state=State.failed, reason="boom")
    record(tmp_path, 2, lr=1.0, verdict=None, state=None)
    shown = results_table(results(tmp_path))
    assert shown.column("verdict") == ("stable", "failed", "queued")
    assert sensitivity_table(results(tmp_path)).column("LR sensitivity") == ("-",)


def test_only_a_stable_run_is_a_twin(tmp_path: Path) -> None:
    for seed, verdict in enumerate(["stable", "spiked"]):
        record(tmp_path, 2 * seed, lr=0.01, seed=seed, verdict=verdict)
        record(tmp_path, 2 * seed + 1, lr=0.1, seed=seed, verdict="collapsed", final=5.0, growth=1.2)
    found = results(tmp_path)
    assert {run: twin.run_id for run, twin in found.twins.items()} == {"000000000001": "000000000000"}
    assert results_table(found).column("departs first") == ("stable twin", "o from step 4")


@pytest.mark.parametrize("spoil", ["missing", "text"])
def test_a_run_without_readable_rows_is_named(spoil: str, tmp_path: Path) -> None:
    product(tmp_path, ["none"], [0.01, 0.1], [0])
    whole = results(tmp_path)
    assert not whole.unreadable
    run = whole.runs[1].folder
    run.metrics().unlink() if spoil == "missing" else run.metrics().write_text("no rows\n")
    for cache in run.path.glob("metrics*.parquet"):
        cache.unlink()
    (note,) = (n for n in reading_notes(results(tmp_path)) if "cannot be read" in n)
    assert run.name in note
    assert f"({run.id}): " in write_report(tmp_path, "s").read_text(encoding="utf-8")
