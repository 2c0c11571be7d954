import json
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from ablate.config import Keep
from ablate.record import DiskFull
from ablate.train import ForeignCheckpoint, checkpoint, tidy
from ablate.train.checkpoint import Checkpoint, latest, save, save_final, steps

RUN, OTHER = "0123456789ab", "ba9876543210"
MODEL = {"a.weight": torch.zeros(2, 3), "a.bias": torch.zeros(2)}


def state(step: int, first_bad: int | None = None) -> Checkpoint:
    model = {name: torch.full_like(value, step) for name, value in MODEL.items()}
    moments = {
        f"{kind}/{name}": torch.full_like(v, -step)
        for name, v in MODEL.items()
        for kind in ("mean", "square")
    }
    return Checkpoint(step, model, moments, first_bad, initial_loss=float("inf"))


def written(folder: Path, *numbers: int, first_bad: int | None = None) -> Path:
    for step in numbers:
        save(folder, state(step, first_bad), RUN)
    return folder


def read(
    folder: Path, expected: dict[str, Tensor] = MODEL, said: list[str] | None = None
) -> Checkpoint | None:
    return latest(folder, RUN, expected, (said if said is not None else []).append)


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    found = read(written(tmp_path / "checkpoint", 5))
    assert found is not None
    assert (found.step, found.first_bad, found.initial_loss) == (5, None, float("inf"))
    for got, put in ((found.model, state(5).model), (found.optimizer, state(5).optimizer)):
        assert set(got) == set(put)
        assert all(torch.equal(value, put[name]) for name, value in got.items())


def test_nothing_there_is_no_checkpoint(tmp_path: Path) -> None:
    assert read(tmp_path / "checkpoint") is None


def test_the_ring_keeps_three_and_the_newest_before_a_divergence(tmp_path: Path) -> None:
    folder = written(tmp_path, 5, 10, 15, 20)
    assert steps(folder) == [10, 15, 20]
    written(folder, 25, 30, 35, first_bad=20)
    assert steps(folder) == [15, 25, 30, 35]


@pytest.mark.parametrize(("keep", "left"), [(Keep.ring, [10, 15, 20]), (Keep.weights, [15]), (Keep.none, [])])
def test_what_a_finished_run_keeps(tmp_path: Path, keep: Keep, left: list[int]) -> None:
    folder = written(tmp_path / "checkpoint", 10, 15, 20)
    save_final(folder, MODEL)
    tidy(folder, keep, 18)
    assert steps(folder) == left
    assert (folder / "final" / "model.safetensors").exists() == (keep is not Keep.none)


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json"])
@pytest.mark.parametrize("harm", ["truncate", "flip", "remove"])
def test_a_damaged_checkpoint_is_named_and_the_next_older_one_taken(
    tmp_path: Path, name: str, harm: str
) -> None:
    folder = written(tmp_path, 5, 10)
    path = folder / "step-000010" / name
    content = path.read_bytes()
    if harm == "remove":
        path.unlink()
    else:
        middle = len(content) // 2
        flipped = bytes([content[middle] ^ 0x80])
        path.write_bytes(content[:middle] + (flipped + content[middle + 1 :] if harm == "flip" else b""))
    said: list[str] = []
    found = read(folder, said=said)
    assert found is not None
    assert found.step == 5
    assert "step-000010" in said[0]
    assert name in said[0]


@pytest.mark.parametrize(
    "lie",
    [
        {"step": 1_000_000_000}, {"step": 5}, {"step": "x"}, {"step": 10.0}, {"step": {}}, {"run_id": 7},
        {"sha256": []}, {"sha256": {}}, {"first_bad": "x"}, {"first_bad": 10}, {"first_bad": True},
        {"initial_loss": {}}, {"initial_loss": "x"}, {"initial_loss": 5.5}, {"science_version": 99},
        {"science_version": None}, {"schema": 2},
    ],
)  # fmt: skip
def test_a_state_that_cannot_be_true_is_damage(tmp_path: Path, lie: dict[str, Any]) -> None:
    folder = written(tmp_path, 5, 10)
    path = folder / "step-000010" / "state.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **lie}))
    said: list[str] = []
    found = read(folder, said=said)
    assert found is not None
    assert found.step == 5
    assert "step-000010 is damaged" in said[0]
    assert next(iter(lie)) in said[0]


