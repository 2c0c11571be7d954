"""Two runs are never merged, and nobody's run is deleted for another's."""

import json
from pathlib import Path

import pytest
from tests.mirror.backend.server import Backend
from tests.mirror.backend.store import HISTORY, SUMMARY
from tests.mirror.mirror_studies import Made
from tests.mirror.test_mirror_sync import ablate, stored, whole

from ablate.mirror import read_ledger, wandb_id

pytestmark = pytest.mark.wandb


def test_a_run_of_someone_else_is_left_alone(backend: Backend, tmp_path: Path) -> None:
    """The same experiment in the same project, with other numbers: another person's machine."""
    made = Made.queued(tmp_path, 1).whole()
    theirs, _ = backend.store.open_run("tester", "s", wandb_id(made.folder.name))
    theirs.append(HISTORY, 0, [json.dumps({"_step": 3 * i, "train/step": 3 * i}) for i in range(9)])
    theirs.append(SUMMARY, 0, [json.dumps({"_step": 24, "verdict": "theirs"})])
    done = ablate("sync", "s", root=tmp_path)
    assert done.returncode == 0, done.stdout
    assert whole(stored(backend, made.folder, generation=1), made.folder)
    assert (len(theirs.rows), theirs.summary["verdict"], theirs.begun) == (9, "theirs", 0)
    assert not backend.store.deleted


@pytest.mark.slow
def test_one_experiment_in_two_studies_of_one_project_is_two_runs(backend: Backend, tmp_path: Path) -> None:
    runs = [Made.queued(tmp_path, 1, study=s, tracker={"project": "shared"}).whole() for s in ("a", "b")]
    for study in ("a", "b", "a"):
        assert ablate("sync", study, root=tmp_path).returncode == 0
    ids = [ledger.wandb_id for made in runs if (ledger := read_ledger(made.folder.path)) is not None]
    assert len(set(ids)) == 2
    assert all(whole(backend.run("shared", name), made.folder) for name, made in zip(ids, runs, strict=True))
    assert len(backend.runs("shared")) == 2
