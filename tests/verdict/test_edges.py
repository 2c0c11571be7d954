"""Records that are cut, odd or lack something."""

from dataclasses import replace

import numpy as np
import pytest
from synthetic_curves import L0, Level, U, bump, curve, flat, healthy, joined, plus, ramp, towards

from ablate.config import VerdictConfig
from ablate.verdict import Curve, Kind, Verdict, first_bad_step, judge, stop_after

NAN, INF = float("nan"), float("inf")


def verdict(made: Curve, **thresholds: float) -> Verdict:
    return judge(made, VerdictConfig(**thresholds))


def with_value(made: Curve, column: str, row: int, value: float) -> Curve:
    changed = getattr(made, column).copy()
    changed[row] = value
    return replace(made, **{column: changed})


@pytest.mark.parametrize("complete", [True, False])
def test_stopped_by_a_non_finite_loss(complete: bool) -> None:
    """The rows after the stop are missing, and yet this is no censored run."""
    made = with_value(curve(healthy(), 200, rows=100, complete=complete), "loss_R", 80, NAN)
    found = verdict(made)
    assert (found.kind, found.step) == (Kind.diverged, 80)
    assert "nan at step 80" in found.reasons[0]
    assert found.measures["finite_rows"] == 80


def test_nan_in_the_middle_cannot_recover() -> None:
    found = verdict(with_value(curve(healthy(), 200), "loss_R", 90, INF))
    assert (found.kind, found.step) == (Kind.diverged, 90)


def test_one_infinite_gradient_with_a_finite_loss() -> None:
    found = verdict(with_value(curve(healthy(), 200), "grad_R", 199, INF))
    assert (found.kind, found.step) == (Kind.diverged, 199)
    assert found.reasons[0].startswith("the gradient norm is inf at step 199, where the loss is 4.")


def test_a_held_out_loss_that_is_not_finite() -> None:
    """The last update can break the model when all rows are written already."""
    found = verdict(with_value(curve(healthy(), 200), "val_loss_E", -1, NAN))
    assert (found.kind, found.step) == (Kind.diverged, 200)
    assert "held-out" in found.reasons[0]


def test_the_first_bad_step_of_all_series() -> None:
    made = with_value(with_value(curve(healthy(), 200), "loss_R", 80, NAN), "val_loss_E", 1, NAN)
    assert made.val_step_E[1] == 50
    assert verdict(made).step == 50


def test_bad_from_the_first_step() -> None:
    made = curve(healthy(), 200, rows=20)
    found = verdict(replace(made, loss_R=np.full(20, NAN), grad_R=np.full(20, NAN)))
    assert (found.kind, found.step) == (Kind.diverged, 0)


def test_stopped_by_something_else() -> None:
    found = verdict(curve(healthy(), 200, rows=120, complete=False))
    assert found.kind is Kind.censored
    assert "stable up to step 119" in found.reasons


def test_rows_missing_although_said_to_be_complete() -> None:
    assert verdict(curve(healthy(), 200, rows=120, complete=True)).kind is Kind.censored


def test_stopped_while_on_its_way_up_is_censored_but_not_called_stable() -> None:
    rising = joined(healthy(), towards(5.0, 9.0, 0.4, 20), 0.4)
    found = verdict(curve(rising, 200, rows=120, complete=False))
    assert found.kind is Kind.censored
    assert not any("stable up to" in reason for reason in found.reasons)


def test_nothing_recorded() -> None:
    found = verdict(curve(healthy(), 200, rows=0, complete=False))
    assert found.kind is Kind.censored
    assert found.measures["rows"] == 0


def test_five_steps() -> None:
    """Too short for any window, and still judged by where the held-out loss ends."""
    assert verdict(curve(ramp(L0, L0 - 0.01, 0), 5)).kind is Kind.undertrained
    assert verdict(curve(ramp(L0, L0 - 0.2, 0), 5)).kind is Kind.undertrained
    assert verdict(curve(ramp(L0, L0 + 2, 0), 5)).kind is Kind.diverged
    assert verdict(curve(ramp(L0, 4.5, 0), 5)).kind is Kind.stable
    assert verdict(curve(ramp(L0, 4.5, 0), 1)).kind is Kind.stable


