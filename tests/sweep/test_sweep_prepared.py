"""Data looked at before anything starts: the tokenizer of weights, a preset's vocabulary on little text."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ablate.config import Config, ConfigError, UserError, compose
from ablate.data import prepare
from ablate.sweep.prepared import prepare_runs

LINES = "The rain in Spain stays mainly in the plain; {0} drops fall on {0} fields.\n"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A small corpus of 40 documents."""
    folder = tmp_path / "texts"
    folder.mkdir()
    for number in range(40):
        (folder / f"{number}.txt").write_text(LINES.format(number) * 20)
    return folder


@pytest.fixture
def asked(text: Path) -> Callable[..., Config]:
    def make(*overrides: str) -> Config:
        return compose(["data=text", f"data.paths=['{text}/*.txt']", "model.context=8", *overrides])

    return make


@pytest.fixture
def weights(asked: Callable[..., Config], tmp_path: Path) -> Path:
    """A folder to start from, with the tokenizer of the corpus at 280 tokens in the other spelling."""
    folder = tmp_path / "hf"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"1")
    config = asked("data.vocab_size=280")
    tokens = prepare(config.data, 8)
    assert tokens.tokenizer is not None
    raw = json.loads(tokens.tokenizer.read_text())
    raw["model"]["merges"] = [
        merge.split(" ") if isinstance(merge, str) else " ".join(merge) for merge in raw["model"]["merges"]
    ]
    (folder / "tokenizer.json").write_text(json.dumps(raw))
    return folder


def test_weights_with_the_tokenizer_of_the_data_start(asked: Callable[..., Config], weights: Path) -> None:
    prepare_runs([asked("data.vocab_size=280", f"model.weights={weights}")], print)
    given = (f"data.tokenizer={weights}/tokenizer.json", "data.vocab_size=280")
    prepare_runs([asked(*given, f"model.weights={weights}")], print)


def test_weights_with_another_tokenizer_of_the_same_size_are_refused(
    asked: Callable[..., Config], weights: Path, tmp_path: Path
) -> None:
    (tmp_path / "other.txt").write_text("Ein ganz anderer Text, mit anderen Paaren als der erste. " * 200)
    other = asked("data.vocab_size=280", f"data.paths=['{tmp_path}/other.txt']", f"model.weights={weights}")
    alone = asked("data.vocab_size=280", f"data.paths=['{tmp_path}/other.txt']")
    with pytest.raises(UserError, match="has other tokens than the data") as caught:
        prepare_runs([alone, other], print)
    assert caught.value.hint == f"data.tokenizer={weights}/tokenizer.json"
    (weights / "tokenizer.json").write_text("{}")
    with pytest.raises(UserError, match=r"hf/tokenizer\.json is not a tokenizer\.json"):
        prepare_runs([other], print)
    (weights / "tokenizer.json").unlink()
    prepare_runs([other], print)


def test_tokens_without_a_tokenizer_have_nothing_to_compare(weights: Path) -> None:
    drawn = ("data=synthetic", "data.tokens=4000", "data.vocab_size=280", "model.context=8")
    prepare_runs([compose([*drawn, f"model.weights={weights}"])], print)


def test_a_presets_vocabulary_on_little_text_names_the_study_sizes(asked: Callable[..., Config]) -> None:
    with pytest.raises(ConfigError) as caught:
        prepare_runs([asked("model=gpt2")], print)
    assert str(caught.value.hint).startswith("model.scale=tiny (small, medium): a study size of gpt2; data.")
    with pytest.raises(ConfigError) as caught:
        prepare_runs([asked("data.vocab_size=50257")], print)
    assert str(caught.value.hint).startswith("data.vocab_size=")
