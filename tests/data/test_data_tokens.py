import dataclasses
import hashlib
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from ablate.config import ConfigError, DataConfig, Objective, Source, UserError
from ablate.data import Codec, TokenData, load_codec, prepare, tokenizer


@pytest.fixture
def data(make, poems: Path) -> DataConfig:
    return make(paths=(f"{poems}/*.txt",))


@pytest.fixture(scope="module")
def codec(tmp_path_factory) -> Codec:
    folder = tmp_path_factory.mktemp("codec")
    (folder / "a.txt").write_text("the rain in spain\n" * 50)
    (folder / "b.txt").write_text("stays mainly\n" * 50)
    data = DataConfig(
        source=Source.text,
        paths=(f"{folder}/*.txt",),
        vocab_size=262,
        data_seed=0,
        objective=Objective.next,
        cache=str(folder / "cache"),
    )
    path = prepare(data, 4).tokenizer
    assert path is not None
    return load_codec(path)


def texts_of(tokens_S: np.ndarray, codec: Codec) -> list[str]:
    ends = np.flatnonzero(tokens_S == codec.end) + 1
    assert ends[-1] == len(tokens_S)  # every document is closed
    return [codec.decode(part[:-1].tolist()) for part in np.split(tokens_S, ends)[:-1]]


def both_sides(tokens: TokenData) -> tuple[list[str], list[str]]:
    assert tokens.tokenizer is not None
    codec = load_codec(tokens.tokenizer)
    val = np.fromfile(tokens.tokenizer.with_name("val.bin"), dtype=tokens.train.dtype)
    return texts_of(np.asarray(tokens.train), codec), texts_of(val, codec)


@pytest.mark.parametrize(
    "text",
    ["a<|endoftext|>b", "\x00\x01\r\n\r\t", "İı", "é é 👩‍👩‍👧 \ufeff\u2028\U0010ffff", " " * 40, "ﷺ𝔘🏳️‍🌈"],
)
def test_unusual_text_comes_back(codec: Codec, text: str) -> None:
    ids = np.concatenate(list(codec.encode([text])))
    assert (ids == 0).nonzero()[0].tolist() == [len(ids) - 1]
    assert codec.decode(ids[:-1].tolist()) == text


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(min_size=1), min_size=1, max_size=5))
def test_any_documents_come_back(codec: Codec, documents: list[str]) -> None:
    assert texts_of(np.concatenate(list(codec.encode(documents))), codec) == documents


def test_long_documents_are_encoded_in_pieces(codec: Codec, monkeypatch) -> None:
    monkeypatch.setattr(tokenizer, "PIECE", 1000)
    documents = ["the rain\n" * 1000, "short", "in spain " * 500, "x" * 1001 + "\n"]
    runs = list(codec.encode(documents))
    assert len(runs) > 1
    assert texts_of(np.concatenate(runs), codec) == documents


def test_split_is_by_documents_and_loses_none(data: DataConfig, poems: Path) -> None:
    train, val = both_sides(prepare(data, 8))
    assert len(val) == 4  # val_fraction 0.2 of 20
    assert not set(train) & set(val)
    assert sorted(train + val) == sorted(path.read_text() for path in poems.iterdir())


def test_split_depends_on_seed_and_content_only(data: DataConfig, poems: Path) -> None:
    first = prepare(data, 8)
    other = prepare(dataclasses.replace(data, split_seed=1), 8)
    assert both_sides(first)[1] != both_sides(other)[1]
    assert first.facts.fingerprint == other.facts.fingerprint
    for number, file in enumerate(sorted(poems.iterdir())):
        file.rename(poems / f"{(number * 13) % 20}.txt")
    shuffled = prepare(dataclasses.replace(data, cache=data.cache + "2", data_seed=9), 8)
    assert shuffled.facts == first.facts


