"""A run against its stable twin: same arm and seed, at the arm's best learning rate.

Legend: R rows (row t = step t).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ablate.verdict import Kind, growth_against

Floats = NDArray[np.float64]

# "More than twice the converging run": Rybakov et al. 2024 (arXiv 2410.16682) on the outputs that grow.
DEPARTED = 2.0
END_SHARE = 10  # the end of a run: its last tenth


@dataclass(frozen=True)
class Departure:
    """A linear whose output leaves its twin's for good: from which step on, and value / twin's there."""

    linear: str
    step: int
    ratio: float


def first_departure(
    outputs: Mapping[str, Floats], twin: Mapping[str, Floats], factor: float = DEPARTED
) -> Departure | None:
    """The linear whose output L2 is the first to rise above `factor` times its twin's for good.

    Of several that leave at the same step, the one furthest above its twin there. None if none leaves.
    """
    found = []
    for name, values_R in outputs.items():
        if name not in twin:
            continue
        growth = growth_against(values_R, twin[name], math.log(factor))
        if growth.departure is not None:
            ratio = float(growth.ratio_R[growth.departure])
            found.append(Departure(name, growth.departure, ratio if math.isfinite(ratio) else math.inf))
    return min(found, key=lambda d: (d.step, -d.ratio, d.linear), default=None)


def most_grown(outputs: Mapping[str, Floats], twin: Mapping[str, Floats]) -> tuple[str, float] | None:
    """The linear whose output L2 is furthest above its twin's at the end, and by what factor.

    The factor is the geometric mean of value / twin's value over the last tenth of the steps that both have;
    infinite where the run's values are not finite. None without common steps.
    """
    found = {}
    for name in outputs.keys() & twin.keys():
        ratio_R = growth_against(outputs[name], twin[name]).ratio_R
        end_R = ratio_R[-max(1, ratio_R.size // END_SHARE) :]
        if not end_R.size:
            continue
        finite = bool(np.all(np.isfinite(end_R)))
        with np.errstate(divide="ignore"):
            found[name] = float(np.exp(np.mean(np.log(end_R)))) if finite else math.inf
    return max(found.items(), key=lambda item: (item[1], item[0]), default=None)


def impaired(kind: Kind, final: float, best: float, unigram: float) -> bool:
    """Did a run that looks healthy lose more than half of what there was to learn?

    Stable or spiked, yet final > ℓ* + ½(u − ℓ*): `best` is ℓ*, the lowest seed-mean held-out loss over the
    study's arms of the same task, `unigram` is u. Pre-norm models do this at high rates instead of diverging.
    """
    healthy = kind in (Kind.stable, Kind.spiked)
    return healthy and final > best + 0.5 * (unigram - best)
