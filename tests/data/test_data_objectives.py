"""Objectives from the configuration to the tokens: reserved ids, the tokenizer, the cache, the unigram."""

import dataclasses
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from ablate.config import ConfigError, DataConfig, Objective, Source, UserError, reserved_tokens
from ablate.data import TokenData, fingerprint, load_codec, prepare

CONTEXT = 40
RESERVED = {
    Objective.masked: ("<mask>",),
    Objective.prefix: ("<begin>",),
    Objective.span: ("<begin>", "<hidden_0>", "<hidden_1>"),
}


@pytest.fixture
def data(make, poems: Path) -> DataConfig:
    return make(paths=(f"{poems}/*.txt",))


def asking(data: DataConfig, objective: Objective, **changes: object) -> DataConfig:
    return dataclasses.replace(data, objective=objective, **changes)


def folder(tokens: TokenData) -> Path:
    assert tokens.tokenizer is not None
    return tokens.tokenizer.parent


def test_without_reserved_tokens_the_cache_stays_as_it_was(make) -> None:
    """The entry of a synthetic source, by its name and content."""
    data = make(source=Source.synthetic, vocab_size=64, tokens=5000)
    facts = prepare(data, 16).facts
    (entry,) = [path for path in (Path(data.cache) / "tokens").iterdir() if path.is_dir()]
    assert entry.name == "3d8a549c9f8bb04675158b6f928d6bcf"
    assert facts.tokens_sha256 == "ed3c4811306c5f6b83ef3a17f1f70e1e6b3e521f9cc06219e9d31590da6fa0f0"


@pytest.mark.parametrize("objective", RESERVED)
def test_reserved_tokens_are_the_last_of_the_vocabulary(data: DataConfig, objective: Objective) -> None:
    names = RESERVED[objective]
    tokens = prepare(asking(data, objective), CONTEXT)
    plain = prepare(dataclasses.replace(data, vocab_size=270 - len(names)), CONTEXT)
    assert tokens.facts.vocab_size == 270
    assert tokens.facts.fingerprint == plain.facts.fingerprint
    np.testing.assert_array_equal(tokens.train, plain.train)  # the BPE has what is left
    assert folder(tokens) != folder(plain)
    assert tokens.tokenizer is not None
    tokenizer = Tokenizer.from_file(str(tokens.tokenizer))
    assert tokenizer.get_vocab_size() == 270
    assert [tokenizer.id_to_token(270 - len(names) + i) for i in range(len(names))] == list(names)


@pytest.mark.parametrize("objective", RESERVED)
def test_the_tokenizer_in_the_cache_decodes_what_is_read_and_asked(
    data: DataConfig, objective: Objective
) -> None:
    tokens = prepare(asking(data, objective), CONTEXT)
    assert tokens.tokenizer is not None
    codec = load_codec(tokens.tokenizer)
    source = tokens.batches(4, 0)
    examples = source.examples(0)
    for row, window in enumerate(source.at(0)[:, :-1]):
        text, asked = codec.decode(window), codec.decode(examples.targets_BM[row])
        read = codec.decode(examples.inputs_BT[row])
        if objective is Objective.masked:
            assert len(examples.targets_BM[row]) == 6
            assert "<mask>" in read
            continue
        assert examples.source_BS is not None
        assert read.startswith("<begin>")
        seen = codec.decode(examples.source_BS[row])
        if objective is Objective.span:
            before, between = seen.split("<hidden_0>")[0], seen.split("<hidden_0>")[1].split("<hidden_1>")[0]
            first, second = asked.removeprefix("<hidden_0>").split("<hidden_1>")
            assert before + first + between + second == text
        else:
            assert seen + asked == text


def test_names_of_reserved_tokens_inside_a_text_are_text(data: DataConfig) -> None:
    tokens = prepare(asking(data, Objective.masked), CONTEXT)
    assert tokens.tokenizer is not None
    codec = load_codec(tokens.tokenizer)
    ids = np.concatenate(list(codec.encode(["a <mask> b"])))
    assert 269 not in ids
    assert codec.decode(ids[:-1].tolist()) == "a <mask> b"