def test_equal_documents_stay_on_one_side(make, poems: Path) -> None:
    for number, file in enumerate(sorted(poems.iterdir())):
        for copy in range(number % 4):
            (poems / f"copy{copy}-{file.name}").write_bytes(file.read_bytes())
    for seed in range(5):
        train, val = both_sides(prepare(make(paths=(f"{poems}/*.txt",), split_seed=seed), 8))
        assert not set(train) & set(val)
        assert len(train) + len(val) == 50


def test_a_single_document_is_cut_at_a_line_and_said_so(make, tmp_path: Path) -> None:
    text = "".join(f"line {number} in the rain\n" for number in range(100))
    (tmp_path / "one.txt").write_text(text)
    said: list[str] = []
    (train,), (val,) = both_sides(prepare(make(paths=(str(tmp_path / "one.txt"),)), 8, said.append))
    assert train + val == text
    assert train.endswith("\n")
    assert len(val) / len(text) == pytest.approx(0.2, abs=0.02)
    assert any("single document" in message for message in said)


def test_copies_of_one_document_are_a_single_document(make, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.txt").write_text("the rain in spain\n" * 50)
    said: list[str] = []
    train, val = both_sides(prepare(make(paths=(f"{tmp_path}/*.txt",), vocab_size=260), 8, said.append))
    assert (len(train), len(val)) == (1, 1)
    assert any("single document" in message for message in said)


def test_a_single_line_is_cut_all_the_same(make, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("the rain in spain " * 100)
    (train,), (val,) = both_sides(prepare(make(paths=(str(tmp_path / "one.txt"),), vocab_size=260), 8))
    assert (len(train), len(val)) == (1440, 360)


def test_facts_and_unigram_against_plain_counting(data: DataConfig, poems: Path) -> None:
    tokens = prepare(dataclasses.replace(data, val_tokens=100), 8)
    counts = [1] * 270
    for token in tokens.train.tolist():
        counts[token] += 1
    total = sum(counts)
    assert tokens.val.targets_BM.shape == (12, 8)
    targets = tokens.val.targets_BM.reshape(-1).tolist()
    expected = -sum(math.log(counts[token] / total) for token in targets) / len(targets)
    facts = tokens.facts
    assert facts.unigram_entropy == pytest.approx(expected, rel=1e-13)
    assert np.exp(-tokens.unigram_V).sum() == pytest.approx(1, abs=1e-12)
    assert facts.bytes == sum(path.stat().st_size for path in poems.iterdir())
    assert (facts.source, facts.documents, facts.vocab_size, facts.entropy_rate) == ("text", 20, 270, None)
    assert tokens.tokenizer is not None
    assert facts.tokenizer_sha256 == hashlib.sha256(tokens.tokenizer.read_bytes()).hexdigest()
    assert facts.train_tokens == len(tokens.train)


def test_held_out_windows_are_the_start_of_the_held_out_stream(data: DataConfig) -> None:
    tokens = prepare(data, 8)
    assert tokens.tokenizer is not None
    val_S = np.fromfile(tokens.tokenizer.with_name("val.bin"), dtype=np.uint16)
    assert len(tokens.val) == (len(val_S) - 1) // 8
    np.testing.assert_array_equal(tokens.val.inputs_BT.reshape(-1), val_S[: len(tokens.val) * 8])
    np.testing.assert_array_equal(tokens.val.targets_BM.reshape(-1), val_S[1 : len(tokens.val) * 8 + 1])
    assert len(prepare(dataclasses.replace(data, val_tokens=3), 8).val) == 1


def test_batches_read_the_training_stream(data: DataConfig) -> None:
    tokens = prepare(data, 8)
    source = tokens.batches(batch=4, data_seed=1)
    for start, row in zip(source.order(5) * 8, source.at(5), strict=True):
        assert row.tolist() == tokens.train[start : start + 9].tolist()


def test_training_the_tokenizer_twice_gives_the_same_file(data: DataConfig, tmp_path: Path) -> None:
    again = dataclasses.replace(data, cache=str(tmp_path / "other"))
    assert prepare(data, 8).facts == prepare(again, 8).facts


@pytest.mark.parametrize(
    ("vocab_size", "told"), [(256, "at least 257"), (5000, r"257 to \d+: .*\n  try: data.vocab_size=\d+")]
)
def test_vocabularies_out_of_reach(data: DataConfig, vocab_size: int, told: str) -> None:
    with pytest.raises(ConfigError, match=rf"data.vocab_size = {vocab_size}\n  allowed: {told}") as caught:
        prepare(dataclasses.replace(data, vocab_size=vocab_size), 8)
    if vocab_size == 5000:
        reachable = int(str(caught.value.hint).split("=")[1].split(",")[0])
        assert prepare(dataclasses.replace(data, vocab_size=reachable), 8).facts.vocab_size == reachable


def test_too_little_text_for_the_context(data: DataConfig) -> None:
    facts = prepare(data, 8).facts
    assert len(prepare(data, facts.val_tokens - 1).val) == 1
    with pytest.raises(
        UserError, match=rf"{facts.val_tokens:,} held-out .*\n.*at least {facts.val_tokens + 1:,}"
    ):
        prepare(data, facts.val_tokens)
    with pytest.raises(UserError, match="too few training tokens"):
        prepare(dataclasses.replace(data, val_fraction=0.95), facts.val_tokens)


def test_a_given_tokenizer_is_used_and_identifies(data: DataConfig, tmp_path: Path) -> None:
    trained = prepare(data, 8)
    assert trained.tokenizer is not None
    bpe = Tokenizer.from_file(str(trained.tokenizer))
    bpe.enable_truncation(5)
    bpe.enable_padding(length=600)
    bpe.save(str(tmp_path / "own.json"))
    own = dataclasses.replace(data, tokenizer=str(tmp_path / "own.json"))
    used = prepare(own, 8)
    np.testing.assert_array_equal(used.train, trained.train)
    assert used.facts.fingerprint != trained.facts.fingerprint
    with pytest.raises(ConfigError, match=r"270, the vocabulary of .*\n  try: data.vocab_size=270"):
        prepare(dataclasses.replace(own, vocab_size=512), 8)


def test_large_vocabularies_take_four_bytes(data: DataConfig, tmp_path: Path) -> None:
    trained = prepare(data, 8)
    bpe = Tokenizer.from_file(str(trained.tokenizer))
    bpe.add_tokens([f"§{number}§" for number in range(66_000)])
    bpe.save(str(tmp_path / "large.json"))
    size = bpe.get_vocab_size()
    large = prepare(dataclasses.replace(data, tokenizer=str(tmp_path / "large.json"), vocab_size=size), 8)
    assert large.train.dtype == np.uint32
    np.testing.assert_array_equal(large.train, trained.train)


def test_tokenizers_that_cannot_serve(data: DataConfig, tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    own = dataclasses.replace(data, tokenizer=str(path))
    with pytest.raises(UserError, match=r"cannot read .*own\.json"):
        prepare(own, 8)
    path.write_text('{"a": 1}')
    with pytest.raises(UserError, match=r"own.json is not a tokenizer.json"):
        prepare(own, 8)
    Tokenizer(models.BPE({"a": 0}, [])).save(str(path))
    with pytest.raises(
        UserError, match=r"own.json has no end-of-text token\n  allowed: one of <\|endoftext\|>"
    ):
        prepare(own, 8)


def test_a_tokenizer_without_a_token_for_the_unknown_is_told_of(data: DataConfig, tmp_path: Path) -> None:
    path = tmp_path / "words.json"
    Tokenizer(models.WordLevel({"[SEP]": 0, "the": 1}, unk_token="[UNK]")).save(str(path))
    with pytest.raises(UserError, match=r"cannot encode the corpus: .*\n.*byte-level"):
        prepare(dataclasses.replace(data, tokenizer=str(path), vocab_size=2), 4)
