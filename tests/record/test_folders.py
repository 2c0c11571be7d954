"""Making and finding run folders: whole, once, and never over a different experiment."""

import json
import multiprocessing
import os
import time
from collections import Counter
from pathlib import Path

import pytest

from ablate.config import UserError, dump, load, parse
from ablate.record import (
    Claim,
    RunFolder,
    State,
    create_rerun,
    create_run,
    find_run,
    find_runs,
    find_studies,
    read_status,
    write_request,
)

ID = "0123456789ab"


def files(folder: RunFolder) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.path.iterdir()}


def test_a_new_run_is_queued_with_its_configuration(tmp_path: Path, config_text: str) -> None:
    folder = create_run(tmp_path, "study", "lr=0.1", ID, config_text, code_sha="c0de")
    assert folder.path == tmp_path / "study" / f"lr=0.1-{ID}"
    assert (folder.name, folder.study, folder.id) == (f"lr=0.1-{ID}", "study", ID)
    assert folder.config.read_text() == config_text
    assert sorted(files(folder)) == ["config.yaml", "status.json"]
    assert (read_status(folder).state, read_status(folder).code_sha) == (State.queued, "c0de")
    claim = Claim.take(folder)
    claim.finish(State.preempted)
    assert read_status(folder).code_sha == "c0de"
    assert [p.name for p in folder.path.parent.iterdir()] == [folder.name]


def test_the_same_run_is_found_whatever_its_slug(tmp_path: Path, config_text: str) -> None:
    folder = create_run(tmp_path, "study", "one", ID, config_text)
    before = files(folder)
    assert create_run(tmp_path, "study", "other", ID, config_text) == folder
    assert create_run(tmp_path, "study", "one", ID, config_text) == folder
    assert files(folder) == before
    assert create_run(tmp_path, "study2", "one", ID, config_text) != folder


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("slug", ["slug", "other"])
def test_another_experiment_under_the_same_id_is_refused(folder: RunFolder, begun: bool, slug: str) -> None:
    if begun:
        Claim.take(folder).finish(State.done)
    before = files(folder)
    foreign = dump(parse({"optim": {"steps": 20, "warmup": 2, "lr": 0.5}}))
    with pytest.raises(UserError, match="another experiment") as caught:
        create_run(folder.path.parents[1], "study", slug, ID, foreign)
    assert str(folder.config) in str(caught.value)
    assert files(folder) == before


@pytest.mark.parametrize("content", ["optim: {lrr: 1}\n", "nonsense: [", "schema_version: 999\n", "\xff"])
def test_an_unreadable_configuration_under_the_same_id_is_refused(
    folder: RunFolder, config_text: str, content: str
) -> None:
    folder.config.write_bytes(content.encode("latin-1"))
    before = files(folder)
    with pytest.raises(UserError):
        create_run(folder.path.parents[1], "study", "slug", ID, config_text)
    assert files(folder) == before


@pytest.mark.parametrize("begun", [False, True])
def test_other_settings_are_renewed_until_the_run_begins(folder: RunFolder, begun: bool) -> None:
    if begun:
        Claim.take(folder).finish(State.preempted)
    raw = {"optim": {"steps": 20, "warmup": 2}, "probe": {"every": 3}, "run": {"notes": "denser"}}
    again = create_run(folder.path.parents[1], "study", "slug", ID, dump(parse(raw)))
    assert again == folder
    assert load(folder.config).probe.every == (10 if begun else 3)
    assert sorted(files(folder)) == sorted(["config.yaml", "status.json", *(["claim.1"] if begun else [])])


def test_a_folder_without_configuration_is_not_overwritten(tmp_path: Path, config_text: str) -> None:
    (tmp_path / "study" / f"slug-{ID}").mkdir(parents=True)
    (tmp_path / "study" / f"slug-{ID}" / "mine.txt").write_text("keep")
    with pytest.raises(UserError, match="in the way"):
        create_run(tmp_path, "study", "slug", ID, config_text)
    assert (tmp_path / "study" / f"slug-{ID}" / "mine.txt").read_text() == "keep"