def test_held_out_examples_are_fixed_by_the_split_seed_alone(data: DataConfig) -> None:
    for objective in RESERVED:
        asked = asking(data, objective)
        first = prepare(asked, CONTEXT).val
        again = prepare(dataclasses.replace(asked, data_seed=7), CONTEXT).val
        for name in ("inputs_BT", "targets_BM", "positions_BM", "source_BS"):
            np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    synthetic = asking(data, Objective.masked, source=Source.synthetic, paths=(), tokens=5000)
    one, other = (prepare(dataclasses.replace(synthetic, split_seed=seed), CONTEXT).val for seed in (0, 1))
    assert one.positions_BM is not None
    assert not np.array_equal(one.positions_BM, other.positions_BM)
    trained = prepare(synthetic, CONTEXT).batches(len(one), 0).examples(0)
    assert not np.array_equal(trained.positions_BM, one.positions_BM)  # seed 0 for both, drawn apart


@pytest.mark.parametrize("objective", RESERVED)
def test_the_unigram_is_that_of_the_targets(data: DataConfig, objective: Objective) -> None:
    """Against counting: add-one over the training tokens; with span, each sentinel once a window."""
    tokens = prepare(asking(data, objective), CONTEXT)
    counts = Counter(tokens.train.tolist())
    total = len(tokens.train) + 270
    share = 6 / 8 if objective is Objective.span else 1.0

    def nats(token: int) -> float:
        p = share * (counts[token] + 1) / total
        return -math.log(p + (1 / 8 if objective is Objective.span and token >= 268 else 0))

    targets = tokens.val.targets_BM.reshape(-1).tolist()
    assert tokens.facts.unigram_entropy == pytest.approx(sum(map(nats, targets)) / len(targets), rel=1e-12)
    assert np.exp(-tokens.unigram_V).sum() == pytest.approx(1, abs=1e-12)
    source = tokens.batches(4, 0)
    asked = source.examples(2).targets_BM.reshape(-1).tolist()
    assert source.unigram(source.examples(2)) == pytest.approx(sum(map(nats, asked)) / len(asked), rel=1e-12)


@pytest.mark.parametrize("objective", RESERVED)
def test_a_given_tokenizer_gets_the_reserved_tokens_too(data: DataConfig, objective: Objective) -> None:
    trained = prepare(data, CONTEXT)
    assert trained.tokenizer is not None
    size = 270 + len(RESERVED[objective])
    own = asking(data, objective, tokenizer=str(trained.tokenizer), vocab_size=size)
    used = prepare(own, CONTEXT)
    np.testing.assert_array_equal(used.train, trained.train)
    assert used.facts.vocab_size == size
    assert used.tokenizer is not None
    decoded = load_codec(used.tokenizer).decode(range(270, size))
    assert decoded == "".join(RESERVED[objective])
    with pytest.raises(ConfigError, match=rf"{size}: 270, .*reserves\n  try: data.vocab_size={size}"):
        prepare(dataclasses.replace(own, vocab_size=270), CONTEXT)


def test_a_given_tokenizer_with_such_names_keeps_its_own(data: DataConfig, tmp_path: Path) -> None:
    trained = prepare(data, CONTEXT)
    bpe = Tokenizer.from_file(str(trained.tokenizer))
    bpe.add_special_tokens(["<begin>"])
    bpe.save(str(tmp_path / "own.json"))
    own = asking(data, Objective.prefix, tokenizer=str(tmp_path / "own.json"), vocab_size=272)
    used = prepare(own, CONTEXT).tokenizer
    assert used is not None
    assert load_codec(used).decode([270, 271]) == "<begin><begin_>"


