"""From overrides to cells, against what the study's folder holds."""

import shutil
from pathlib import Path

import pytest

from ablate.config import UserError, load
from ablate.record import Claim, RunFolder, State, find_runs, read_status, write_json
from ablate.sweep import Plan, freeze, plan, plan_cells, unrecorded


def finish(folder: RunFolder) -> None:
    Claim.take(folder).finish(State.done)


def states(the_plan: Plan) -> list[str]:
    return [str(cell.state) for cell in the_plan.cells]


def test_duplicates_are_merged_and_nothing_is_written(tiny: list[str], tmp_path: Path) -> None:
    the_plan = plan([*tiny, "optim.lr=3e-3,0.003,0.1", "seed=0,1"])
    assert (len(the_plan.cells), the_plan.duplicates) == (4, 2)
    assert [(c.config.optim.lr, c.config.seed) for c in the_plan.cells] == [
        (3e-3, 0), (3e-3, 1), (0.1, 0), (0.1, 1),
    ]  # fmt: skip
    assert len({c.run_id for c in the_plan.cells}) == 4
    assert not (tmp_path / "runs").exists()


def test_one_bad_cell_refuses_the_whole_sweep(tiny: list[str], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"optim\.lr"):
        plan([*tiny, "optim.lr=0.1,-1"])
    assert not (tmp_path / "runs").exists()


