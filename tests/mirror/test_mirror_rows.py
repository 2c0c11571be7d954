"""Rows of a W&B run: complete where they fit, no spike lost where not, and a beginning that stays."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ablate.mirror.rows import Row, Shape, mirrored_rows
from ablate.record import Series

COLUMNS = ("step", "train/loss", "grad/norm", "out/b00_q", "out/head")


def dense(loss: list[float], grad: list[float] | None = None) -> Series:
    grads = grad or [1.0] * len(loss)
    rows = [[t, x, g, 0.5, 2.0 + t % 3] for t, (x, g) in enumerate(zip(loss, grads, strict=True))]
    return Series(COLUMNS, np.array(rows, dtype=np.float64).reshape(len(rows), 5))


def sparse(name: str, every: int, count: int) -> Series:
    found = [[i * every, float(i % 5)] for i in range(count)]
    return Series(("step", name), np.array(found, dtype=np.float64).reshape(count, 2))


EMPTY = sparse("none", 1, 0)


def rows(
    series: Series, val: Series, probe: Series, shape: Shape, budget: int = 20, ended: bool = True
) -> list[Row]:
    return mirrored_rows(series, val, probe, shape, budget, ended)


def test_a_short_run_is_sent_whole_and_unchanged() -> None:
    loss = [6.0 - 0.1 * t for t in range(10)]
    val, probe = sparse("val/loss", 5, 3), sparse("attn/b00_max_logit", 4, 3)
    found = rows(dense(loss), val, probe, Shape(10, 5, 4))
    assert [row["train/step"] for row in found] == [*range(10), 10]
    assert [row["train/loss"] for row in found[:10]] == loss
    assert [row["train/step"] for row in found if "val/loss" in row] == [0, 5, 10]
    assert [row["train/step"] for row in found if "attn/b00_max_logit" in row] == [0, 4, 8]


def test_one_spike_of_a_long_run_stays_at_its_step() -> None:
    loss, grad = [4.0] * 5000, [1.0] * 5000
    loss[3217], grad[4111] = 9.0, 70.0
    found = rows(dense(loss, grad), sparse("val/loss", 5000, 2), EMPTY, Shape(5000, 5000, 0))
    by_step = {row["train/step"]: row for row in found}
    assert len(found) <= 20 + 3
    assert by_step[3217]["train/loss"] == 9.0
    assert by_step[4111]["grad/norm"] == 70.0
    assert by_step[0]["train/loss"] == 4.0
    assert by_step[4999]["train/loss"] == 4.0


def test_the_largest_value_of_a_window_stands_beside_the_values_after_it() -> None:
    loss = [4.0] * 1000
    loss[500] = 9.0
    found = rows(dense(loss), sparse("val/loss", 1000, 2), EMPTY, Shape(1000, 1000, 0), budget=1000)
    raised = [row["train/step"] for row in found if row.get("train/loss_max") == 9.0]
    assert raised == list(range(500, 510))
    assert found[0]["out/max"] == 2.0
    assert found[600]["out/max"] == 4.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_left_out_counted_and_marked(bad: float) -> None:
    found = rows(dense([5.0, 4.0, bad, 3.0]), sparse("val/loss", 4, 1), EMPTY, Shape(100, 100, 0), budget=100)
    assert all(math.isfinite(value) for row in found for value in row.values())
    assert "train/loss" not in found[2]
    assert found[2]["train/loss_capped"] == 5.0
    assert [row["status/nonfinite"] for row in found] == [0, 0, 1, 0]
    assert [row["status/diverged"] for row in found] == [0, 0, 1, 1]


def test_a_loss_above_its_start_is_capped_at_it() -> None:
    found = rows(dense([5.0, 7.0]), sparse("val/loss", 4, 1), EMPTY, Shape(2, 4, 0))
    assert [row["train/loss_capped"] for row in found] == [5.0, 5.0]
    assert found[1]["train/loss"] == 7.0


def test_no_rows_yet_is_no_row() -> None:
    empty = Series(("step",), np.empty((0, 1)))
    assert rows(empty, empty, empty, Shape(100, 10, 10), ended=False) == []
    assert rows(empty, empty, empty, Shape(100, 10, 10), ended=True) == []


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_rows_of_a_growing_record_only_grow(data: st.DataObject) -> None:
    steps = data.draw(st.integers(1, 120))
    every, cadence = data.draw(st.integers(1, 40)), data.draw(st.integers(0, 30))
    budget = data.draw(st.integers(5, 130))
    loss = data.draw(st.lists(st.sampled_from([1.0, 2.0, 9.0, math.nan]), min_size=steps, max_size=steps))
    shape = Shape(steps, every, cadence)

    def at(done: int, ended: bool) -> list[Row]:
        """The record when `done` steps have rows (their evaluations and probes too)."""
        val = sparse("val/loss", every, done // every + 1)
        count = (done - 1) // cadence + 1 if cadence and done else 0
        probe = sparse("attn/b00_max_logit", cadence, count)
        return rows(dense(loss[:done]), val, probe, shape, budget, ended)

    whole = at(steps, True)
    assert [r["train/step"] for r in whole] == sorted({r["train/step"] for r in whole})
    for done in range(0, steps, max(1, steps // 7)):
        early = at(done, False)
        assert early == whole[: len(early)]


@given(st.integers(100, 5000), st.integers(20, 200))
@settings(deadline=None, max_examples=30)
def test_the_budget_holds(steps: int, budget: int) -> None:
    loss = np.random.default_rng(steps).normal(size=steps).tolist()
    found = rows(dense(loss), sparse("val/loss", steps, 2), EMPTY, Shape(steps, steps, 0), budget)
    assert len(found) <= budget + 8
