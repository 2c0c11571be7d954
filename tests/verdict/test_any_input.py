"""No series of floats makes the verdict fail, warn or report something that is not finite."""

import math
import warnings

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_curves import curve, healthy

from ablate.config import VerdictConfig
from ablate.verdict import Curve, Kind, growth_against, growth_rate, judge

any_float = st.floats(allow_nan=True, allow_infinity=True)
mostly_usual = st.one_of(st.floats(0, 12), st.floats(0, 12), st.floats(0, 12), any_float)
some_float = st.sampled_from([any_float, mostly_usual, st.floats(0, 12), st.just(5.0), st.just(1e308)])


@st.composite
def curves(draw: st.DrawFn) -> Curve:
    steps = draw(st.integers(1, 80))
    rows = draw(st.sampled_from([steps, draw(st.integers(0, steps))]))
    values = draw(some_float)
    evaluations = draw(st.lists(st.integers(0, steps), max_size=5))

    def column(length: int) -> np.ndarray:
        return np.array(draw(st.lists(values, min_size=length, max_size=length)), dtype=np.float64)

    return Curve(
        steps=steps,
        warmup=draw(st.integers(0, steps)),
        loss_R=column(rows),
        unigram_R=column(rows),
        grad_R=column(draw(st.sampled_from([0, rows]))),
        val_step_E=np.array(sorted(evaluations), dtype=np.int64),
        val_loss_E=column(len(evaluations)),
        unigram=draw(values),
        complete=draw(st.booleans()),
    )


def small_windows() -> VerdictConfig:
    """Windows that fit into the short series of these tests."""
    return VerdictConfig(window_floor=4, spike_window=4, spike_steps=2)


@settings(max_examples=250, deadline=None)
@given(curves(), st.sampled_from([VerdictConfig(), small_windows()]))
def test_any_curve_gets_a_verdict(made: Curve, thresholds: VerdictConfig) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        verdict = judge(made, thresholds)
    assert verdict.reasons
    assert all(isinstance(value, float) and math.isfinite(value) for value in verdict.measures.values())
    bad = not all(np.isfinite(x).all() for x in (made.loss_R, made.grad_R, made.val_loss_E))
    assert bad == (verdict.step is not None)
    if bad:
        assert verdict.kind is Kind.diverged
    else:
        assert (verdict.kind is Kind.censored) == (not made.complete or made.loss_R.size < made.steps)
    assert judge(made, thresholds) == verdict


@settings(max_examples=200, deadline=None)
@given(st.lists(any_float, max_size=30), st.lists(any_float, max_size=30), st.integers(2, 40))
def test_growth_of_any_series(values: list[float], twin: list[float], window: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rate = growth_rate(np.array(values), window)
        growth = growth_against(np.array(values), np.array(twin))
    assert math.isfinite(rate) or math.isnan(rate)
    assert growth.departure is None or 0 <= growth.departure < min(len(values), len(twin))


def test_the_curve_is_left_as_it_was() -> None:
    made = curve(healthy(), 200)
    before = {name: np.copy(getattr(made, name)) for name in ("loss_R", "unigram_R", "grad_R", "val_loss_E")}
    judge(made, VerdictConfig())
    for name, values in before.items():
        assert np.array_equal(getattr(made, name), values)
