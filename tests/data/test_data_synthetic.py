import dataclasses
import math

import numpy as np
import pytest

from ablate.config import ConfigError, DataConfig, Source
from ablate.data import Chain, fingerprint, prepare


@pytest.fixture
def data(make) -> DataConfig:
    return make(source=Source.synthetic, vocab_size=64, branching=4, tokens=200_000, val_fraction=0.05)


def test_every_token_has_its_own_distinct_successors() -> None:
    chain = Chain.draw(vocab_size=50, branching=6, seed=1)
    assert chain.successors_VK.shape == (50, 6)
    assert all(len(set(row)) == 6 for row in chain.successors_VK.tolist())
    assert len({tuple(row) for row in chain.successors_VK.tolist()}) > 40
    weights_K = chain.probabilities_K / chain.probabilities_K[0]
    np.testing.assert_allclose(weights_K, 1 / np.arange(1, 7))
    assert chain.probabilities_K.sum() == pytest.approx(1)


def test_full_branching_reaches_every_token() -> None:
    chain = Chain.draw(vocab_size=9, branching=9, seed=0)
    assert all(sorted(row) == list(range(9)) for row in chain.successors_VK.tolist())


def test_transitions_follow_the_table(data: DataConfig) -> None:
    tokens_S = prepare(data, 32).train.astype(np.int64)
    chain = Chain.draw(64, 4, data.split_seed)
    pairs_VV = np.zeros((64, 64))
    np.add.at(pairs_VV, (tokens_S[:-1], tokens_S[1:]), 1)
    for token, row_V in enumerate(pairs_VV):
        successors_K, seen = chain.successors_VK[token], row_V.sum()
        assert row_V.sum() == row_V[successors_K].sum()
        if seen > 2000:
            tolerance = 5 * np.sqrt(chain.probabilities_K / seen)
            assert (np.abs(row_V[successors_K] / seen - chain.probabilities_K) < tolerance).all()
    joint_VV = pairs_VV / pairs_VV.sum()
    p_V1 = joint_VV.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        conditional = -np.nansum(joint_VV * np.log(joint_VV / p_V1))
    assert conditional == pytest.approx(prepare(data, 32).facts.entropy_rate, abs=0.005)


def test_entropy_rate_is_that_of_the_successors(data: DataConfig) -> None:
    p = [12 / 25, 6 / 25, 4 / 25, 3 / 25]
    facts = prepare(data, 32).facts
    assert facts.entropy_rate == pytest.approx(-sum(q * math.log(q) for q in p), abs=1e-12)
    # Something to learn beyond the unigram, which itself is far from uniform.
    assert facts.entropy_rate + 0.5 < facts.unigram_entropy < math.log(64) - 0.3
    assert (facts.documents, facts.bytes, facts.tokenizer_sha256) == (0, 0, None)
    assert (facts.vocab_size, facts.train_tokens, facts.val_tokens) == (64, 200_000, 10_000)


def test_both_streams_are_draws_of_one_chain(data: DataConfig) -> None:
    tokens = prepare(data, 32)
    train_S, val_S = tokens.train.astype(int), tokens.val.inputs_BT.reshape(-1)
    assert (train_S[: len(val_S)] != val_S).mean() > 0.5
    assert set(val_S.tolist()) <= set(train_S.tolist())
    pairs = set(zip(train_S[:-1].tolist(), train_S[1:].tolist(), strict=True))
    held_out = list(zip(val_S[:-1].tolist(), val_S[1:].tolist(), strict=True))
    assert sum(pair in pairs for pair in held_out) > 0.99 * len(held_out)


@pytest.mark.parametrize(
    "change", [{"split_seed": 1}, {"branching": 5}, {"vocab_size": 65}, {"tokens": 9999}]
)
def test_the_source_is_its_parameters(data: DataConfig, change: dict[str, int], tmp_path) -> None:
    other = dataclasses.replace(data, **change)
    elsewhere = dataclasses.replace(data, cache=str(tmp_path / "other"), data_seed=5)
    assert fingerprint(data) == fingerprint(elsewhere) != fingerprint(other)
    assert prepare(data, 32).facts == prepare(elsewhere, 32).facts
    assert prepare(data, 32).facts.tokens_sha256 != prepare(other, 32).facts.tokens_sha256


def test_more_successors_than_tokens_are_refused(make) -> None:
    with pytest.raises(ConfigError, match=r"data.branching = 9\n.*2 to data.vocab_size \(8\)"):
        prepare(make(source=Source.synthetic, vocab_size=8, branching=9), 32)
    with pytest.raises(ConfigError, match=r"data.tokenizer = x.json"):
        prepare(make(source=Source.synthetic, tokenizer="x.json"), 32)


def test_a_vocabulary_that_would_take_hours_to_draw_is_refused(make) -> None:
    with pytest.raises(ConfigError, match=r"data.vocab_size = 100000\n.*2 to 32768 for a synthetic source"):
        fingerprint(make(source=Source.synthetic, vocab_size=100_000))
