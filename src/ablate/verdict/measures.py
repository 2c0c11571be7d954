"""The numbers beside a verdict."""

import math

import numpy as np

from ablate.verdict.reading import Reading, held_out
from ablate.verdict.spikes import kill_high_loss, kill_loss_spike, loss_spike_rate, spike_score
from ablate.verdict.windows import batch_noise, kill_window, scaled


def measure(reading: Reading) -> dict[str, float]:
    """Every measure that is defined for this curve and finite; docs/verdicts.md says what each is."""
    found = {**_levels(reading), **_course(reading), **_spikes(reading)}
    return {name: float(value) for name, value in found.items() if math.isfinite(value)}


def _levels(reading: Reading) -> dict[str, float]:
    curve, levels = reading.curve, reading.levels
    val_E = curve.val_loss_E[np.isfinite(curve.val_loss_E)]
    return {
        "l0": held_out(curve, 0),
        "u": curve.unigram,
        "gap": held_out(curve, 0) - curve.unigram,
        "scale": levels.scale,
        "final_val": held_out(curve, curve.steps),
        "best_val": float(np.min(val_E)) if val_E.size else math.nan,
    }


def _course(reading: Reading) -> dict[str, float]:
    loss_R, rise_M = reading.loss_R, reading.rise_M
    grad_R = reading.curve.grad_R[: loss_R.size]
    return {
        "rows": reading.curve.loss_R.size,
        "finite_rows": loss_R.size,
        "noise": batch_noise(reading.excess_R),
        "max_loss": float(loss_R.max(initial=-math.inf)),
        "max_grad": float(grad_R.max(initial=-math.inf)),
        "min_excess": reading.lowest,
        "min_step": float(reading.row_M[np.argmin(reading.mean_M)]) if reading.mean_M.size else math.nan,
        "end_excess": reading.end,
        "max_rise": float(rise_M.max(initial=-math.inf)),
        "end_rise": reading.end - reading.lowest,
        "given_back": reading.given_back,
    }


def _spikes(reading: Reading) -> dict[str, float]:
    th, steps, loss_R = reading.thresholds, reading.curve.steps, reading.loss_R
    grad_R = reading.curve.grad_R[: loss_R.size]
    sigma_window, median_window = scaled(th.sigma_window, steps, th), scaled(th.median_window, steps, th)
    window = kill_window(steps, th)
    found = {
        "spike_score_loss": spike_score(loss_R, sigma_window, th.sigmas),
        "spike_score_grad": spike_score(grad_R, sigma_window, th.sigmas),
        "loss_spikes_per_10k": loss_spike_rate(loss_R, median_window, th.median_margin),
    }
    if loss_R.size > window:
        found["kill_loss_spikes"] = kill_loss_spike(loss_R, window, th.spike_times, th.spike_steps).size
        found["kill_high_losses"] = kill_high_loss(loss_R, window, th.high_loss).size
    if loss_R.size > sigma_window:
        rows = reading.outlying
        found["outlying_steps"] = rows.size
        found["first_outlying"] = float(rows[0]) if rows.size else math.nan
    return found
