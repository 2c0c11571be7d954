"""Random words by counting: a pure function of (seed, purpose, number), the same on every machine.

B windows, N words of a window.
"""

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

# Odd constants of splitmix64 (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators").
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
SHIFT_1, SHIFT_2, SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)

TRAINING, HELD_OUT = 1, 2  # what a seed's keys are for


def mix(word_B: Words) -> Words:
    """The output function of splitmix64: every bit of the result depends on every bit of the word."""
    word_B = (word_B ^ (word_B >> SHIFT_1)) * MIX_1
    word_B = (word_B ^ (word_B >> SHIFT_2)) * MIX_2
    return word_B ^ (word_B >> SHIFT_3)


def seed_word(seed: int) -> Words:
    """One mixed word [1] of a seed."""
    return mix(np.array([seed % 2**64], dtype=np.uint64) + GOLDEN)


def start_of(seed: int, purpose: int) -> Words:
    """The word [1] that begins a seed's sequence of keys for a purpose."""
    return mix(seed_word(seed) ^ np.uint64(purpose))


def keys(start: Words, number_B: NDArray[np.integer]) -> Words:
    """key_B of the windows with these numbers."""
    return mix(start + (number_B.astype(np.uint64) + np.uint64(1)) * GOLDEN)


def draws(key_B: Words, stream: int, count: int) -> Words:
    """word_BN: `count` independent words for each key, another sequence for each stream."""
    start_B1 = mix(key_B ^ np.uint64(stream))[:, None]
    return mix(start_B1 + np.arange(1, count + 1, dtype=np.uint64) * GOLDEN)


def shares(word_BN: Words) -> NDArray[np.float64]:
    """Each word as a number in [0, 1), from its 53 upper bits."""
    upper_BN: NDArray[np.float64] = (word_BN >> np.uint64(11)).astype(np.float64)
    return upper_BN * 2.0**-53


def choose(word_BN: Words, count: int) -> NDArray[np.int64]:
    """index_BC, ascending: for each row `count` of its N places, every choice equally likely."""
    if count == 0:
        return np.empty((len(word_BN), 0), dtype=np.int64)
    smallest_BC = np.argpartition(word_BN, count - 1, axis=1)[:, :count]
    return np.sort(smallest_BC, axis=1).astype(np.int64)
