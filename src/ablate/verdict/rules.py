"""The verdict: rules in a fixed order, the first that applies decides.

Each rule maps a reading to its reasons; no reason means that it does not apply.
"""

from collections.abc import Callable

import numpy as np

from ablate.config import VerdictConfig
from ablate.verdict.curve import Curve, Floats, Kind, Verdict, first_bad_step
from ablate.verdict.excursions import excursions
from ablate.verdict.measures import measure
from ablate.verdict.reading import Reading, nats, read
from ablate.verdict.windows import batch_noise, rolling_mean

Reasons = tuple[str, ...]
Rule = Callable[[Reading], Reasons]


def judge(curve: Curve, thresholds: VerdictConfig) -> Verdict:
    """What became of a run: a pure function of its record and the thresholds. docs/verdicts.md has the rules.

    Defined for every float input, NaN and infinities included; never warns, never raises.
    """
    with np.errstate(all="ignore"):
        reading = read(curve, thresholds)
        kind, reasons = _decide(reading)
        return Verdict(kind, reasons, bad_step(curve), _onset(kind, reading), measure(reading))


def bad_step(curve: Curve) -> int | None:
    """First step with a non-finite loss, gradient norm or held-out loss."""
    bad_val_E = curve.val_step_E[~np.isfinite(curve.val_loss_E)]
    found = [int(step) for step in bad_val_E]
    row = first_bad_step(curve.loss_R, curve.grad_R)
    return min(found if row is None else [row, *found], default=None)


def _onset(kind: Kind, reading: Reading) -> int | None:
    """Where a run broke down; docs/verdicts.md says how it is found.

    A run that blew up before it had learned anything may end as low as ever, and be called well: then the
    largest rise is its breakdown, if the rules see one.
    """
    if kind not in (Kind.diverged, Kind.collapsed):
        return None
    if (step := bad_step(reading.curve)) is not None:
        return step
    standing = reading.standing
    if not standing.well:
        return standing.onset
    return standing.rise if _rise(reading) else None


def _decide(reading: Reading) -> tuple[Kind, Reasons]:
    for kind, rule in _RULES_OF_RECORD:
        if reasons := rule(reading):
            return kind, reasons
    for kind, rule in _RULES_OF_LEVEL:
        if reasons := rule(reading):
            return kind, reasons + reading.levels.notes
    return Kind.stable, _stable(reading) + reading.levels.notes


def _non_finite(reading: Reading) -> Reasons:
    """Source: plainLM engine.py (loss), and the same for the gradient norm."""
    curve, step = reading.curve, bad_step(reading.curve)
    if step is None:
        return ()
    reasons = []
    row = first_bad_step(curve.loss_R, curve.grad_R)
    if row == step and not np.isfinite(curve.loss_R[row]):
        before = f", after {nats(curve.loss_R[row - 1])}" if row else ""
        reasons.append(f"the loss is {curve.loss_R[row]} at step {row}{before}")
    elif row == step:
        loss = nats(curve.loss_R[row])
        reasons.append(f"the gradient norm is {curve.grad_R[row]} at step {row}, where the loss is {loss}")
    else:
        value = curve.val_loss_E[(curve.val_step_E == step) & ~np.isfinite(curve.val_loss_E)][0]
        reasons.append(f"the held-out loss is {value} at step {step}")
    return tuple(reasons)


def _stopped_early(reading: Reading) -> Reasons:
    curve, rows = reading.curve, reading.loss_R.size
    if curve.complete and rows >= curve.steps:
        return ()
    if rows == 0:
        return (f"no step was recorded (of {curve.steps})",)
    stop = f"stopped after {rows} of {curve.steps} steps by something other than its values"
    seen, levels = excursions(reading), reading.levels
    if not seen and levels.final > levels.start + reading.thresholds.cap * levels.scale:
        seen = (
            f"the last losses ({nats(levels.final)}) are above the loss at step 0 ({nats(levels.start)})",
        )
    if seen:
        return (stop, f"finite up to step {rows - 1}, but not stable:", *seen)
    return (stop, f"stable up to step {rows - 1}")


