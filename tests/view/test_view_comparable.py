"""Runs of other data or other numerics are never put into one table, and never dropped silently."""

import shutil
from pathlib import Path

import pytest
from view_studies import product, record

from ablate import load_study
from ablate.api.frames import CopiedRun
from ablate.record import RunFolder, read_json, write_json
from ablate.view import Analysis, Arms, read_all_facts, reading_notes, write_report
from ablate.view.frames import frames
from ablate.view.recorded import short_facts
from ablate.view.report import study_results
from ablate.view.report.provenance import Provenance
from ablate.view.report.tables import runs_table


def with_fingerprint(folder: RunFolder, digit: str) -> RunFolder:
    meta = read_json(folder.meta)
    write_json(folder.meta, {**meta, "data": {"fingerprint": digit * 64}})
    return folder


def test_other_data_behind_the_same_keys_are_left_out_and_named(tmp_path: Path) -> None:
    product(tmp_path, ["none", "all"], [0.01, 0.1], [0, 1])
    with_fingerprint(record(tmp_path, 90, seed=2), "a")
    found = study_results(tmp_path, "s")
    assert [run.run_id for run, _ in found.left_out] == [f"{90:012x}"]
    assert len(found.runs) == 8
    assert any("1 run left out" in note for note in reading_notes(found))
    page = write_report(tmp_path, "s").read_text(encoding="utf-8")
    assert "fingerprint aaaaaaaa (the others: ffffffff)" in page
    assert "1 run cannot be compared" in page


def test_the_side_with_more_finished_runs_is_kept(tmp_path: Path) -> None:
    with_fingerprint(record(tmp_path, 0, seed=0), "a")
    with_fingerprint(record(tmp_path, 1, seed=1), "b")
    with_fingerprint(record(tmp_path, 2, seed=2), "b")
    assert {run.fingerprint for run in study_results(tmp_path, "s").runs} == {"b" * 64}


def test_data_that_a_key_asks_for_are_a_factor(tmp_path: Path) -> None:
    with_fingerprint(record(tmp_path, 0, data={"vocab_size": 300}), "a")
    with_fingerprint(record(tmp_path, 1, data={"vocab_size": 600}), "b")
    found = study_results(tmp_path, "s")
    assert found.left_out == ()
    assert [arm.name for arm in found.arms] == ["vocab_size=300", "vocab_size=600"]


def test_other_numerics_are_left_out(tmp_path: Path) -> None:
    product(tmp_path, ["none"], [0.01, 0.1], [0, 1])
    (tmp_path / "s" / "requests").mkdir()
    ids = [f"{n:012x}" for n in range(4)]
    write_json(tmp_path / "s" / "requests" / "1.json", {"run_ids": ids[:3], "science_version": 1})
    write_json(tmp_path / "s" / "requests" / "2.json", {"run_ids": ids[3:], "science_version": 2})
    found = study_results(tmp_path, "s")
    assert [(run.run_id, why) for run, why in found.left_out] == [
        (ids[3], "science version 2 (the others: 1)")
    ]


@pytest.mark.parametrize("first", ["done", "queued"])
def test_a_queued_repetition_of_a_done_run_counts_once(tmp_path: Path, first: str) -> None:
    done, queued = (0, 1) if first == "done" else (1, 0)
    record(tmp_path, done)
    record(tmp_path, queued, verdict=None, state=None)
    found = study_results(tmp_path, "s")
    assert [run.run_id for run in found.runs] == [f"{done:012x}"]
    assert [why for _, why in found.left_out] == [f"the same configuration as {done:012x}"]


@pytest.mark.parametrize("name", ["copy", "old"])
def test_a_copied_folder_leaves_the_first_of_its_id(tmp_path: Path, name: str) -> None:
    product(tmp_path, ["none"], [0.01, 0.1], [0, 1])
    run_id = f"{0:012x}"
    original, copy = tmp_path / "s" / f"made-{run_id}", tmp_path / "s" / f"{name}-{run_id}"
    shutil.copytree(original, copy)
    first, other = sorted((original, copy))
    found = study_results(tmp_path, "s")
    assert sorted(run.run_id for run in found.runs) == [f"{n:012x}" for n in range(4)]
    assert first in {run.folder.path for run in found.runs}
    why = f"folder {other.name} has the id of {first.name}"
    assert [(run.folder.path, said) for run, said in found.left_out] == [(other, why)]
    (runs,) = (frame for frame in frames(found, Analysis.of(found)) if frame.name == "runs")
    places = runs.columns.index("left_out"), runs.columns.index("arm")
    told = {row[-1]: [row[place] for place in places] for row in runs.rows}
    assert told[other.name] == [why, None]
    assert told[first.name] == [None, found.arms[0].name]
    listed = {row[-2]: row[0] for row in runs_table(found).rows}
    assert listed[f"s/{other.name}"] == "-"
    assert listed[f"s/{first.name}"] != "-"
    with pytest.warns(CopiedRun, match=why):
        study = load_study(tmp_path / "s")
    assert sorted(study.runs.path) == sorted(str(run.folder.path) for run in found.runs)


ODD = (["x"], {"x": 1}, 5, "x")
PARTS = (
    ("config",), ("data",), ("data", "fingerprint"), ("data", "unigram_entropy"), ("model",),
    ("model", "linear_biases"), ("environment",), ("environment", "versions"), ("environment", "git"),
    ("environment", "versions", "torch"), ("environment", "git", "sha"), ("device",), ("threads",),
)  # fmt: skip


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_parts_of_meta_of_a_wrong_type_are_absent(tmp_path: Path, odd: object) -> None:
    """One run for each part that is odd, beside whole ones with the same keys."""
    for number, part in enumerate(((), ("data", "val_tokens"), *PARTS)):
        folder = record(tmp_path, number, seed=number)
        meta = {
            **read_json(folder.meta),
            "model": {"parameters": 10, "non_embedding": 5, "linear_biases": 1, "norm_biases": 0},
            "environment": {"versions": {"torch": "2"}, "git": {"sha": "a" * 40}},
        }
        home = meta
        for name in part[:-1]:
            home = home[name]
        if part:
            home[part[-1]] = odd
        write_json(folder.meta, meta)
    runs = read_all_facts(tmp_path, "s")
    Arms.of(runs)
    assert {run.fingerprint for run in runs} <= {None, "f" * 64, *(x for x in ODD if isinstance(x, str))}
    found = study_results(tmp_path, "s")
    assert "torch" in {name for name, _ in Provenance.of(found).setting}
    assert len(load_study(tmp_path / "s").runs) == len(runs)
    for run in runs:
        short_facts(read_json(run.folder.meta))
