"""Weights to start from: their digest is part of a run's identity, their place is not."""

import json
import os
import shutil
from pathlib import Path

import pytest

from ablate.config import ConfigError, compose, dump, expand, load, parse, replace, run_id, slug
from ablate.config.weights import weight_files, weights_digest

TINY = ("model=tiny", "data=synthetic")


def make(folder: Path, weights: bytes = b"weights", config: str = "{}") -> Path:
    """What the digest reads; it looks into none of it."""
    folder.mkdir()
    (folder / "config.json").write_text(config)
    (folder / "model.safetensors").write_bytes(weights)
    return folder


def test_a_run_knows_its_weights_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make(tmp_path / "a")
    monkeypatch.chdir(tmp_path)
    plain, config = compose(TINY), compose([*TINY, "model.weights=a"])
    assert config.model.weights == str(folder)
    assert config.model.weights_sha256 == weights_digest(folder)
    assert run_id(config, "") != run_id(plain, "")
    copy = compose([*TINY, f"model.weights={shutil.copytree(folder, tmp_path / 'b')}"])
    assert run_id(copy, "") == run_id(config, "")
    for name, other in (
        ("c", make(tmp_path / "c", weights=b"other")),
        ("d", make(tmp_path / "d", config="[]")),
    ):
        changed = compose([*TINY, f"model.weights={other}"])
        assert run_id(changed, "") != run_id(config, ""), name
    (tmp_path / "frozen.yaml").write_text(dump(config))
    assert load(tmp_path / "frozen.yaml") == config
    assert parse({}).model.weights_sha256 is None


def test_the_digest_follows_the_files(tmp_path: Path) -> None:
    folder = make(tmp_path / "a")
    before = weights_digest(folder)
    (folder / "README.md").write_text("of no account")
    assert weights_digest(folder) == before
    (folder / "model.safetensors").write_bytes(b"WEIGHTS")
    os.utime(folder / "model.safetensors", ns=(1, 1))
    assert weights_digest(folder) != before


def test_shards_are_the_files_that_the_index_names(tmp_path: Path) -> None:
    folder = make(tmp_path / "a")
    (folder / "model.safetensors").rename(folder / "model-2.safetensors")
    (folder / "model-1.safetensors").write_bytes(b"one")
    (folder / "other.safetensors").write_bytes(b"of no account")
    index = folder / "model.safetensors.index.json"
    index.write_text(
        json.dumps({"weight_map": {f"t{n}": f"model-{1 + n % 2}.safetensors" for n in range(5)}})
    )
    assert [path.name for path in weight_files(folder)] == ["model-1.safetensors", "model-2.safetensors"]
    before = weights_digest(folder)
    (folder / "model-2.safetensors").write_bytes(b"changed")
    assert weights_digest(folder) != before
    for wrong in ('{"weight_map": {"t": "../x.safetensors"}}', '{"weight_map": {}}', "[]", "{"):
        index.write_text(wrong)
        with pytest.raises(ConfigError, match=r"model\.weights = .*\n  allowed: an? .*index\.json"):
            weight_files(folder)


@pytest.mark.parametrize("gone", ["", "config.json", "model.safetensors"])
def test_a_missing_file_is_one_clear_error(gone: str, tmp_path: Path) -> None:
    folder = make(tmp_path / "a")
    if gone:
        (folder / gone).unlink()
    else:
        shutil.rmtree(folder)
    allowed = r"allowed: a folder with config\.json and model\.safetensors"
    with pytest.raises(ConfigError, match=rf"(?s)model\.weights = {folder}.*{allowed}"):
        compose([*TINY, f"model.weights={folder}"])


def test_a_given_digest_must_be_the_folders(tmp_path: Path) -> None:
    folder = make(tmp_path / "a")
    asked = [*TINY, f"model.weights={folder}"]
    digest = compose(asked).model.weights_sha256
    assert compose([*asked, f"model.weights_sha256={digest}"]) == compose(asked)
    with pytest.raises(
        ConfigError, match=f"model.weights_sha256 = abc\n  allowed: {digest}, that of {folder}"
    ):
        compose([*asked, "model.weights_sha256=abc"])
    with pytest.raises(ConfigError, match="filled in"):
        compose([*TINY, "model.weights_sha256=abc"])


def test_a_changed_run_takes_the_digest_of_its_new_weights(tmp_path: Path) -> None:
    one, two = make(tmp_path / "a"), make(tmp_path / "b", weights=b"two")
    config = compose([*TINY, f"model.weights={one}"])
    changed = replace(config, {"model.weights": str(two)})
    assert changed == compose([*TINY, f"model.weights={two}"])
    assert replace(changed, {"model.weights": None}) == compose(TINY)
    shutil.rmtree(one)
    assert replace(config, {"optim.lr": 0.5}).model.weights_sha256 == config.model.weights_sha256


def test_weights_can_be_swept(tmp_path: Path) -> None:
    one, two = make(tmp_path / "a"), make(tmp_path / "b", weights=b"two")
    cells = expand([*TINY, f"model.weights=null,{one},{two}"]).cells
    digests = [None, weights_digest(one), weights_digest(two)]
    assert [cell.model.weights_sha256 for cell in cells] == digests


def test_what_a_start_from_weights_does_not_read_makes_no_other_run(tmp_path: Path) -> None:
    folder = make(tmp_path / "a")
    asked = [*TINY, f"model.weights={folder}"]
    ids = [
        run_id(compose([*asked, *more]), "")
        for more in ([], ["model.init=xavier"], ["model.bias_init=torch"])
    ]
    assert len(set(ids)) == 1
    with pytest.raises(ConfigError, match=r"seed = 1\n.*only the order of the batches is drawn"):
        compose([*asked, "data.data_seed=0", "seed=1"])
    assert compose([*asked, "seed=1"]).data.data_seed == 1


def test_a_folder_name_says_nothing_of_what_is_not_drawn(tmp_path: Path) -> None:
    folder = make(tmp_path / "a")
    named = slug(compose(["model=llama", "model.scale=tiny", f"model.weights={folder}", "optim.steps=5"]))
    assert named == "preset=llama_scale=tiny_steps=5"