def _hardly_moved(reading: Reading) -> Reasons:
    """A learning rate too small to get away from the start is no divergence: to diverge, a loss has to rise.

    Looks at the plain loss: an untrained model's hardly varies from batch to batch, its excess does.
    """
    levels, th, loss_R = reading.levels, reading.thresholds, reading.loss_R
    band = th.cap * levels.scale
    train_band = max(band, min(th.noise * batch_noise(loss_R), th.rise * levels.scale))
    held_out_E = np.concatenate(([levels.start], reading.curve.val_loss_E, [levels.final]))
    train_M = np.concatenate((loss_R[:1], rolling_mean(loss_R, reading.window)))
    if not _at_start(reading) or _highest_rise(held_out_E) > band or _highest_rise(train_M) > train_band:
        return ()
    return (
        f"the loss hardly left its start: final val {nats(levels.final)}, at step 0 {nats(levels.start)}, "
        f"and it never rose by more than noise",
    )


def _highest_rise(values: Floats) -> float:
    return float(np.max(values - np.minimum.accumulate(values), initial=0.0))


def _back_at_start(reading: Reading) -> Reasons:
    """Source: Wortsman et al. 2023 (arXiv 2309.14322, section 2.2): a failed run ends at l0 or above.

    Trained weights may be left a little upwards: a run that goes on from them ends clearly above l0.
    """
    levels, th = reading.levels, reading.thresholds
    lost = levels.final >= levels.start + th.rise * levels.scale
    return _where(reading, "start") if _at_start(reading) and (lost or not reading.began_trained) else ()


def _gave_back(reading: Reading) -> Reasons:
    """This project's rule (no published one): more than `giveback` of the best gain is lost again at the end.

    A loss that comes to rest near the unigram (nearer to it than to the start) is left to the collapse rule.
    """
    resting = _at_unigram(reading) and not _far_above(reading)
    if resting or not reading.given_back > reading.thresholds.giveback:
        return ()
    return (
        f"gave back {reading.given_back:.0%} of its best gain: the loss was {_excess(reading.lowest)}, "
        f"and ends {_excess(reading.end)}",
    )


def _blew_up(reading: Reading) -> Reasons:
    """This project's rule: it rose as in a collapse, but did not come back to the unigram.

    Such a loss often falls until the end, because the schedule lowers the rate: it may end below its start.
    """
    rise = _rise(reading)
    if not (rise and _far_above(reading)):
        return ()
    return (*_where(reading, "unigram"), f"its running mean rose by {nats(rise)} above its lowest")


def _collapsed(reading: Reading) -> Reasons:
    """At the unigram although it had learned early or had been lower; or flat on a shelf just below it."""
    levels = reading.levels
    learned, rise = _learned_early(reading), _rise(reading)
    why = []
    if learned is not None:
        resting = f"it had learned the unigram by step {learned}, and got no further"
        why.append(resting if rise else f"{resting} (a longer run might still leave it)")
    if rise:
        why.append(f"its running mean rose by {nats(rise)} above its lowest")
    if why and _at_unigram(reading):
        return (*_where(reading, "unigram"), *why)
    if learned is not None and _on_shelf(reading):
        return (
            f"final val {nats(levels.final)} is only {nats(levels.unigram - levels.final)} below the unigram "
            f"({nats(levels.unigram)}) and flat since the middle of the run",
            *why,
        )
    return ()


def _undertrained(reading: Reading) -> Reasons:
    if not _at_unigram(reading):
        return ()
    where = _where(reading, "unigram")
    if (row := _arrival(reading)) is not None and row <= reading.thresholds.early * reading.curve.steps:
        rows = reading.loss_R.size - 1 - row
        return (
            *where,
            f"it had learned the unigram by step {row}: {rows} steps are too few to tell a collapse",
        )
    return (*where, "it neither learned early nor lost what it had learned")


