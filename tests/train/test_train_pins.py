"""Checkpoints from before a breakdown outlive the ring, whether or not the values stay finite."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ablate.config import VerdictConfig
from ablate.record import Run, Series
from ablate.train.checkpoint import steps
from ablate.train.pins import Pins
from ablate.verdict import Curve, Kind, judge
from ablate.verdict.reading import read

COLUMNS = ("step", "train/loss", "train/unigram", "train/lr", "grad/norm")
EXPLODES: dict[str, Any] = {"optim": {"lr": 1, "clip": 0, "warmup": 60, "schedule": "constant", "steps": 80}}
COLLAPSES = {**EXPLODES, "optim": {**EXPLODES["optim"], "lr": 0.3}, "model": {"placement": "post"}}
usual = st.floats(-2, 12)
odd = st.one_of(usual, usual, usual, usual, st.floats(allow_nan=True, allow_infinity=True))
a_row = st.tuples(st.one_of(usual, odd), st.one_of(usual, odd), st.just(0.1), st.one_of(usual, odd))


def asked(pins: Pins, start: float, unigram: float) -> tuple[int, int]:
    with np.errstate(all="ignore"):
        return pins.onsets(start, unigram)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(a_row, min_size=1, max_size=80),
    st.lists(st.integers(0, 80), max_size=8),
    st.integers(0, 80),
    st.tuples(st.floats(0, 8), st.floats(0, 8)),
)
def test_followed_row_by_row_resumed_or_read_whole_it_is_the_same(
    values: list[tuple[float, ...]], saves: list[int], resumed: int, levels: tuple[float, float]
) -> None:
    rows: list[list[float | int]] = [[step, *row] for step, row in enumerate(values)]
    table = np.array(rows, dtype=np.float64)
    start, unigram = levels
    first = Pins(COLUMNS, 100, VerdictConfig())
    again = Pins(COLUMNS, 100, VerdictConfig())
    for step, row in enumerate(rows):
        if step in saves:
            asked(first, start, unigram)
        first.see([row])
    again.recall(Series(COLUMNS, table), resumed)
    again.see(rows[resumed:])
    curve = Curve(
        steps=100, warmup=0, loss_R=table[:, 1], unigram_R=table[:, 2], grad_R=table[:, 4],
        val_step_E=np.array([0]), val_loss_E=np.array([start]), unigram=unigram, complete=False,
    )  # fmt: skip
    with np.errstate(all="ignore"):
        whole = read(curve, VerdictConfig()).standing
    assert asked(first, start, unigram) == asked(again, start, unigram) == (whole.onset, whole.rise)


def test_rows_that_begin_late_keep_their_steps() -> None:
    pins = Pins(COLUMNS, 100, VerdictConfig())
    assert pins.onsets(6.0, 5.0) == (0, 0)
    pins.see([[40, 5.0, 5.0, 0.1, 1.0], [41, 9.0, 5.0, 0.1, 1.0]])
    assert pins.onsets(6.0, 5.0) == (41, 41)
    pins.recall(Series(("step",), np.empty((0, 1))), 40)
    pins.see([[50, 5.0, 5.0, 0.1, 1.0]])
    assert pins.onsets(6.0, 5.0) == (51, 51)


@pytest.mark.parametrize(
    ("changes", "kind"), [(EXPLODES, Kind.diverged), (COLLAPSES, Kind.collapsed), ({}, Kind.stable)]
)
def test_the_newest_from_before_a_finite_breakdown_outlives_the_ring(
    bench: Any, changes: Any, kind: Kind
) -> None:
    every, ring = 8, {56, 64, 72}
    config = bench.config({"optim": {"steps": 80}, **changes, "run": {"checkpoint_every": every}})
    folder, outcome = bench.train(config)
    curve = replace(Run(folder).curve(), unigram=bench.data(config).facts.unigram_entropy)
    verdict, kept = judge(curve, config.verdict), steps(folder.checkpoint)
    assert (verdict.kind, outcome.first_bad) == (kind, None)
    if kind is Kind.stable:
        assert verdict.onset is None
        assert set(kept) >= ring
        assert len(kept) <= 4
    else:
        assert verdict.onset is not None
        assert every < verdict.onset < min(ring)
        assert kept == [(verdict.onset - 1) // every * every, *sorted(ring)]
