"""Where a run broke down: by hand-made curves, and the same for blocks of any length."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from synthetic_curves import GAP, L0, U, curve, flat, healthy, joined, towards

from ablate.config import VerdictConfig
from ablate.verdict import Curve, Kind, Standing, excess_of, judge

Floats = NDArray[np.float64]
TH = VerdictConfig()
STEPS, WINDOW = 200, 10  # 5 % of 200
any_float = st.floats(allow_nan=True, allow_infinity=True)
gaps = st.one_of(st.floats(-1, 4), st.sampled_from([float("nan"), 0.0, 1e308]))


def standing(excess_R: Floats, gap: float = GAP, steps: int = STEPS) -> Standing:
    return Standing.start(gap, steps, TH).after(excess_R)


def slow(excess: list[float], gap: float, steps: int) -> tuple[int, int]:
    """Last well row, and the last one before the top of the largest rise; row by row, as the page says it."""
    window, lowest, last, before, highest = max(5, round(0.05 * steps)), np.inf, -1, -1, -np.inf
    scale = gap if gap >= 0.2 else 0.2
    for row in range(len(excess)):
        part = excess[max(0, row + 1 - window) : row + 1]
        mean = sum(part) / len(part)
        lowest = min(lowest, mean)
        if mean <= lowest + 0.1 * max(gap - lowest, scale):
            last = row
        if mean - lowest > highest:
            highest, before = mean - lowest, last
    return last, before


@settings(deadline=None)
@given(
    st.lists(st.integers(-16, 80).map(lambda n: n / 16), max_size=70), st.integers(0, 24), st.integers(1, 200)
)
def test_it_is_what_the_page_says(excess: list[float], eighths: int, steps: int) -> None:
    """Sixteenths: sums are exact, so that rounding decides nothing."""
    found = standing(np.array(excess, dtype=np.float64), eighths / 8, steps)
    assert (found.last_well, found.well_before) == slow(excess, eighths / 8, steps)
    assert found.well == (found.last_well == len(excess) - 1)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.one_of(st.floats(-3, 9), st.floats(-3, 9), any_float), max_size=90),
    st.lists(st.integers(0, 90), max_size=12),
    gaps,
    st.integers(1, 300),
)
def test_blocks_of_any_length_give_the_same(
    excess: list[float], cuts: list[int], gap: float, steps: int
) -> None:
    excess_R = np.array(excess, dtype=np.float64)
    at_once, in_blocks = standing(excess_R, gap, steps), Standing.start(gap, steps, TH)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for block_R in np.split(excess_R, sorted(min(cut, len(excess)) for cut in cuts)):
            in_blocks = in_blocks.after(block_R)
    names = ("rows", "last_well", "well_before", "over", "onset", "rise", "well")
    for name in names:
        assert getattr(in_blocks, name) == getattr(at_once, name), name
    for name in ("lowest", "highest"):
        assert np.array_equal(getattr(in_blocks, name), getattr(at_once, name), equal_nan=True), name
    assert 0 <= in_blocks.rise <= in_blocks.onset <= in_blocks.rows <= len(excess)


def test_a_run_that_only_rises_is_well_at_its_first_step_alone() -> None:
    found = standing(GAP + 0.2 * np.arange(30.0))
    assert (found.last_well, found.well_before, found.well) == (0, 0, False)


def test_a_rise_within_a_tenth_of_the_scale_is_none() -> None:
    """Before anything is gained; the scale is `min_gap` where the gap is of no use."""
    for gap, scale in ((2.0, 2.0), (0.0, 0.2), (float("nan"), 0.2)):
        start = np.zeros(10) + (gap if gap > 0 else 0.0)
        assert standing(np.append(start, start + 0.09 * scale), gap).well
        assert standing(np.append(start, start + 0.11 * scale), gap).onset < 20


def test_a_spike_that_recovers_is_well_again() -> None:
    excess_R = np.linspace(GAP, -1.5, STEPS)
    excess_R[60:63] += 5
    found = standing(excess_R)
    assert found.well
    assert found.rise == 60


def test_a_row_that_is_not_finite_is_never_well_nor_is_any_after_it() -> None:
    excess_R = np.linspace(GAP, -1.5, STEPS)
    for bad in (np.nan, np.inf, -np.inf):
        excess_R[50] = bad
        found = standing(excess_R)
        assert (found.last_well, found.well, found.over) == (49, False, True)


@pytest.mark.parametrize(
    ("after", "kind"),
    [(flat(L0 + 2), Kind.diverged), (flat(U), Kind.collapsed), (towards(30.0, 12.0, 0.6), Kind.diverged)],
)
def test_the_onset_is_where_the_loss_leaves_its_path(after: object, kind: Kind) -> None:
    made = curve(joined(healthy(), after, 0.6), STEPS)
    verdict = judge(made, TH)
    assert (verdict.kind, verdict.step) == (kind, None)
    assert verdict.onset is not None
    assert 120 <= verdict.onset <= 120 + WINDOW


def test_a_run_that_blows_up_before_it_has_learned_may_end_at_its_best() -> None:
    """At the unigram it stands lower than ever before, yet it broke down at step 20."""
    excursion = joined(flat(L0), flat(30.0), 0.1)
    made = curve(joined(excursion, flat(U), 0.4), STEPS, text=0.02)
    verdict = judge(made, TH)
    assert verdict.kind is Kind.collapsed
    assert standing(excess_of(made.loss_R, made.unigram_R, U), verdict.measures["gap"]).well
    assert verdict.onset == 20


def test_a_run_that_rests_at_the_unigram_has_no_onset() -> None:
    verdict = judge(curve(joined(towards(L0, U, pace=60.0), flat(U), 0.2), STEPS), TH)
    assert (verdict.kind, verdict.onset) == (Kind.collapsed, None)


@pytest.mark.parametrize("level", [healthy(), flat(L0), healthy(pace=0.5)])
def test_other_runs_have_none(level: object) -> None:
    verdict = judge(curve(level, STEPS), TH)
    assert verdict.kind in (Kind.stable, Kind.undertrained)
    assert verdict.onset is None


def test_a_value_that_is_not_finite_is_the_onset() -> None:
    made = curve(joined(healthy(), flat(30.0), 0.6), STEPS)
    made.grad_R[160] = np.inf
    assert judge(made, TH).onset == judge(made, TH).step == 160


def test_the_threshold_is_a_key() -> None:
    made = curve(joined(healthy(), towards(4.1, 7.0, 0.5), 0.5), STEPS)
    strict, lenient = judge(made, replace(TH, well=0.02)), judge(made, replace(TH, well=0.5))
    assert strict.kind is lenient.kind is Kind.diverged
    assert strict.onset is not None
    assert lenient.onset is not None
    assert strict.onset < lenient.onset


def test_without_any_unigram_it_is_found_too() -> None:
    made = curve(joined(healthy(), flat(30.0), 0.6), STEPS)
    unknown = Curve(
        **{name: getattr(made, name) for name in Curve.__dataclass_fields__}
        | {"unigram_R": np.full(STEPS, np.nan), "unigram": float("nan")}
    )
    verdict = judge(unknown, TH)
    assert verdict.kind is Kind.diverged
    assert verdict.onset is not None
    assert 120 <= verdict.onset <= 120 + WINDOW
