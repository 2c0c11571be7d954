"""Curve, verdict, summary, comparison and surroundings of recorded runs."""

import json
import math
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ablate
from ablate.config import UserError
from ablate.record import (
    Claim,
    Difference,
    Run,
    RunFolder,
    Series,
    SeriesWriter,
    State,
    code_sha,
    compare_environments,
    compare_series,
    environment,
    read_series,
    summarise,
    surroundings,
    write_json,
)
from ablate.verdict import Kind

COLUMNS = ("step", "train/loss", "train/unigram", "grad/norm", "out/b00_q", "out/head")
PROBES = ("step", "attn/b00_max_logit", "attn/b01_max_logit", "logit/max", "update/b00_q")


def record(
    folder: RunFolder,
    losses: Sequence[float],
    val: Sequence[tuple[int, float]],
    first: int = 0,
    probes: Sequence[Sequence[float]] = (),
) -> Run:
    """A run of up to 20 steps with the given losses from step `first` on."""
    claim = Claim.take(folder)
    with SeriesWriter(claim, "", COLUMNS, first) as writer:
        writer.append([[first + i, x, 5.5, abs(x) / 2, math.exp(0.1 * i), 2.0] for i, x in enumerate(losses)])
    with SeriesWriter(claim, "val", ("step", "val/loss"), first) as writer:
        writer.append([list(row) for row in val])
    with SeriesWriter(claim, "probe", PROBES, first) as writer:
        writer.append([[10 * i, *row] for i, row in enumerate(probes)])
    write_json(folder.meta, {"data": {"unigram_entropy": 5.4}})
    claim.finish(State.done)
    return Run(folder)


HEALTHY = [6.0 - 0.2 * i for i in range(20)]


def test_the_curve_is_what_the_files_say(folder: RunFolder) -> None:
    curve = record(folder, HEALTHY, [(0, 6.1), (10, 4.0), (20, 2.5)]).curve()
    assert (curve.steps, curve.warmup, curve.unigram, curve.complete) == (20, 2, 5.4, True)
    assert curve.loss_R.tolist() == HEALTHY
    assert curve.unigram_R.tolist() == [5.5] * 20
    assert curve.grad_R.tolist() == [x / 2 for x in HEALTHY]
    assert curve.val_step_E.tolist() == [0, 10, 20]
    assert curve.val_loss_E.tolist() == [6.1, 4.0, 2.5]


@pytest.mark.parametrize(("rows", "val"), [(19, [(0, 6.0), (20, 3.0)]), (20, [(0, 6.0), (10, 3.0)])])
def test_a_run_that_lacks_its_end_is_not_complete(
    folder: RunFolder, rows: int, val: list[tuple[int, float]]
) -> None:
    assert not record(folder, HEALTHY[:rows], val).curve().complete


def test_a_run_that_has_not_begun_has_an_empty_curve(folder: RunFolder) -> None:
    run = Run(folder)
    curve = run.curve()
    assert (len(curve.loss_R), len(curve.val_loss_E), curve.complete) == (0, 0, False)
    assert math.isnan(curve.unigram)
    assert (run.meta, run.summary, run.status.state) == ({}, None, State.queued)
    assert run.verdict().kind is Kind.censored


def test_no_verdict_on_a_part_of_a_run(folder: RunFolder) -> None:
    with pytest.raises(UserError, match="begins at step 5"):
        record(folder, HEALTHY[:10], [], first=5).curve()


def test_no_verdict_on_a_record_with_gaps(folder: RunFolder) -> None:
    record(folder, HEALTHY, [])
    lines = folder.metrics().read_text().splitlines()
    folder.metrics().write_text("\n".join(lines[:5] + lines[6:]) + "\n")
    with pytest.raises(UserError, match="has gaps"):
        Run(folder).curve()


@pytest.mark.parametrize("content", ["[1]", '"x"', '{"data": 5}', '{"config": []}', "\xff", "{"])
def test_damaged_facts_are_named(folder: RunFolder, content: str) -> None:
    record(folder, HEALTHY, [])
    folder.meta.write_bytes(content.encode("latin-1"))
    with pytest.raises(UserError, match=r"meta\.json"):
        _ = Run(folder).meta
    folder.meta.write_text('{"data": {"unigram_entropy": []}}')
    with pytest.raises(UserError, match=r"unigram_entropy"):
        Run(folder).curve()
    folder.summary.write_text("[1]")
    with pytest.raises(UserError, match=r"summary\.json"):
        _ = Run(folder).summary


