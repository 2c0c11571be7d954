"""What a study says beyond its single runs: edges, sensitivities, effects with the seed as the unit, noise
floors, twins and departures. Pure functions of `Study`; docs/statistics.md defines each.

    study = Study.of(outcomes, rates, factors)          one Outcome for each run
    values = responses(study, Response.edge)            one Value for each arm and seed
    paired_effect(values["none"], values["linear"])     an Effect, paired by seed
    factorial(study, Response.edge)                     main effects and two-way interactions
"""

from ablate.stats.curve import curve
from ablate.stats.departure import Lead, leads, loss_departure, output_departure, smoothing
from ablate.stats.edge import Bound, Edge, lr_half
from ablate.stats.effects import Effect, Estimate, contrast, estimate, paired_effect
from ablate.stats.exact import PValue, flip_test, holm, sign_test, t_test
from ablate.stats.factorial import JOINED, Contrast, factorial, simple
from ablate.stats.floor import FloorKind, NoiseFloor, paired_floor, unpaired_floor
from ablate.stats.intervals import (
    BOOTSTRAP_SEEDS,
    INFERENCE_SEEDS,
    Interval,
    IntervalKind,
    bootstrap_interval,
    flip_interval,
    mean_interval,
    minimum_detectable,
    t_interval,
)
from ablate.stats.lr50 import Dose, Lr50, fit_lr50, lr50
from ablate.stats.outcomes import Outcome, Study, seed_order
from ablate.stats.responses import Response, Value, Values, exact, responses, sensitivities
from ablate.stats.sensitivity import Ending, Sensitivity, best_rate, capped, log_uniform, lr_sensitivity
from ablate.stats.twins import DEPARTED, Departure, first_departure, impaired, most_grown

__all__ = [
    "BOOTSTRAP_SEEDS",
    "DEPARTED",
    "INFERENCE_SEEDS",
    "JOINED",
    "Bound",
    "Contrast",
    "Departure",
    "Dose",
    "Edge",
    "Effect",
    "Ending",
    "Estimate",
    "FloorKind",
    "Interval",
    "IntervalKind",
    "Lead",
    "Lr50",
    "NoiseFloor",
    "Outcome",
    "PValue",
    "Response",
    "Sensitivity",
    "Study",
    "Value",
    "Values",
    "best_rate",
    "bootstrap_interval",
    "capped",
    "contrast",
    "curve",
    "estimate",
    "exact",
    "factorial",
    "first_departure",
    "fit_lr50",
    "flip_interval",
    "flip_test",
    "holm",
    "impaired",
    "leads",
    "log_uniform",
    "loss_departure",
    "lr50",
    "lr_half",
    "lr_sensitivity",
    "mean_interval",
    "minimum_detectable",
    "most_grown",
    "output_departure",
    "paired_effect",
    "paired_floor",
    "responses",
    "seed_order",
    "sensitivities",
    "sign_test",
    "simple",
    "smoothing",
    "t_interval",
    "t_test",
    "unpaired_floor",
]
