"""95 % intervals for the mean of one number a seed, by how many seeds there are.

Fewer than 5: none, the points speak. 5 to 15: Student's t. From 16: bootstrap and t together.
Legend: D values, one for each seed; B resamples.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from ablate.stats.exact import ROUNDING, mean_sd, signed_sums

INFERENCE_SEEDS = 5  # with fewer a study is a description: no interval and no test is computed
BOOTSTRAP_SEEDS = 16
RESAMPLES = 9_999
TAIL = 0.025
POWER = 0.8
FLIP_PAIRS = 20  # more would enumerate over a million subsets


class IntervalKind(StrEnum):
    """How an interval was made."""

    t = "t"
    flip = "sign-flip"
    bootstrap = "bootstrap"
    both = "bootstrap and t"
    profile = "profile likelihood"


@dataclass(frozen=True)
class Interval:
    """A two-sided 95 % interval; an open end is infinite."""

    low: float
    high: float
    kind: IntervalKind


def mean_interval(values: Sequence[float]) -> Interval | None:
    """The interval shown for a mean; None for fewer than 5 values, or values that do not vary.

    From 16 it spans two intervals: bootstrap-t keeps its level where values are skew, Student's where most
    are near zero and a few are large, and neither does in both cases (docs/statistics.md, Calibration).
    """
    if len(values) < INFERENCE_SEEDS or mean_sd(values)[1] == 0:
        return None
    student = t_interval(values)
    if len(values) < BOOTSTRAP_SEEDS:
        return student
    bootstrap = bootstrap_interval(values)
    if bootstrap.kind is IntervalKind.t:
        return bootstrap
    return Interval(min(bootstrap.low, student.low), max(bootstrap.high, student.high), IntervalKind.both)


def t_interval(values: Sequence[float]) -> Interval:
    """mean ± t(0.975, n − 1)·s/√n; of differences, the paired t interval. Source: Student 1908."""
    mean, sd = mean_sd(values)
    half = t_quantile(1 - TAIL, len(values)) * sd / math.sqrt(len(values))
    return Interval(mean - half, mean + half, IntervalKind.t)


def bootstrap_interval(values: Sequence[float]) -> Interval:
    """Studentised bootstrap of the mean (bootstrap-t): seeds are resampled, 9,999 times.

    mean − q·s/√n, with q the quantiles of (mean* − mean)/(s*/√n). The generator is seeded from the values, so
    the same values give the same interval in any order, and swapped arms the mirrored one. Where so many
    values are equal that more than 2.5 % of the resamples have no spread, the scale of an end is not known
    and Student's interval is given (and named) instead. Source: Efron & Tibshirani 1993, section 12.5; Hall
    1988 (second-order accurate, unlike the percentile interval).
    """
    mean, sd = mean_sd(values)
    flipped = mean < 0
    d_D = np.sort(-np.asarray(values, dtype=np.float64) if flipped else np.asarray(values, dtype=np.float64))
    n, centre = d_D.size, -mean if flipped else mean
    seed = int.from_bytes(hashlib.sha256(d_D.tobytes()).digest()[:8], "big")
    drawn_BD = d_D[np.random.default_rng(seed).integers(0, n, (RESAMPLES, n))]
    mean_B, sd_B = drawn_BD.mean(axis=1), drawn_BD.std(axis=1, ddof=1)
    flat_B = sd_B <= ROUNDING * np.abs(d_D).max()
    if flat_B.mean() > TAIL:
        return t_interval(values)
    # a resample without spread is further out than any scale could tell, on the side of its mean
    t_B = (mean_B - centre) / np.where(flat_B, 1e-300, sd_B / math.sqrt(n))
    t_B.sort()
    place = round(TAIL * (RESAMPLES + 1))  # the 250th of 9,999: no interpolation is needed
    low, high = (centre - float(t_B[i]) * sd / math.sqrt(n) for i in (RESAMPLES - place, place - 1))
    return Interval(*((-high, -low) if flipped else (low, high)), IntervalKind.bootstrap)


def flip_interval(differences: Sequence[float]) -> Interval | None:
    """All means that the sign-flip test does not reject at 5 %, exactly.

    Its ends are order statistics of the means of all 2^n − 1 subsets: the ⌊0.025·2^n⌋-th from either end.
    None below 6 pairs (no mean can be rejected) and above 20. Sources: Hartigan 1969; Tukey, in Efron 1982,
    chapter 10.
    """
    n = len(differences)
    place = math.floor(TAIL * 2**n)
    if place < 1 or n > FLIP_PAIRS:
        return None
    d_D = np.sort(np.asarray(differences, dtype=np.float64))
    sums = (signed_sums(d_D) + math.fsum(d_D)) / 2
    counts = (signed_sums(np.ones(n)) + n) / 2
    means = np.sort((sums / np.maximum(counts, 1))[counts > 0])
    return Interval(float(means[place - 1]), float(means[-place]), IntervalKind.flip)


def minimum_detectable(sd: float, n: int) -> float | None:
    """(t(0.975) + t(0.8))·s/√n with n − 1 degrees: the mean that n pairs find with power 0.8 at 5 %.

    None for fewer than 5 pairs or without spread. Source: Bloom 1995, with t in place of normal quantiles.
    """
    if n < INFERENCE_SEEDS or not sd > 0:
        return None
    return (t_quantile(1 - TAIL, n) + t_quantile(POWER, n)) * sd / math.sqrt(n)


def t_quantile(level: float, n: int) -> float:
    """Quantile of Student's t with n − 1 degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(n - 1, level))