@pytest.mark.parametrize(
    ("study", "slug", "run_id"),
    [("../x", "s", ID), ("", "s", ID), (".x", "s", ID), ("requests", "s", ID), ("a/b", "s", ID),
     ("a\n", "s", ID), ("a", "s/../..", ID), ("a", "s\0", ID), ("a", ".s", ID),
     ("a", "s", "xyz"), ("a", "s", ID.upper())],
)  # fmt: skip
def test_names_that_are_no_plain_names_are_refused(
    tmp_path: Path, study: str, slug: str, run_id: str
) -> None:
    with pytest.raises(UserError):
        create_run(tmp_path / "root", study, slug, run_id, "x: 1\n")
    assert not list(tmp_path.rglob("config.yaml"))


def make(root: str, text: str, ids: list[str], start: float) -> list[str]:
    """Make every run at its moment."""
    made = []
    for i, run_id in enumerate(ids):
        while time.time() < start + i * 0.01:
            pass
        made.append(str(create_run(Path(root), "study", "slug", run_id, text).path))
    return made


def test_callers_at_once_get_the_same_folders(tmp_path: Path, config_text: str) -> None:
    ids = [f"{i:012x}" for i in range(40)]
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        pool.map(len, ["warm"] * 6)
        job = (str(tmp_path), config_text, ids, time.time() + 0.5)
        made = pool.starmap(make, [job] * 3, chunksize=1)
    assert made[0] == made[1] == made[2]
    assert sorted(p.name for p in (tmp_path / "study").iterdir()) == [f"slug-{i}" for i in ids]
    assert all(read_status(f).state is State.queued for f in find_runs(tmp_path))


@pytest.mark.parametrize("foreign", [False, True])
def test_a_folder_that_appears_while_one_is_built_is_taken(
    tmp_path: Path, config_text: str, monkeypatch: pytest.MonkeyPatch, foreign: bool
) -> None:
    real = os.rename
    theirs = dump(parse({"optim": {"steps": 20, "warmup": 2, "lr": 0.5}})) if foreign else config_text

    def late(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "rename", real)
        create_run(tmp_path, "study", "slug", ID, theirs, code_sha="first")
        real(source, target)

    monkeypatch.setattr(os, "rename", late)
    if foreign:
        with pytest.raises(UserError, match="another experiment"):
            create_run(tmp_path, "study", "slug", ID, config_text)
    else:
        folder = create_run(tmp_path, "study", "slug", ID, config_text, code_sha="second")
        assert read_status(folder).code_sha == "first"
    assert [p.name for p in (tmp_path / "study").iterdir()] == [f"slug-{ID}"]


def test_reruns_are_numbered_and_carry_the_id_of_their_run(folder: RunFolder, config_text: str) -> None:
    first, second = create_rerun(folder, config_text), create_rerun(folder, config_text)
    assert [r.path.name for r in (first, second)] == ["001", "002"]
    assert second.path.parent == folder.reruns
    assert (second.id, second.study, second.name) == (ID, "study", f"slug-{ID}/reruns/002")
    assert read_status(second).state is State.queued
    assert find_runs(folder.path.parents[1]) == [folder]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for study, slug, run_id in [
        ("bias", "none", "aa0000000001"),
        ("bias", "linear", "aa0000000002"),
        ("bias", "linear-lr=0.1", "bb0000000001"),
        ("norm", "rms", "cc0000000001"),
        ("norm", "none", "aa0000000001"),
    ]:
        create_run(tmp_path, study, slug, run_id, "x: 1\n")
    (tmp_path / "norm" / "requests").mkdir()
    (tmp_path / "norm" / "notes-by-hand").mkdir()
    (tmp_path / "norm" / f".rms-{ID}.tmp").mkdir()
    (tmp_path / "file").write_text("no folder")
    return tmp_path