def _stable(reading: Reading) -> Reasons:
    levels = reading.levels
    reasons = [
        f"final val {nats(levels.final)} is {nats(levels.unigram - levels.final)} below the unigram "
        f"({nats(levels.unigram)})",
        "no excursion by any spike rule",
    ]
    rise = reading.end - reading.lowest
    if rise > reading.tolerance:
        reasons.append(f"the loss ends {nats(rise)} above its lowest running mean")
    return tuple(reasons)


_RULES_OF_RECORD: tuple[tuple[Kind, Rule], ...] = (
    (Kind.diverged, _non_finite),
    (Kind.censored, _stopped_early),
)
_RULES_OF_LEVEL: tuple[tuple[Kind, Rule], ...] = (
    (Kind.undertrained, _hardly_moved),
    (Kind.diverged, _back_at_start),
    (Kind.diverged, _gave_back),
    (Kind.diverged, _blew_up),
    (Kind.collapsed, _collapsed),
    (Kind.undertrained, _undertrained),
    (Kind.spiked, excursions),
)


def _at_start(reading: Reading) -> bool:
    levels = reading.levels
    return levels.final >= levels.start - reading.thresholds.cap * levels.scale


def _at_unigram(reading: Reading) -> bool:
    levels = reading.levels
    return levels.final >= levels.unigram - reading.thresholds.cap * levels.scale


def _far_above(reading: Reading) -> bool:
    """Nearer to the start than to the unigram, if `giveback` is a half."""
    levels, th = reading.levels, reading.thresholds
    return levels.final > levels.unigram + th.giveback * levels.scale


def _rise(reading: Reading) -> float:
    """The largest rise of the running mean; 0 if it is no more than `rise` gaps, or than noise."""
    largest = float(np.max(reading.rise_M, initial=0.0))
    limit = max(reading.thresholds.rise * reading.levels.scale, reading.tolerance)
    return largest if largest > limit else 0.0


def _arrival(reading: Reading) -> int | None:
    """The row by which the running mean had come down to the unigram (`learned` gaps above it)."""
    levels, th = reading.levels, reading.thresholds
    # learned · gap, where the gap is the scale
    low_M = reading.mean_M < levels.gap - (1 - th.learned) * levels.scale
    return int(reading.row_M[np.argmax(low_M)]) if low_M.any() else None


def _learned_early(reading: Reading) -> int | None:
    """The row of arrival, if that was early in the run and left it `rest_rows` rows to get further."""
    row, th = _arrival(reading), reading.thresholds
    if row is None or row > th.early * reading.curve.steps:
        return None
    return row if reading.loss_R.size - 1 - row >= th.rest_rows else None


def _on_shelf(reading: Reading) -> bool:
    """At most `shelf` gaps below the unigram, and the held-out loss moved by < `cap` gaps since mid-run."""
    curve, levels, th = reading.curve, reading.levels, reading.thresholds
    past_E = (curve.val_step_E > 0) & (curve.val_step_E <= curve.steps // 2)
    if not past_E.any() or levels.final < levels.unigram - th.shelf * levels.scale:
        return False
    middle = float(curve.val_loss_E[past_E][-1])
    return abs(middle - levels.final) < th.cap * levels.scale


def _where(reading: Reading, level: str) -> Reasons:
    levels, th = reading.levels, reading.thresholds
    target, name = (
        (levels.start, "the loss at step 0") if level == "start" else (levels.unigram, "the unigram")
    )
    above = levels.final - target
    scale = "of the gap" if levels.scale == levels.gap else f"of {th.min_gap:g} nats"
    if above > th.cap * levels.scale:
        return (f"final val {nats(levels.final)} is {nats(above)} above {name} ({nats(target)})",)
    near = f"less than {100 * th.cap:g} % {scale} from {name}"
    return (f"final val {nats(levels.final)} is {near} ({nats(target)})",)


def _excess(value: float) -> str:
    side = "above" if value >= 0 else "below"
    return f"{nats(abs(value))} {side} the unigram"
