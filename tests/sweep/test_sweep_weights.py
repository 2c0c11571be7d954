"""Weights to start from as a factor: the folder is what is declared, its digest follows."""

import shutil
from pathlib import Path

import pytest

from ablate.config import UserError, to_dict
from ablate.exchange import check_folder
from ablate.record import write_request
from ablate.sweep import (
    check_confounds,
    check_weights,
    freeze,
    plan,
    plan_cells,
    request_facts,
    requested_factors,
)


def make(folder: Path, weights: bytes) -> Path:
    """A plan reads no more of a folder than its bytes."""
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(weights)
    return folder


def test_swept_weights_are_a_factor_and_nothing_else(tiny: list[str], tmp_path: Path) -> None:
    one, two = make(tmp_path / "one", b"1"), make(tmp_path / "two", b"2")
    swept = plan([*tiny, f"model.weights=null,{one},{two}", "seed=0,1"])
    check_confounds(swept, {})
    assert len({cell.run_id for cell in swept.cells}) == 6


def test_undeclared_weights_are_refused_by_their_folder(tiny: list[str], tmp_path: Path) -> None:
    one, two = make(tmp_path / "one", b"1"), make(tmp_path / "two", b"2")
    first, second = plan([*tiny, f"model.weights={one}"]), plan([*tiny, f"model.weights={two}", "seed=1"])
    mixed = plan_cells(first.base, second.axes, [cell.config for cell in (*first.cells, *second.cells)])
    with pytest.raises(UserError) as caught:
        check_confounds(mixed, {})
    assert f"model.weights ({one}, {two})" in caught.value.problem
    assert "sha256" not in caught.value.problem


def test_later_sweeps_of_a_study_start_from_the_same_weights(tiny: list[str], tmp_path: Path) -> None:
    """Wherever they lie; but a folder that changed is named by its digest."""
    folder = make(tmp_path / "one", b"1")
    first = plan([*tiny, f"model.weights={folder}"])
    write_request(
        first.root, first.study, [], requested_factors(first.axes), to_dict(first.base),
        [cell.run_id for cell in first.cells], request_facts(first),
    )  # fmt: skip
    freeze(first)
    copy = shutil.copytree(folder, tmp_path / "copy")
    check_confounds(plan([*tiny, f"model.weights={copy}", "seed=1"]), {})
    (folder / "model.safetensors").write_bytes(b"22")
    with pytest.raises(UserError, match=r"model\.weights_sha256 \([0-9a-f]{64}, [0-9a-f]{64}"):
        check_confounds(plan([*tiny, f"model.weights={folder}", "seed=1"]), {})


def test_each_model_is_looked_at_once(
    tiny: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many runs start from it; and one folder that is not the model refuses them all."""
    one = make(tmp_path / "one", b"1")
    seen = []
    monkeypatch.setattr("ablate.sweep.weights.check_folder", lambda *asked: seen.append(asked))
    swept = plan([*tiny, f"model.weights=null,{one}", "model.norm=layernorm,rmsnorm", "seed=0,1"])
    configs = [cell.config for cell in swept.cells]
    check_weights(configs)
    assert [(folder, model.norm, vocab) for folder, model, vocab in seen] == [
        (one, "layernorm", 32), (one, "rmsnorm", 32)
    ]  # fmt: skip
    monkeypatch.setattr("ablate.sweep.weights.check_folder", check_folder)
    with pytest.raises(UserError, match="model_type = null"):
        check_weights(configs)