@pytest.mark.parametrize(
    ("level", "kind"),
    [
        (ramp(L0, L0 - 0.02, 0), Kind.undertrained),  # within the cap of the start, and never left it
        (plus(flat(L0), bump(0.5, 0.1, 1.0)), Kind.diverged),  # ends at the start after an excursion above it
        (plus(flat(L0), bump(0.5, 0.1, -1.0)), Kind.diverged),  # learned, and lost all of it
        (plus(flat(L0), bump(0.37, 0.04, 1.0)), Kind.diverged),  # the same between two evaluations
        (ramp(L0, L0 + 0.1, 0), Kind.diverged),
    ],
)
def test_at_the_start_and_why(level: Level, kind: Kind) -> None:
    for seed in range(3):
        assert verdict(curve(level, 200, seed)).kind is kind


def test_without_held_out_rows() -> None:
    """The training rows stand in, and the reasons say so."""
    none = {"val_step_E": np.empty(0, np.int64), "val_loss_E": np.empty(0)}
    for level, kind in [
        (healthy(), Kind.stable),
        (towards(L0, 7.0, 0.03, 30), Kind.diverged),
        (ramp(L0, L0 - 1e-4, 0), Kind.undertrained),
        (towards(L0, U, 0.03, 40), Kind.collapsed),
    ]:
        found = verdict(replace(curve(level, 200, val_offset=0.0), **none))
        assert found.kind is kind, found
        assert any("stands in" in reason for reason in found.reasons)
        assert "final_val" not in found.measures
        assert "l0" not in found.measures


def test_without_any_unigram() -> None:
    """Start and unigram coincide: what needs no unigram is still told."""
    for level, kind in [
        (healthy(), Kind.stable),
        (plus(healthy(), bump(0.6, 0.05, 1.0)), Kind.spiked),
        (towards(L0, 7.0, 0.03, 30), Kind.diverged),
        (joined(healthy(), flat(5.6), 0.6), Kind.diverged),
        (ramp(L0, L0 - 1e-4, 0), Kind.undertrained),
    ]:
        made = curve(level, 200)
        found = verdict(replace(made, unigram=NAN, unigram_R=np.full(200, NAN)))
        assert found.kind is kind, found
        assert "u" not in found.measures
        assert "gap" not in found.measures


def test_unigram_of_the_batches_stands_in() -> None:
    made = curve(towards(L0, U, 0.03, 40), 200, val_offset=0.0)
    found = verdict(replace(made, unigram=NAN))
    assert found.kind is Kind.collapsed
    assert any("that of the batches stands in" in reason for reason in found.reasons)
    assert verdict(replace(made, unigram_R=np.full(200, NAN))).kind is Kind.collapsed


@pytest.mark.parametrize("unigram", [L0, L0 - 0.01, L0 + 1.5])
def test_a_start_at_or_below_the_unigram(unigram: float) -> None:
    """Uniform synthetic tokens, or a trained model as the start: the gap is no scale any more."""
    for level, kind in [
        (healthy(), Kind.stable),
        (plus(healthy(), bump(0.6, 0.05, 1.0)), Kind.spiked),
        (joined(healthy(), flat(5.7), 0.6), Kind.diverged),
        (towards(L0, 7.0, 0.03, 30), Kind.diverged),
        (ramp(L0, L0 - 1e-4, 0), Kind.undertrained),
    ]:
        made = curve(level, 200, text=0.02)
        shifted = replace(made, unigram=unigram, unigram_R=made.unigram_R + unigram - U)
        found = verdict(shifted)
        assert found.kind is kind, found
        assert any("in place of the gap" in reason for reason in found.reasons)


def test_a_small_gap_is_not_learned_by_standing_still() -> None:
    made = curve(ramp(L0, L0 - 0.03, 0), 200, text=0.0, val_offset=0.0)
    found = verdict(replace(made, unigram=L0 - 0.05, unigram_R=np.full(200, L0 - 0.05)))
    assert found.kind is Kind.undertrained


def test_an_unrecorded_gradient_is_no_bad_gradient() -> None:
    found = verdict(replace(curve(healthy(), 200), grad_R=np.empty(0)))
    assert found.kind is Kind.stable
    assert "spike_score_grad" not in found.measures
    assert "max_grad" not in found.measures


