"""What a study says beyond its single runs: LR sensitivity, twins, departures. Pure numpy."""

from ablate.stats.sensitivity import Ending, Sensitivity, best_rate, capped, log_uniform, lr_sensitivity
from ablate.stats.twins import DEPARTED, INFERENCE_SEEDS, Departure, first_departure, impaired, most_grown

__all__ = [
    "DEPARTED",
    "INFERENCE_SEEDS",
    "Departure",
    "Ending",
    "Sensitivity",
    "best_rate",
    "capped",
    "first_departure",
    "impaired",
    "log_uniform",
    "lr_sensitivity",
    "most_grown",
]
