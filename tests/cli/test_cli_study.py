"""A study as a whole: its plan, where it stands, what went wrong again, confounds refused."""

import json
import re
from pathlib import Path

import pytest

from ablate.record import Claim, RunFolder, State, find_runs, read_json, read_status, write_json
from ablate.sweep import freeze, plan


def test_a_study_is_planned_checked_trained_and_proved(ablate, tiny: tuple[str, ...]) -> None:
    request = ["sweep", *tiny, "model.bias=none,all", "optim.lr=logspace(1e-2,1e-1,2)"]
    shown = ablate(*request, "--plan")
    assert shown.code == 0
    assert "2 arms × 2 learning rates × 1 seed" in shown.out
    assert re.search(r"bias=none +2 +0 +2 +26,272 +none +26,112 +160 +\S+ +0\.7 MB", shown.out)
    assert re.search(r"bias=all +2 +0 +2 +27,008 +q:64 k:64 v:64 o:64 up:256 down:64 norm:160", shown.out)
    assert "factors: model.bias (2), optim.lr (2)" in shown.out
    assert "time unknown until a run is measured" in shown.out
    assert not Path("runs").exists()

    shown = ablate(*request)
    assert shown.code == 0, shown.err
    assert "models of 26,272 to 27,008 parameters, 0 to 736 of them biases" in shown.out
    assert "paired: 2 sets of runs that differ only in their biases begin with the same loss" in shown.out
    meta = read_json(find_runs(Path("runs"), "t")[0].meta)
    assert meta["model"]["parameters"] in (26_272, 27_008)
    check_broken_pair(ablate, request)
    check_growing(ablate, request)
    check_other_vocabulary(ablate, tiny)


def check_broken_pair(ablate, request: list[str]) -> None:
    folder = next(f for f in find_runs(Path("runs"), "t") if "bias=none" in f.name)
    meta = read_json(folder.meta)
    write_json(folder.meta, {**meta, "initial_loss": meta["initial_loss"] + 1e-3})
    shown = ablate(*request)
    assert "WARNING: 1 of 2 sets" in shown.err
    assert "0.001 nats" in shown.err
    write_json(folder.meta, meta)


def check_growing(ablate, request: list[str]) -> None:
    shown = ablate(*request, "seed=0,1", "--plan")
    assert "4 of them done already (skipped), 4 to train" in shown.out
    together = r"(one run after another|\d+ runs at once)"
    assert re.search(rf"to train: 4 runs, about \d+ s, {together}, by 4 runs measured here", shown.out)


def check_other_vocabulary(ablate, tiny: tuple[str, ...]) -> None:
    before = sorted(path.name for path in Path("runs/t").iterdir())
    shown = ablate("sweep", *tiny, "data.vocab_size=48", "seed=0,1")
    assert shown.code == 2
    assert "data.vocab_size (32, 48; the study holds the first" in shown.err
    assert "sweep.allow='[data.vocab_size]'" in shown.err
    assert sorted(path.name for path in Path("runs/t").iterdir()) == before
    assert ablate("sweep", *tiny, "data.vocab_size=48", "sweep.allow=[data.vocab_size]", "--plan").code == 0


def four(tiny: tuple[str, ...]) -> list[RunFolder]:
    """A done, a failed, a stopped and a queued run."""
    done, failed, stopped, queued = freeze(plan([*tiny, "seed=0,1,2,3"]))
    Claim.take(done).finish(State.done)
    Claim.take(failed).finish(State.failed, "no such device")
    Claim.take(stopped).finish(State.preempted)
    return [done, failed, stopped, queued]


def states(folders: list[RunFolder]) -> list[str]:
    return [str(read_status(folder).state) for folder in folders]


def test_status_counts_and_names_causes(ablate, tiny: tuple[str, ...]) -> None:
    folders = four(tiny)
    claim = Claim.take(folders[3])
    request = Path("runs/t/requests")
    request.mkdir()
    (request / "x.json").write_text(json.dumps({"run_ids": [folders[0].id, "0" * 12]}))
    shown = ablate("status", "t")
    assert shown.code == 0
    assert "5 runs: 1 running, 1 done, 1 failed, 1 preempted, 1 missing" in shown.out
    assert re.search(rf"{folders[1].id} +failed +1 +no such device", shown.out)
    assert f"{claim.owner.pid} on {claim.owner.host}" in shown.out
    assert re.search(r"0/\? +- +-", shown.out)
    claim.finish(State.done)
    assert "running" not in ablate("status", "t", "--watch").out
    refused = ablate("status", "tt")
    assert (refused.code, "try: t" in refused.err) == (2, True)


@pytest.mark.parametrize("name", ["t", "t/", "runs/t", "./runs/t/", "."])
def test_a_study_is_known_by_its_folder_too(
    name: str, ablate, tiny: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Claim.take(four([*tiny, f"run.root={tmp_path / 'runs'}"])[3]).finish(State.done)
    if name == ".":
        monkeypatch.chdir("runs/t")
    assert "4 runs: 2 done, 1 failed, 1 preempted" in ablate("status", name).out
    assert len(json.loads(ablate("ls", name, "--json").out)) == 4
    assert ablate("show", name).out.startswith("study t")
    refused = ablate("rerun", name)
    assert (refused.code, "is a study" in refused.err, "try: ablate ls t" in refused.err) == (2, True, True)


@pytest.mark.parametrize("command", ["status", "ls", "retry", "report"])
def test_a_study_that_is_not_there_is_named(command: str, ablate, tiny: tuple[str, ...]) -> None:
    four(tiny)
    for name in ("runs/x", "", "tt"):
        shown = ablate(command, name)
        assert (shown.code, shown.err.startswith("error: ")) == (2, True)
        assert "t" in shown.err.splitlines()[-1]


def test_watching_outlasts_the_moments_between_runs(
    ablate, tiny: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = four(tiny)[3]
    looks: list[float] = []
    claims: list[Claim] = []

    def begin(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            claims.append(Claim.take(waiting))
        elif len(looks) == 5:
            claims[0].finish(State.done)

    monkeypatch.setattr("ablate.cli.status.time.sleep", begin)
    shown = ablate("status", "t", "--watch", "--every", "3")
    assert (shown.code, len(looks)) == (0, 5)
    assert shown.out.count("4 runs:") == 6
    assert "nothing has run" not in shown.out


def test_watching_a_study_that_nobody_launches_comes_to_an_end(
    ablate, tiny: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    four(tiny)
    monkeypatch.setattr("ablate.cli.status.time.sleep", lambda _: None)
    assert "nothing has run for 30 s" in ablate("status", "t", "--watch", "--every", "5").out


@pytest.mark.parametrize(
    ("option", "expected"), [((), ["done", "done"]), (("--failed",), ["done", "preempted"])]
)
def test_retry_launches_what_went_wrong_as_it_was_frozen(
    ablate, tiny: tuple[str, ...], option: tuple[str, ...], expected: list[str]
) -> None:
    folders = four(tiny)
    before = [folder.config.read_text() for folder in folders]
    shown = ablate("retry", "t", *option)
    assert shown.code == 0, shown.err + shown.out
    assert ("(1 failed, 1 preempted)" if not option else "(1 failed)") in shown.out
    assert states(folders) == ["done", *expected, "queued"]
    assert [folder.config.read_text() for folder in folders] == before
    shown = ablate("retry", "t", "--failed")
    assert (shown.code, "nothing to launch again" in shown.out) == (0, True)