def test_reasons_carry_the_numbers() -> None:
    found = verdict(curve(joined(healthy(), flat(L0), 0.5), 200, val_offset=0.0))
    assert found.reasons == ("final val 6.240 is less than 5 % of the gap from the loss at step 0 (6.240)",)


def test_measures() -> None:
    made = curve(healthy(), 1000, noise=0.01, text=0.0)
    measures = verdict(made).measures
    assert measures["l0"] == made.val_loss_E[0]
    assert measures["u"] == made.unigram
    assert measures["gap"] == pytest.approx(made.val_loss_E[0] - made.unigram)
    assert measures["final_val"] == made.val_loss_E[-1]
    assert measures["max_loss"] == made.loss_R.max()
    assert measures["noise"] == pytest.approx(0.01, rel=0.2)
    running = np.convolve(made.loss_R - made.unigram_R, np.full(50, 1 / 50), "valid")
    assert measures["min_excess"] == pytest.approx(running.min())
    assert measures["min_step"] == running.argmin() + 49
    assert measures["end_excess"] == pytest.approx(np.median((made.loss_R - made.unigram_R)[-100:]))


@pytest.mark.parametrize(
    ("level", "changed", "before", "after"),
    [
        (ramp(L0, U - 0.05, 0.05), {"cap": 0.2}, Kind.stable, Kind.undertrained),
        (joined(healthy(), ramp(4.2, 4.8, 0.7), 0.7), {"giveback": 0.2}, Kind.spiked, Kind.diverged),
        (joined(healthy(), ramp(4.2, 4.8, 0.7), 0.7), {"rise": 3.0}, Kind.spiked, Kind.stable),
        (ramp(L0, U + 0.02, 0.05), {"early": 1.0}, Kind.undertrained, Kind.collapsed),
        (towards(L0, U, 0.03, 40), {"early": 0.02}, Kind.collapsed, Kind.undertrained),
        (towards(L0, U - 0.07, 0.03, 40), {"shelf": 0.0}, Kind.collapsed, Kind.stable),
        (plus(healthy(), bump(0.6, 0.05, 0.2)), {"rise": 0.1}, Kind.stable, Kind.spiked),
    ],
)
def test_replay_with_other_thresholds(
    level: Level, changed: dict[str, float], before: Kind, after: Kind
) -> None:
    """The same record, other thresholds, another verdict; and the first one again afterwards."""
    made = curve(level, 1000, noise=0.02)
    assert verdict(made).kind is before
    assert verdict(made, **changed).kind is after
    assert verdict(made) == verdict(made)
    assert verdict(made).kind is before


def test_min_gap_is_the_scale_where_the_gap_says_nothing() -> None:
    made = replace(curve(ramp(L0, L0 - 0.06, 0), 200), unigram=L0 - 0.001)
    assert verdict(made, min_gap=0.2).measures["scale"] == 0.2
    assert verdict(made, min_gap=0.2).kind is Kind.stable
    assert verdict(made, min_gap=2.0).kind is Kind.undertrained


def test_a_rise_at_the_very_end_is_not_said_to_have_come_back() -> None:
    late = verdict(curve(joined(healthy(), ramp(4.15, 5.2, 0.93), 0.93), 1000))
    assert late.kind is Kind.spiked
    assert any("and ends" in reason for reason in late.reasons)
    earlier = verdict(curve(plus(healthy(), bump(0.6, 0.05, 1.0)), 1000))
    assert any("came back" in reason for reason in earlier.reasons)


def test_first_bad_step_and_stop() -> None:
    loss, grad = np.array([6.0, 5.0, 4.0, NAN]), np.array([1.0, 1.0, INF, 1.0])
    assert first_bad_step(loss, grad) == 2
    assert first_bad_step(loss, np.empty(0)) == 3
    assert first_bad_step(loss[:3], np.empty(0)) is None
    assert first_bad_step(np.empty(0), np.empty(0)) is None
    assert stop_after(loss, grad, 20) == 21
    assert stop_after(loss, grad, 1) == 2
    assert stop_after(loss[:2], grad[:2], 20) is None


@pytest.mark.parametrize("rows", [81, 90, 150, 400])
def test_the_stop_does_not_depend_on_how_much_is_known(rows: int) -> None:
    loss, grad = np.full(rows, 5.0), np.ones(rows)
    loss[80] = NAN
    loss[85:86] = NAN
    assert stop_after(loss, grad, 20) == 99
