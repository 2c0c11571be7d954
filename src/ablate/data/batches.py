"""Training batches as a pure function of (data_seed, step).

Shapes: N training windows, B windows of a batch, T tokens of a window, V vocabulary.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ablate.data.examples import NEXT, Examples, Task
from ablate.data.mixing import GOLDEN, TRAINING, Words, keys, mix, seed_word, start_of

ROUNDS = 6
ROUND_KEYS = [np.uint64((0xD1B54A32D192ED03 * (r + 1)) & 0xFFFFFFFFFFFFFFFF) for r in range(ROUNDS)]


def permute(position_B: Words, size: int, key_B: Words) -> Words:
    """Where each position in [0, size) goes under the permutation of its own 64-bit key.

    A Feistel network over pairs (left, right) in Z_a × Z_b with a·b just above `size`, with cycle walking
    down to it (Black & Rogaway 2002, "Ciphers with arbitrary finite domains", methods 2 and 3): a
    bijection for every size and key, at a cost that does not depend on the size.
    """
    b = math.isqrt(size - 1) + 1
    moduli = np.uint64(-(-size // b)), np.uint64(b)
    place_B = _network(position_B, moduli, key_B)
    while (outside_B := place_B >= np.uint64(size)).any():
        place_B[outside_B] = _network(place_B[outside_B], moduli, key_B[outside_B])
    return place_B


def _network(place_B: Words, moduli: tuple[np.uint64, np.uint64], key_B: Words) -> Words:
    a, b = moduli
    left_B, right_B = np.divmod(place_B, b)
    for number in range(0, ROUNDS, 2):
        left_B = (left_B + mix(right_B * GOLDEN + (key_B ^ ROUND_KEYS[number])) % a) % a
        right_B = (right_B + mix(left_B * GOLDEN + (key_B ^ ROUND_KEYS[number + 1])) % b) % b
    return left_B * b + right_B


@dataclass(frozen=True, eq=False)
class Batches:
    """The batches of one run; window w covers train[w·T : w·T + T + 1]."""

    train: NDArray[np.unsignedinteger]
    unigram_V: NDArray[np.float64]
    context: int
    batch: int
    data_seed: int
    task: Task = NEXT

    @cached_property
    def windows(self) -> int:
        """N, the number of windows without overlap: one epoch."""
        return (len(self.train) - 1) // self.context

    @cached_property
    def _seed(self) -> Words:
        return seed_word(self.data_seed)

    @cached_property
    def _start(self) -> Words:
        return start_of(self.data_seed, TRAINING)

    def _samples(self, step: int) -> NDArray[np.int64]:
        """The numbers of a step's samples, counted over the whole run."""
        return step * self.batch + np.arange(self.batch)

    def order(self, step: int) -> NDArray[np.int64]:
        """window_B of a step: sample s = step·B + i is entry s mod N of the permutation of epoch s // N."""
        epoch_B, position_B = np.divmod(self._samples(step), self.windows)
        key_B = mix(self._seed + (epoch_B.astype(np.uint64) + np.uint64(1)) * GOLDEN)
        return permute(position_B.astype(np.uint64), self.windows, key_B).astype(np.int64)

    def at(self, step: int) -> NDArray[np.int64]:
        """The windows batch_BT1 of a step: no window twice in an epoch, and every epoch in a new order."""
        start_B1 = self.order(step)[:, None] * self.context
        batch_BT1: NDArray[np.int64] = self.train[start_B1 + np.arange(self.context + 1)].astype(np.int64)
        return batch_BT1

    def examples(self, step: int) -> Examples:
        """The examples of a step. What is hidden of a window is drawn anew whenever it comes up."""
        return self.task.examples(self.at(step), keys(self._start, self._samples(step)))

    def unigram(self, examples: Examples) -> float:
        """Cross-entropy of the targets under the training unigram, in nats per target."""
        return float(self.unigram_V[examples.targets_BM].mean())
