"""What a window asks under each objective.

N windows, T tokens of a window, M targets.
"""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ablate.config import DataConfig, Objective, hidden, reserved_tokens
from ablate.data import Batches, Examples, Task

TEXT = 50  # ordinary tokens


def made(objective: Objective, context: int, **changes: float) -> DataConfig:
    data = DataConfig(objective=objective, data_seed=0, **changes)
    return dataclasses.replace(data, vocab_size=TEXT + len(reserved_tokens(data, context)))


def batches(data: DataConfig, context: int, windows: int = 40, batch: int = 8, seed: int = 0) -> Batches:
    train_S = np.random.default_rng(1).integers(0, TEXT, windows * context + 1).astype(np.uint16)
    return Batches(train_S, np.zeros(data.vocab_size), context, batch, seed, Task.of(data, context))


def parts(examples: Examples) -> list[NDArray[np.int64]]:
    named = (examples.inputs_BT, examples.targets_BM, examples.positions_BM, examples.source_BS)
    return [part for part in named if part is not None]


def equal(a: Examples, b: Examples) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(parts(a), parts(b), strict=True))


@pytest.mark.parametrize("objective", list(Objective))
def test_examples_are_a_function_of_seed_and_step_alone(objective: Objective) -> None:
    data = made(objective, 32)
    walked, jumped = batches(data, 32), batches(data, 32)
    history = [walked.examples(step) for step in range(20)]
    for step in (19, 3, 7, 0):
        assert equal(jumped.examples(step), history[step])
    assert not equal(batches(data, 32, seed=1).examples(0), history[0])


@pytest.mark.parametrize("objective", list(Objective))
def test_an_example_depends_on_its_own_window_and_number_not_on_the_batch(objective: Objective) -> None:
    data = made(objective, 32)
    whole = batches(data, 32, batch=48).examples(0)
    for step in range(6):
        assert equal(batches(data, 32, batch=8).examples(step), whole.rows(8 * step, 8 * step + 8))


@pytest.mark.parametrize("objective", list(Objective))
def test_the_windows_are_those_of_every_objective(objective: Objective) -> None:
    plain, asked = batches(made(Objective.next, 16), 16), batches(made(objective, 16), 16)
    for step in range(12):
        np.testing.assert_array_equal(plain.at(step), asked.at(step))


@pytest.mark.parametrize("objective", list(Objective))
def test_parts_are_fixed_in_shape_and_split_alike(objective: Objective) -> None:
    source = batches(made(objective, 21), 21)
    shapes = {tuple(part.shape for part in parts(source.examples(step))) for step in range(9)}
    assert len(shapes) == 1
    examples = source.examples(0)
    assert {part.dtype for part in parts(examples)} == {np.dtype(np.int64)}
    assert [part.shape[0] for part in parts(examples)] == [8] * len(parts(examples))
    for number, part in enumerate(examples.split(4)):
        assert equal(part, examples.rows(2 * number, 2 * number + 2))
        assert len(part) == 2


def test_next_shifts_by_one() -> None:
    source = batches(made(Objective.next, 16), 16)
    examples, windows_NT1 = source.examples(3), source.at(3)
    np.testing.assert_array_equal(examples.inputs_BT, windows_NT1[:, :-1])
    np.testing.assert_array_equal(examples.targets_BM, windows_NT1[:, 1:])