def test_the_tokenizer_of_a_masked_run_gives_the_same_examples_again(data: DataConfig) -> None:
    first = prepare(asking(data, Objective.masked, vocab_size=271), CONTEXT)
    assert first.tokenizer is not None
    again = prepare(asking(data, Objective.masked, tokenizer=str(first.tokenizer), vocab_size=271), CONTEXT)
    assert again.facts.tokenizer_sha256 == first.facts.tokenizer_sha256
    drawn = (tokens.batches(4, 0).examples(3) for tokens in (first, again))
    for one, other in ((first.val, again.val), tuple(drawn)):
        np.testing.assert_array_equal(one.inputs_BT, other.inputs_BT)
        np.testing.assert_array_equal(one.targets_BM, other.targets_BM)


def test_a_mask_token_within_a_given_vocabulary_is_used(data: DataConfig, tmp_path: Path) -> None:
    words = {"[SEP]": 0, "[MASK]": 1, "[UNK]": 2, "the": 3, "a": 9}  # with gaps, too: nothing is added
    path = tmp_path / "words.json"
    given = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    given.pre_tokenizer = pre_tokenizers.Whitespace()
    given.save(str(path))
    own = asking(data, Objective.masked, tokenizer=str(path), vocab_size=10)
    tokens = prepare(own, CONTEXT)
    assert (tokens.task.special, tokens.task.ordinary) == (1, 10)
    hidden = np.take_along_axis(tokens.val.inputs_BT, tokens.val.positions_BM, axis=1)
    assert (hidden == 1).mean() > 0.6
    assert tokens.facts.vocab_size == 10


def test_a_tokenizer_with_gaps_in_its_ids_is_refused(data: DataConfig, tmp_path: Path) -> None:
    path = tmp_path / "gaps.json"
    Tokenizer(models.WordLevel({"[SEP]": 0, "[UNK]": 1, "the": 9}, unk_token="[UNK]")).save(str(path))
    gaps = asking(data, Objective.masked, tokenizer=str(path), vocab_size=11)
    with pytest.raises(UserError, match=r"ids of .*gaps\.json leave gaps"):
        prepare(gaps, 8)


@pytest.mark.parametrize("objective", RESERVED)
def test_a_synthetic_source_leaves_the_reserved_tokens_free(make, objective: Objective) -> None:
    data = make(source=Source.synthetic, objective=objective, vocab_size=64, tokens=20_000)
    tokens = prepare(data, CONTEXT)
    ordinary = 64 - len(RESERVED[objective])
    plain = dataclasses.replace(data, objective=Objective.next, vocab_size=ordinary)
    np.testing.assert_array_equal(tokens.train, prepare(plain, CONTEXT).train)
    assert tokens.facts.vocab_size == 64
    assert tokens.facts.fingerprint == fingerprint(data)
    assert tokens.facts.fingerprint == fingerprint(dataclasses.replace(data, objective=Objective.next))


def test_messages_about_vocabularies_count_the_reserved_tokens(data: DataConfig) -> None:
    with pytest.raises(ConfigError, match=r"at least 260: 256 bytes, <\|endoftext\|> and 3 reserved"):
        prepare(asking(data, Objective.span, vocab_size=259), CONTEXT)
    with pytest.raises(ConfigError, match=r"260 to \d+:") as caught:
        prepare(asking(data, Objective.span, vocab_size=5000), CONTEXT)
    reachable = int(str(caught.value.hint).split("=")[1].split(",")[0])
    assert prepare(asking(data, Objective.span, vocab_size=reachable), CONTEXT).facts.vocab_size == reachable


def test_sentinels_are_as_many_as_spans(data: DataConfig) -> None:
    asked = asking(data, Objective.span)
    assert len(reserved_tokens(asked, 512)) == 1 + round(round(0.15 * 512) / 3)
    short, long = prepare(asked, 20), prepare(asked, CONTEXT)
    assert folder(short) != folder(long)
