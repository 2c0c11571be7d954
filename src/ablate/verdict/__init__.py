"""From a loss series to a verdict. Pure numpy, no input or output, replayable with other thresholds."""

from ablate.verdict.curve import Curve, Kind, Verdict, first_bad_step, stop_after
from ablate.verdict.growth import Growth, growth_against, growth_rate
from ablate.verdict.onset import Standing, excess_of
from ablate.verdict.rules import judge
from ablate.verdict.spikes import (
    deviations,
    kill_high_loss,
    kill_loss_spike,
    loss_spike_rate,
    median_spikes,
    spike_score,
)
from ablate.verdict.windows import kill_window, scaled

__all__ = [
    "Curve",
    "Growth",
    "Kind",
    "Standing",
    "Verdict",
    "deviations",
    "excess_of",
    "first_bad_step",
    "growth_against",
    "growth_rate",
    "judge",
    "kill_high_loss",
    "kill_loss_spike",
    "kill_window",
    "loss_spike_rate",
    "median_spikes",
    "scaled",
    "spike_score",
    "stop_after",
]
