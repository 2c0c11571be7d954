import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ablate.data import Batches, Examples, permute


def batches(windows: int, batch: int = 4, seed: int = 0, context: int = 3) -> Batches:
    train = np.arange(windows * context + 1, dtype=np.uint16)
    return Batches(train, np.zeros(1), context, batch, seed)


def place(size: int, key: int) -> list[int]:
    keys = np.full(size, key, dtype=np.uint64)
    return permute(np.arange(size, dtype=np.uint64), size, keys).tolist()


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 3000), st.integers(0, 2**64 - 1))
def test_permutation_is_a_bijection_for_every_size(size: int, key: int) -> None:
    assert sorted(place(size, key)) == list(range(size))


def test_permutation_works_near_the_largest_sizes() -> None:
    size = 2**40 + 7
    positions = np.arange(size - 1000, size, dtype=np.uint64)
    found = permute(positions, size, np.full(1000, 3, dtype=np.uint64))
    assert len(set(found.tolist())) == 1000
    assert found.max() < size
    assert found.std() > 0.2 * size  # neighbours are spread over the whole range


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 60), st.integers(1, 9), st.integers(0, 2**63))
def test_every_epoch_holds_every_window_once(windows: int, batch: int, seed: int) -> None:
    source = batches(windows, batch, seed)
    steps = math.ceil(3 * windows / batch)
    drawn = [w for step in range(steps) for w in source.order(step).tolist()]
    for epoch in range(3):
        assert sorted(drawn[epoch * windows : (epoch + 1) * windows]) == list(range(windows))


@pytest.mark.parametrize("batch", [1, 7, 64])
def test_samples_have_global_numbers_whatever_the_batch(batch: int) -> None:
    drawn = [w for step in range(448 // batch) for w in batches(100, batch).order(step).tolist()]
    assert drawn == batches(100, 448).order(0).tolist()


def test_epochs_and_seeds_differ() -> None:
    def epoch(seed: int, number: int) -> tuple[int, ...]:
        return tuple(batches(50, 50, seed).order(number).tolist())

    orders = {epoch(seed, number) for seed in range(5) for number in range(5)}
    assert len(orders) == 25
    assert tuple(range(50)) not in orders


def test_a_step_needs_no_history() -> None:
    walked, jumped = batches(500, 16, 3), batches(500, 16, 3)
    history = [walked.at(step) for step in range(200)]
    for step in (199, 3, 77, 0):
        np.testing.assert_array_equal(jumped.at(step), history[step])


def test_windows_are_cut_without_overlap_and_end_in_their_last_target() -> None:
    source = batches(windows=20, batch=20, context=5)
    batch_BT1 = source.at(0)
    assert batch_BT1.shape == (20, 6)
    assert batch_BT1.dtype == np.int64
    np.testing.assert_array_equal(batch_BT1, source.order(0)[:, None] * 5 + np.arange(6))


@pytest.mark.parametrize("size", [3, 10, 37])
def test_places_are_uniform_over_keys_alone_and_in_pairs(size: int) -> None:
    keys = np.arange(20_000, dtype=np.uint64)
    first, second = (permute(np.full(20_000, p, dtype=np.uint64), size, keys) for p in (0, 1))
    for counts, cells in (
        (Counter(first.tolist()), size),
        (Counter(zip(first.tolist(), second.tolist(), strict=True)), size * (size - 1)),
    ):
        expected = 20_000 / cells
        chi2 = sum((n - expected) ** 2 / expected for n in counts.values())
        chi2 += (cells - len(counts)) * expected
        assert abs(chi2 - (cells - 1)) < 5 * math.sqrt(2 * (cells - 1)) + 5


def test_unigram_is_the_mean_over_the_targets() -> None:
    source = Batches(np.arange(10, dtype=np.uint16), np.array([1.0, 2.0, 4.0]), 2, 2, 0)
    examples = Examples(np.array([[0, 1], [2, 0]]), np.array([[1, 2], [0, 0]]))
    assert source.unigram(examples) == pytest.approx((2 + 4 + 1 + 1) / 4)