def test_all_runs_and_studies_are_found(runs: Path) -> None:
    assert [f"{r.study}/{r.name}" for r in find_runs(runs)] == [
        "bias/linear-aa0000000002",
        "bias/linear-lr=0.1-bb0000000001",
        "bias/none-aa0000000001",
        "norm/none-aa0000000001",
        "norm/rms-cc0000000001",
    ]
    assert [r.study for r in find_runs(runs, "norm")] == ["norm", "norm"]
    assert find_studies(runs) == ["bias", "norm"]
    assert find_runs(runs, "nowhere") == []
    assert find_runs(runs / "nowhere") == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("bb", "bias/linear-lr=0.1-bb0000000001"),
        ("cc0000000001", "norm/rms-cc0000000001"),
        ("rms", "norm/rms-cc0000000001"),
        ("norm/aa0000000001", "norm/none-aa0000000001"),
        ("bias/none", "bias/none-aa0000000001"),
        ("bias/linear-aa0000000002", "bias/linear-aa0000000002"),
        ("linear-aa0000000002", "bias/linear-aa0000000002"),
    ],
)
def test_a_run_is_found_by_what_people_type(runs: Path, text: str, found: str) -> None:
    run = find_run(runs, text)
    assert f"{run.study}/{run.name}" == found


def test_a_run_is_found_by_its_path(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(runs)
    assert find_run(Path("elsewhere"), "norm/rms-cc0000000001/").id == "cc0000000001"


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        ("aa0000000001", ["bias/aa0000000001", "norm/aa0000000001"]),
        ("linear", ["linear-aa", "linear-lr=0.1-bb"]),
    ],
)
def test_an_ambiguous_name_lists_what_it_could_mean(runs: Path, text: str, listed: list[str]) -> None:
    with pytest.raises(UserError, match="fits 2 runs") as caught:
        find_run(runs, text)
    lines = str(caught.value).splitlines()
    assert all(sum(name in line for line in lines) == 1 for name in listed)


@pytest.mark.parametrize(
    ("text", "nearest"),
    [("cc0000000011", "norm/rms-cc"), ("bias/nnoe-aa0000000001", "bias/none-aa"), ("zzzz", "ablate ls")],
)
def test_an_unknown_run_suggests_the_nearest(runs: Path, text: str, nearest: str) -> None:
    with pytest.raises(UserError, match="no run") as caught:
        find_run(runs, text)
    assert nearest in str(caught.value)


@pytest.mark.parametrize("text", ["", "/", "x"])
def test_an_empty_place_or_name_is_a_clear_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError, match="no run"):
        find_run(tmp_path, text)


def test_requests_are_kept_apart(tmp_path: Path) -> None:
    paths = [
        write_request(tmp_path, "study", ["sweep", "seed=0,1"], {"seed": [0, 1]}, {"optim.lr": 0.1}, [ID])
        for _ in range(3)
    ]
    assert Counter(p.parent for p in paths) == {tmp_path / "study" / "requests": 3}
    assert len(set(paths)) == 3
    request = json.loads(paths[0].read_text())
    assert request["argv"] == ["sweep", "seed=0,1"]
    assert request["factors"] == {"seed": [0, 1]}
    assert request["base"] == {"optim.lr": 0.1}
    assert request["run_ids"] == [ID]


def test_a_path_is_understood_from_wherever_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "runs" / "norm" / "rms-cc0000000001"
    (home / "reruns" / "001").mkdir(parents=True)
    for folder in (home, home / "reruns" / "001"):
        (folder / "config.yaml").write_text("")
    monkeypatch.chdir(home / "reruns")
    for text, name in (
        ("..", home.name),
        ("../reruns/001", f"{home.name}/reruns/001"),
        ("001/.", f"{home.name}/reruns/001"),
    ):
        found = find_run(Path("runs"), text)
        assert (found.study, found.id, found.name) == ("norm", "cc0000000001", name)
