"""R rows."""

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from ablate.train import Measured, RowBuffer, StopRule

Written = list[list[float | int]]


def record(
    losses: list[float], every: int, capacity: int, flush_at: set[int], patience: int
) -> tuple[Written, Written]:
    """What is written when these losses are put in turn, with flushes asked for before some steps."""
    dense: Written = []
    probe: Written = []
    stop = StopRule(patience)
    buffer = RowBuffer((3, 1), torch.device("cpu"), stop, dense.extend, probe.extend, capacity)
    for step, loss in enumerate(losses):
        if step in flush_at:
            buffer.flush()
        if stop.reached(step):
            break
        sampled = torch.tensor([step * 2.0]) if step % every == 0 else None
        buffer.put(step, 7.0, 0.5, Measured(torch.tensor([loss, 1.0, step + 0.25]), sampled))
    buffer.flush()
    return dense, probe


@given(
    st.lists(st.sampled_from([1.0, 2.0, math.nan, math.inf]), max_size=40),
    st.integers(1, 5),
    st.integers(1, 9),
    st.sets(st.integers(0, 40)),
    st.integers(1, 6),
)
def test_when_rows_are_flushed_does_not_change_what_is_written(
    losses: list[float], every: int, capacity: int, flush_at: set[int], patience: int
) -> None:
    bad = next((step for step, loss in enumerate(losses) if not math.isfinite(loss)), None)
    end = len(losses) if bad is None else min(len(losses), bad + patience)
    dense, probe = record(losses, every, capacity, flush_at, patience)
    assert repr(dense) == repr([[s, losses[s], 7.0, 0.5, 1.0, s + 0.25] for s in range(end)])
    assert probe == [[s, s * 2.0] for s in range(0, end, every)]


def test_on_the_cpu_a_row_is_written_as_its_step_ends() -> None:
    dense: Written = []
    buffer = RowBuffer((2, 0), torch.device("cpu"), StopRule(3), dense.extend, dense.extend)
    for step in range(3):
        buffer.put(step, 0.0, 0.0, Measured(torch.ones(2), None))
        assert len(dense) == step + 1


def test_a_gradient_norm_that_is_not_finite_stops_too() -> None:
    stop = StopRule(4)
    stop.see(0, 1.0, 1.0)
    stop.see(1, 1.0, math.inf)
    stop.see(2, math.nan, 1.0)
    assert (stop.first_bad, stop.end) == (1, 5)
    assert not stop.reached(4)
    assert stop.reached(5)