def test_missing_data_refuse_the_sweep(tiny: list[str], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere"):
        plan(["data=text", f"data.paths=[{tmp_path}/nowhere/*.txt]", "seed=0,1", *tiny[-2:]])
    assert not (tmp_path / "runs").exists()


def test_done_runs_are_skipped_and_all_others_are_trained(tiny: list[str]) -> None:
    request = [*tiny, "seed=0,1,2,3"]
    done, failed, _, running = freeze(plan(request))
    finish(done)
    Claim.take(failed).finish(State.failed, "broken")
    claim = Claim.take(running)
    again = plan(request)
    assert states(again) == ["done", "failed", "queued", "running"]
    assert [c.config.seed for c in again.todo] == [1, 2]
    assert [c.config.seed for c in again.skipped] == [0]
    assert [c.config.seed for c in again.busy] == [3]
    assert again.busy[0].owner == claim.owner


def test_a_study_grows_by_what_is_missing(tiny: list[str]) -> None:
    (first,) = freeze(plan([*tiny, "seed=0"]))
    finish(first)
    grown = plan([*tiny, "seed=0,1", "optim.lr=0.003,0.1"])
    assert len(grown.cells) == 4
    assert len(grown.todo) == 3
    assert grown.skipped[0].run_id == first.id


def test_redo_begins_again_at_step_0(tiny: list[str]) -> None:
    (folder,) = freeze(plan(tiny))
    finish(folder)
    (folder.checkpoint / "step-000005").mkdir(parents=True)
    write_json(folder.summary, {"verdict": "stable"})
    the_plan = plan([*tiny, "sweep.redo=true"])
    assert (len(the_plan.todo), len(the_plan.skipped)) == (1, 0)
    assert freeze(the_plan) == [folder]
    assert not folder.checkpoint.exists()
    assert not folder.summary.exists()
    assert read_status(folder).state is State.preempted
    assert len(plan(tiny).todo) == 1


@pytest.mark.parametrize("state", [State.failed, State.preempted])
def test_redo_renews_runs_that_ended_badly_too(tiny: list[str], state: State) -> None:
    (folder,) = freeze(plan(tiny))
    Claim.take(folder).finish(state)
    (folder.checkpoint / "step-000005").mkdir(parents=True)
    freeze(plan(tiny))
    assert folder.checkpoint.exists()
    assert freeze(plan([*tiny, "sweep.redo=true"])) == [folder]
    assert not folder.checkpoint.exists()
    assert len(plan(tiny).todo) == 1


def test_frozen_folders_carry_their_own_config(tiny: list[str]) -> None:
    the_plan = plan([*tiny, "optim.lr=0.1,0.2", "run.notes=hello"])
    for cell, folder in zip(the_plan.cells, freeze(the_plan), strict=True):
        assert folder.id == cell.run_id
        assert f"lr: {cell.config.optim.lr}" in folder.config.read_text()
        assert "notes: hello" in folder.config.read_text()


def test_runs_are_found_by_their_id_whatever_their_words(tiny: list[str]) -> None:
    """As in studies begun when folders were named otherwise."""
    asked = [*tiny, "model=bert", "model.scale=tiny"]
    (folder,) = freeze(plan(asked))
    assert folder.name.startswith("preset=bert_scale=tiny_context=16_")
    older = folder.path.rename(folder.path.with_name(f"layers=2_width=32-{folder.id}"))
    finish(RunFolder(older))
    again = plan(asked)
    assert [cell.folder and cell.folder.path for cell in again.skipped] == [older]
    assert again.todo == ()


def test_a_queued_run_gets_the_code_it_is_launched_with(tiny: list[str]) -> None:
    (folder,) = freeze(plan(tiny))
    code = read_status(folder).code_sha
    old = {"schema": 1, "state": "queued", "attempt": 0, "owner": None, "reason": None, "updated": 0.0}
    write_json(folder.status, {**old, "code_sha": "older"})
    freeze(plan(tiny))
    assert read_status(folder).code_sha == code


def test_a_run_with_a_checkpoint_does_not_go_on_with_other_code_unasked(tiny: list[str]) -> None:
    (folder,) = freeze(plan(tiny))
    code = read_status(folder).code_sha
    Claim.take(folder).finish(State.preempted)
    (folder.checkpoint / "step-000005").mkdir(parents=True)
    status = {"schema": 1, "state": "preempted", "attempt": 1, "owner": None, "reason": None, "updated": 0.0}
    write_json(folder.status, {**status, "code_sha": "older"})
    with pytest.raises(UserError, match="allow_code_change"):
        freeze(plan(tiny))
    assert read_status(folder).code_sha == "older"
    freeze(plan([*tiny, "run.allow_code_change=true"]))
    assert read_status(folder).code_sha == code
    shutil.rmtree(folder.checkpoint)
    write_json(folder.status, {**status, "code_sha": "older"})
    freeze(plan(tiny))
    assert read_status(folder).code_sha == code


def test_settings_follow_the_request_until_there_is_a_checkpoint(
    tiny: list[str],
) -> None:
    (folder,) = freeze(plan([*tiny, "run.threads=7"]))
    Claim.take(folder).finish(State.failed, "no such device")
    told: list[str] = []
    freeze(plan([*tiny, "run.threads=2"]), told.append)
    assert load(folder.config).run.threads == 2
    (folder.checkpoint / "step-000005").mkdir(parents=True)
    assert told == []
    freeze(plan([*tiny, "run.threads=3"]), told.append)
    assert load(folder.config).run.threads == 2
    assert told == [f"{folder.name} resumes with the settings it was begun with: run.threads=2, not 3"]


def test_done_runs_that_lack_what_is_asked_for_now_are_told(tiny: list[str]) -> None:
    (folder,) = freeze(plan([*tiny, "probe.outputs=false", "probe.every=0"]))
    write_json(folder.meta, {"config": {"probe.outputs": False, "probe.gradients": True, "probe.every": 0}})
    finish(folder)
    (cell,) = plan(tiny).cells
    assert unrecorded(cell) == ("probe.outputs", "probe.every")
    (cell,) = plan([*tiny, "probe.every=0"]).cells
    assert unrecorded(cell) == ("probe.outputs",)


def test_a_plan_of_single_configs_reads_like_a_sweep(tiny: list[str], tmp_path: Path) -> None:
    swept = plan([*tiny, "seed=0,1"])
    single = plan_cells(swept.base, (), [cell.config for cell in swept.cells])
    assert [c.run_id for c in single.cells] == [c.run_id for c in swept.cells]
    freeze(single)
    assert len(find_runs(tmp_path / "runs", "t")) == 2