@settings(max_examples=80, deadline=None)
@given(st.integers(2, 90), st.floats(0.01, 0.95), st.integers(0, 2**63), st.integers(0, 1000))
def test_masked_asks_exactly_so_many_tokens_and_changes_no_other(
    context: int, rate: float, seed: int, step: int
) -> None:
    data = made(Objective.masked, context, mask_rate=rate)
    count = max(1, round(rate * context))
    assume(count < context)
    source = batches(data, context, seed=seed)
    examples, window_NT = source.examples(step), source.at(step)[:, :-1]
    positions_NM = examples.positions_BM
    assert positions_NM is not None
    assert positions_NM.shape == examples.targets_BM.shape == (8, count)
    assert (np.diff(positions_NM, axis=1) > 0).all()
    np.testing.assert_array_equal(np.take_along_axis(window_NT, positions_NM, 1), examples.targets_BM)
    restored_NT = examples.inputs_BT.copy()
    np.put_along_axis(restored_NT, positions_NM, examples.targets_BM, 1)
    np.testing.assert_array_equal(restored_NT, window_NT)
    assert examples.inputs_BT.max() <= TEXT  # the mask token is the last id
    assert examples.targets_BM.max() < TEXT


def within(count: int, of: int, rate: float) -> bool:
    """Is a binomial count within five standard deviations?"""
    return abs(count - of * rate) < 5 * math.sqrt(of * rate * (1 - rate))


def test_masked_tokens_are_masked_replaced_or_kept_at_the_published_rates() -> None:
    source = batches(made(Objective.masked, 64), 64, windows=400, batch=400)
    examples = source.examples(0)
    assert examples.positions_BM is not None
    read_NM = np.take_along_axis(examples.inputs_BT, examples.positions_BM, 1)
    total = read_NM.size
    masked, same = int((read_NM == TEXT).sum()), int((read_NM == examples.targets_BM).sum())
    assert total == 400 * 10
    assert within(masked, total, 0.8)
    assert within(same, total, 0.1 + 0.1 / TEXT)  # kept, or replaced by itself
    others = read_NM[(read_NM != TEXT) & (read_NM != examples.targets_BM)]
    assert within(len(others), total, 0.1 * (1 - 1 / TEXT))
    counts_V = np.bincount(others, minlength=TEXT)
    assert ((counts_V - len(others) / TEXT) ** 2).sum() / (len(others) / TEXT) < TEXT + 5 * math.sqrt(
        2 * TEXT
    )


@pytest.mark.parametrize("objective", [Objective.masked, Objective.span])
def test_every_place_is_hidden_equally_often_or_as_the_spans_allow(objective: Objective) -> None:
    """Masked: uniform. Span: a window begins with a visible token and ends with a hidden one."""
    context, windows = 40, 4000
    data = made(objective, context)
    source = batches(data, context, windows=windows, batch=windows)
    hidden_NT = hidden_places(source.examples(0), source.at(0)[:, :-1])
    assert (hidden_NT.sum(axis=1) == hidden(data, context).tokens).all()
    counts_T = hidden_NT.sum(axis=0)
    if objective is Objective.masked:
        assert all(within(int(count), windows, 6 / context) for count in counts_T)
    else:
        assert counts_T[0] == 0
        assert counts_T[-1] == windows


def hidden_places(examples: Examples, window_NT: NDArray[np.int64]) -> NDArray[np.bool_]:
    hidden_NT = np.zeros(window_NT.shape, dtype=bool)
    if examples.positions_BM is not None:
        np.put_along_axis(hidden_NT, examples.positions_BM, True, 1)
        return hidden_NT
    assert examples.source_BS is not None
    for row, (source, target) in enumerate(zip(examples.source_BS, examples.targets_BM, strict=True)):
        place = 0
        for token in source.tolist():
            length = len(spans_of(target)[token]) if token > TEXT else 1
            hidden_NT[row, place : place + length] = token > TEXT
            place += length
    return hidden_NT


@pytest.mark.parametrize("objective", [Objective.masked, Objective.span])
def test_windows_are_hidden_independently(objective: Objective) -> None:
    """The same window in a batch many times: what is hidden agrees as often as chance has it, between windows
    and between steps.
    """
    data = made(objective, 40, mask_rate=0.5)
    task = Task.of(data, 40)
    train_S = np.arange(41, dtype=np.uint16) % TEXT
    source = Batches(train_S, np.zeros(data.vocab_size), 40, 400, 0, task)
    first_NT, second_NT = (
        hidden_places(source.examples(step), source.at(step)[:, :-1])[:, 1:-1] for step in (0, 1)
    )
    rate_T = np.concatenate([first_NT, second_NT]).mean(axis=0)
    expected = (rate_T**2 + (1 - rate_T) ** 2).mean()
    for other_NT in (np.roll(first_NT, 1, axis=0), second_NT):
        assert (first_NT == other_NT).mean() == pytest.approx(expected, abs=0.02)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 70), st.integers(0, 1000))