def test_a_step_that_the_run_cannot_go_on_from_is_skipped_and_said(tmp_path: Path) -> None:
    said: list[str] = []
    folder = written(tmp_path, 5, 10)
    found = latest(folder, RUN, MODEL, said.append, lambda step: "rows are gone" if step > 5 else None)
    assert found is not None
    assert found.step == 5
    assert said == ["checkpoint step-000010 is skipped: rows are gone"]
    assert latest(folder, RUN, MODEL, said.append, lambda _: "rows are gone") is None


def test_checkpoints_beyond_the_one_that_is_written_are_let_go(tmp_path: Path) -> None:
    assert steps(written(tmp_path, 5, 20, 30, 40, 10)) == [10]


def test_what_is_no_folder_is_skipped_and_gives_way(tmp_path: Path) -> None:
    folder = written(tmp_path, 5)
    (folder / "step-000010").write_text("a file")
    found = read(folder)
    assert found is not None
    assert found.step == 5
    written(folder, 10)
    found = read(folder)
    assert found is not None
    assert found.step == 10
    (folder / "step-000015").write_text("a file")
    tidy(folder, Keep.weights, None)
    assert steps(folder) == []


def test_hidden_files_are_nobodys_business(tmp_path: Path) -> None:
    folder = written(tmp_path, 5)
    (folder / ".DS_Store").write_bytes(b"x")
    (folder / ".writing-step-000010").write_bytes(b"x")
    assert read(folder) is not None
    assert sorted(path.name for path in folder.iterdir()) == [".DS_Store", "step-000005"]


def test_a_checkpoint_that_does_not_fit_on_the_disk_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path, 5)

    def full(path: Path, _: object) -> None:
        raise DiskFull(path)

    monkeypatch.setattr(checkpoint, "write_json", full)
    with pytest.raises(DiskFull):
        save(folder, state(10), RUN)
    assert [path.name for path in folder.iterdir()] == ["step-000005"]


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    save(tmp_path, state(5), OTHER)
    with pytest.raises(ForeignCheckpoint, match=f"{OTHER}.*{RUN}"):
        read(tmp_path)


@pytest.mark.parametrize(
    "expected", [{"a.weight": torch.zeros(3, 2), "a.bias": torch.zeros(2)}, {**MODEL, "b": torch.zeros(1)}]
)
def test_other_names_or_shapes_are_refused(tmp_path: Path, expected: dict[str, Tensor]) -> None:
    with pytest.raises(ForeignCheckpoint, match="does not fit"):
        read(written(tmp_path, 5), expected)


class Trap:
    """Creates a file when unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


def test_a_pickle_is_refused_and_never_executed(tmp_path: Path) -> None:
    folder, mark = tmp_path / "checkpoint", tmp_path / "executed"
    folder.mkdir()
    (folder / "model.pt").write_bytes(pickle.dumps(Trap(mark)))
    with pytest.raises(ForeignCheckpoint, match=r"model\.pt"):
        read(folder)
    assert not mark.exists()


def test_a_pickle_that_poses_as_tensors_is_refused_and_never_executed(tmp_path: Path) -> None:
    import hashlib

    folder, mark = written(tmp_path / "checkpoint", 5), tmp_path / "executed"
    payload = pickle.dumps(Trap(mark))
    (folder / "step-000005" / "model.safetensors").write_bytes(payload)
    path = folder / "step-000005" / "state.json"
    content = json.loads(path.read_text())
    content["sha256"]["model.safetensors"] = hashlib.sha256(payload).hexdigest()
    path.write_text(json.dumps(content))
    with pytest.raises(ForeignCheckpoint, match="not a safetensors file"):
        read(folder)
    assert not mark.exists()


def test_what_a_killed_writer_left_half_done_is_cleared(tmp_path: Path) -> None:
    folder = written(tmp_path, 5)
    half = folder / ".writing-step-000010"
    half.mkdir()
    save_file({"a": torch.zeros(1)}, half / "model.safetensors")
    found = read(folder)
    assert found is not None
    assert found.step == 5
    assert not half.exists()


def test_final_weights_are_plain_safetensors(tmp_path: Path) -> None:
    save_final(tmp_path, state(3).model)
    assert torch.equal(load_file(tmp_path / "final" / "model.safetensors")["a.bias"], torch.full((2,), 3.0))