def test_the_summary_of_a_healthy_run(folder: RunFolder) -> None:
    probes = [(1.0, 3.0, 2.0, 0.1), (2.5, 7.5, 1.0, 0.9)]
    run = record(folder, HEALTHY, [(0, 6.1), (10, 2.25), (20, 2.5)], probes=probes)
    summary = summarise(run)
    assert summary["verdict"] == run.verdict().kind
    assert summary["reasons"] == list(run.verdict().reasons)
    assert (summary["first_bad_step"], summary["steps"], summary["planned_steps"]) == (None, 20, 20)
    assert summary["complete"] is True
    assert (summary["final/val/loss"], summary["final/val/step"]) == (2.5, 20)
    assert (summary["best/val/loss"], summary["best/val/step"]) == (2.25, 10)
    assert summary["final/train/loss"] == pytest.approx(np.mean(HEALTHY[-2:]))
    assert (summary["max/train/loss"], summary["max/grad/norm"]) == (6.0, 3.0)
    assert summary["max/attn/max_logit"] == 7.5
    assert summary["max/logit/max"] == 2.0
    assert "max/update/q" not in summary
    assert [k for k in summary if k.startswith("growth/")] == ["growth/b00_q", "growth/head"]
    assert summary["growth/b00_q"] == pytest.approx(0.1)
    assert summary["measures/u"] == 5.4


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_run_that_blew_up_has_a_finite_summary(folder: RunFolder, bad: float) -> None:
    losses = [*HEALTHY[:5], bad, bad]
    run = record(
        folder, losses, [(0, 6.1), (5, bad)], probes=[(math.nan, 1.0, bad, 0.5), (3.0, 2.0, 1.0, 1.0)]
    )
    summary = summarise(run)
    text = json.dumps(summary, allow_nan=False)  # strict JSON: no NaN, no Infinity
    assert "null" not in text.replace('"first_bad_step": null', "")
    assert (summary["verdict"], summary["first_bad_step"], summary["steps"]) == ("diverged", 5, 7)
    assert summary["final/val/loss"] == str(bad).replace("nan", "NaN").replace("inf", "Infinity")
    assert summary["max/attn/max_logit"] == "NaN"
    write_json(folder.summary, summary)
    assert Run(folder).summary == summary


def test_nan_is_never_the_best_loss(folder: RunFolder) -> None:
    summary = summarise(record(folder, HEALTHY, [(0, math.nan), (10, 4.0), (20, math.nan)]))
    assert (summary["best/val/loss"], summary["best/val/step"]) == (4.0, 10)


def test_a_run_without_rows_has_a_summary(folder: RunFolder) -> None:
    summary = summarise(record(folder, [], []))
    assert (summary["verdict"], summary["final/val/loss"], summary["final/train/loss"]) == (
        "censored",
        None,
        None,
    )


def test_other_thresholds_can_be_tried(folder: RunFolder) -> None:
    run = record(folder, HEALTHY, [(0, 6.1), (10, 5.2), (20, 5.2)])
    strict = replace(run.config.verdict, cap=0.9)
    assert run.verdict().kind is not run.verdict(strict).kind


def series(rows: Sequence[Sequence[float]], columns: Sequence[str] = ("step", "x", "y")) -> Series:
    return Series(tuple(columns), np.array(rows, dtype=np.float64).reshape(len(rows), len(columns)))


JUST_ABOVE = math.nextafter(4.0, 5.0)
BASE = [[0, 1.0, math.nan], [1, 0.0, -math.inf], [2, 3.0, 4.0]]


@pytest.mark.parametrize(
    ("other", "found"),
    [
        (series(BASE), None),
        (series(BASE[1:]), None),  # begins later
        (series([[0, 1.0, -math.nan], *BASE[1:]]), None),  # another NaN
        (series([[0, 1.0, math.nan], [1, -0.0, -math.inf], [2, 3.0, 4.0]]), Difference(1, "x", 0.0, -0.0)),
        (series([*BASE[:2], [2, 3.0, JUST_ABOVE]]), Difference(2, "y", 4.0, JUST_ABOVE)),
        (series([*BASE[:2], [2, 9.0, 9.0]]), Difference(2, "x", 3.0, 9.0)),
        (series(BASE[:2]), Difference(2, "step", 2.0, None)),
        (series([*BASE, [3, 1.0, 1.0]]), Difference(3, "step", None, 3.0)),
        (series([BASE[0], BASE[2]]), Difference(1, "step", 1.0, None)),
        (series([[7, 1.0, 1.0]]), Difference(7, "step", None, 7.0)),
        (series([]), Difference(0, "step", 0.0, None)),
        (series([[r[0], r[2], r[1]] for r in BASE], ("step", "y", "x")), None),  # columns in another order
        (series([r[:2] for r in BASE], ("step", "x")), Difference(0, "y", math.nan, None)),
    ],
)  # fmt: skip
def test_the_first_difference_of_two_series(other: Series, found: Difference | None) -> None:
    assert str(compare_series(series(BASE), other)) == str(found)