def test_prefix_predicts_the_second_half_from_the_first(context: int, step: int) -> None:
    source = batches(made(Objective.prefix, context), context)
    examples, window_NT = source.examples(step), source.at(step)[:, :-1]
    assert examples.source_BS is not None
    whole_NT = np.concatenate([examples.source_BS, examples.targets_BM], axis=1)
    np.testing.assert_array_equal(whole_NT, window_NT)
    assert examples.source_BS.shape[1] == context // 2
    decoder_reads(examples)


def decoder_reads(examples: Examples) -> None:
    """Begin, then the targets but the last: no target is read before it is asked for."""
    assert (examples.inputs_BT[:, 0] == TEXT).all()
    np.testing.assert_array_equal(examples.inputs_BT[:, 1:], examples.targets_BM[:, :-1])
    assert examples.positions_BM is None


def spans_of(target_M: NDArray[np.int64]) -> dict[int, list[int]]:
    """Hidden tokens by sentinel, in the order of the targets."""
    spans: dict[int, list[int]] = {}
    for token in target_M.tolist():
        if token > TEXT:
            assert token not in spans
            spans[token] = []
            now = spans[token]
        else:
            now.append(token)
    return spans


@settings(max_examples=80, deadline=None)
@given(
    st.integers(2, 90), st.floats(0.01, 0.95), st.floats(1, 8), st.integers(0, 2**63), st.integers(0, 1000)
)
def test_span_source_and_targets_give_the_window_back(
    context: int, rate: float, length: float, seed: int, step: int
) -> None:
    data = made(Objective.span, context, mask_rate=rate, mask_span=length)
    wanted = hidden(data, context)
    assume(wanted.spans > 0 and context - wanted.tokens >= wanted.spans)
    source = batches(data, context, seed=seed)
    examples = source.examples(step)
    decoder_reads(examples)
    assert examples.source_BS is not None
    assert examples.source_BS.shape[1] == context - wanted.tokens + wanted.spans <= context
    assert examples.targets_BM.shape[1] == wanted.tokens + wanted.spans <= context
    for window, read, target in zip(
        source.at(step)[:, :-1], examples.source_BS, examples.targets_BM, strict=True
    ):
        spans = spans_of(target)
        assert list(spans) == list(range(TEXT + 1, TEXT + 1 + wanted.spans))
        assert all(spans.values())
        assert [token for token in read.tolist() if token > TEXT] == list(spans)
        restored = [part for token in read.tolist() for part in spans.get(token, [token])]
        assert restored == window.tolist()


def test_span_lengths_are_random_compositions() -> None:
    """6 hidden tokens in 2 spans: each of the 5 ways to cut them equally often; so for 34 visible ones."""
    data = made(Objective.span, 40)
    assert (hidden(data, 40).tokens, hidden(data, 40).spans) == (6, 2)
    examples = batches(data, 40, windows=5000, batch=5000).examples(0)
    assert examples.source_BS is not None
    first_N = np.array([len(spans_of(target)[TEXT + 1]) for target in examples.targets_BM])
    assert all(within(int((first_N == length).sum()), 5000, 1 / 5) for length in range(1, 6))
    place_N = (examples.source_BS == TEXT + 1).argmax(axis=1)
    assert all(within(int((place_N == length).sum()), 5000, 1 / 33) for length in range(1, 34))
    assert within(int((first_N == place_N).sum()), 5000, 1 / 33)  # drawn apart
