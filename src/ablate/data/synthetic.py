"""A stochastic source whose entropy rate is known in closed form.

Shapes: V tokens of the vocabulary, K successors of a token (`branching`), S tokens of a stream.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ablate.config import ConfigError, DataConfig
from ablate.data.corpus import Stream

TABLE, START, TRAIN, VAL = range(4)  # independent random streams of one seed
BURN_IN = 1000
CHUNK = 1 << 22  # cells of the successor race held at once
LARGEST = 1 << 15  # vocabulary: the race has a cell for every pair of tokens


@dataclass(frozen=True)
class Chain:
    """A random first-order Markov chain.

    Token v is followed by successors_VK[v, k] with probability probabilities_K[k] ∝ 1/(k+1). All rows
    share these probabilities, so the entropy rate is H(p) whatever the stationary distribution is.
    """

    successors_VK: NDArray[np.int64]
    probabilities_K: NDArray[np.float64]
    seed: int

    @classmethod
    def draw(cls, vocab_size: int, branching: int, seed: int) -> "Chain":
        """The chain of this seed and shape. Successors are distinct, drawn with Zipf popularity (token v
        has weight 1/(v+1)) one after the other, so that frequent tokens are also likely successors.
        """
        rng = np.random.default_rng([seed, TABLE, vocab_size, branching])
        weights_V = 1.0 / np.arange(1, vocab_size + 1)
        rows = max(1, CHUNK // vocab_size)
        parts = []
        for start in range(0, vocab_size, rows):
            # Exponential race: the K earliest arrivals are a weighted draw without replacement.
            shape = (min(rows, vocab_size - start), vocab_size)
            arrival_RV = -np.log1p(-rng.random(shape)) / weights_V
            first_RK = np.argpartition(arrival_RV, branching - 1, axis=1)[:, :branching]
            order_RK = np.argsort(np.take_along_axis(arrival_RV, first_RK, axis=1), axis=1)
            parts.append(np.take_along_axis(first_RK, order_RK, axis=1))
        return cls(np.concatenate(parts), successor_probabilities(branching), seed)

    def sample(self, length: int, stream: int) -> NDArray[np.int64]:
        """tokens_S: an independent draw for each `stream`. All begin at the same token, reached by a long
        walk: a chain with several closed classes then has all its draws in one of them.
        """
        walk = self._walk(0, BURN_IN, START)
        return np.array(self._walk(walk[-1], length, stream), dtype=np.int64)

    def _walk(self, token: int, length: int, stream: int) -> list[int]:
        vocab_size, branching = self.successors_VK.shape
        rng = np.random.default_rng([self.seed, stream, vocab_size, branching])
        edges_K = np.cumsum(self.probabilities_K)[:-1]
        choices: list[int] = np.searchsorted(edges_K, rng.random(length), side="right").tolist()
        successors: list[list[int]] = self.successors_VK.tolist()
        walk = []
        for choice in choices:
            token = successors[token][choice]
            walk.append(token)
        return walk


def successor_probabilities(branching: int) -> NDArray[np.float64]:
    """p_K with p_k ∝ 1/(k+1)."""
    p_K: NDArray[np.float64] = 1.0 / np.arange(1, branching + 1)
    p_K /= p_K.sum()
    return p_K


def entropy_rate(branching: int) -> float:
    """H(p) of the chain's successors, in nats per token (Shannon 1948, section 7: the mean of the rows'
    entropies under the stationary distribution; here all rows agree).
    """
    p_K = successor_probabilities(branching)
    return float(-(p_K * np.log(p_K)).sum())


def synthetic(data: DataConfig) -> Stream:
    """`data.tokens` of training text from the chain, and val_fraction of that held out."""
    if data.branching > data.vocab_size:
        raise ConfigError.setting(
            "data.branching", data.branching, f"2 to data.vocab_size ({data.vocab_size}): successors differ"
        )
    if data.vocab_size > LARGEST:
        raise ConfigError.setting(
            "data.vocab_size", data.vocab_size, f"2 to {LARGEST} for a synthetic source"
        )
    if data.tokenizer is not None:
        raise ConfigError.setting("data.tokenizer", data.tokenizer, "null: a synthetic source has no text")
    held_out = max(1, round(data.tokens * data.val_fraction))

    def draw(tokens: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        chain = Chain.draw(tokens, data.branching, data.split_seed)
        return chain.sample(data.tokens, TRAIN), chain.sample(held_out, VAL)

    identity = {
        "vocab_size": data.vocab_size,
        "branching": data.branching,
        "seed": data.split_seed,
        "tokens": data.tokens,
        "held_out": held_out,
    }
    return Stream(identity, draw, entropy_rate(data.branching))