def test_a_comparison_can_be_limited_to_some_columns() -> None:
    other = series([[r[0], r[1], 5.0] for r in BASE])
    assert compare_series(series(BASE), other, ["x"]) is None
    assert compare_series(series(BASE), other, ["x", "y"]) is not None
    assert compare_series(series([]), series([])) is None
    assert compare_series(series(BASE), series([[r[0], r[1]] for r in BASE], ("step", "x")), ["x"]) is None


def test_a_rerun_from_a_later_step_is_compared_where_both_have_rows(
    tmp_path: Path, folder: RunFolder
) -> None:
    record(folder, HEALTHY, [])
    other = RunFolder(tmp_path / "other")
    shutil.copytree(folder.path, other.path, ignore=shutil.ignore_patterns("metrics*"))
    rows = read_series(folder.metrics()).values_RC[12:].tolist()
    with SeriesWriter(Claim.take(other), "", COLUMNS, 12) as writer:
        writer.append([[int(step), *values] for step, *values in rows])
    assert compare_series(read_series(folder.metrics()), read_series(other.metrics())) is None


def test_the_surroundings_are_named() -> None:
    found = environment()
    assert found["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert found["versions"]["numpy"] == np.__version__
    assert found["versions"]["ablate-bias"] == ablate.__version__
    assert found["code_sha"] == code_sha()
    assert found["cores"] >= 1
    json.dumps(found, allow_nan=False)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small package in place of this one."""
    place = tmp_path / "checkout" / "package"
    place.mkdir(parents=True)
    (place / "__init__.py").write_text("a = 1\n")
    (place / "more.py").write_text("b = 2\n")
    monkeypatch.setattr(surroundings, "package_folder", lambda: place)
    return place


def test_the_code_sha_changes_with_content_and_names_alone(package: Path) -> None:
    seen = [code_sha()]
    (package / "more.py").touch()
    (package / "data.json").write_text("{}")
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "more.pyc").write_bytes(b"x")
    assert code_sha() == seen[0]
    (package / "more.py").write_text("b = 3\n")
    seen.append(code_sha())
    (package / "more.py").rename(package / "less.py")
    seen.append(code_sha())
    (package / "sub").mkdir()
    (package / "sub" / "new.py").write_text("")
    seen.append(code_sha())
    assert len(set(seen)) == 4


def test_git_tells_commit_and_dirt_of_the_checkout_that_tracks_the_code(package: Path) -> None:
    def git(*arguments: str) -> str:
        who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        command = ["git", "-C", str(package.parent), *who, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    assert surroundings.git_state() is None
    git("init", "-q")
    assert surroundings.git_state() is None  # a checkout, but the package is no part of it
    git("add", ".")
    git("commit", "-qm", "x")
    assert surroundings.git_state() == {"sha": git("rev-parse", "HEAD"), "dirty": False}
    (package / "more.py").write_text("b = 4\n")
    assert surroundings.git_state() == {"sha": git("rev-parse", "HEAD"), "dirty": True}


def test_without_git_there_is_no_commit(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(package))
    assert surroundings.git_state() is None


def test_settings_that_differ_are_listed_in_words() -> None:
    meta = {
        "threads": 1,
        "device": "cpu",
        "environment": environment(),
        "config": {"seed": 0, "run.root": "a"},
    }
    assert compare_environments(meta, json.loads(json.dumps(meta))) == []
    other = json.loads(json.dumps(meta))
    other["threads"], other["config"]["run.root"] = 2, "b"
    other["environment"]["versions"]["torch"] = "1.0"
    other["environment"]["code_sha"] = None
    found = compare_environments(meta, other)
    assert found == [
        "threads: 1 and 2",
        f"code: {code_sha()[:12]} and unknown",
        f"torch version: {meta['environment']['versions']['torch']} and 1.0",
    ]
    assert compare_environments({}, {}) == []
