"""Exact tests on paired differences, with the level they can reach at best, and Holm's correction.

Legend: D differences, one for each seed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

EXACT_PAIRS = 36  # up to so many, all 2^n sign flips are counted; beyond, that many are drawn:
DRAWS = 99_999
ROUNDING = 1e-12  # relative; sums that differ by less are ties


@dataclass(frozen=True)
class PValue:
    """A two-sided p, the smallest one that so many pairs can reach, and the pairs used (ties left out)."""

    p: float
    attainable: float
    n: int


def sign_test(differences: Sequence[float]) -> PValue:
    """Exact sign test: is an increase as likely as a decrease? Ties (0) are left out.

    Two-sided binomial, twice the smaller tail. Source: Dixon & Mood 1946; Conover 1999, section 3.4.
    """
    n = sum(d != 0 for d in differences)
    ups = sum(d > 0 for d in differences)
    tail = sum(math.comb(n, k) for k in range(min(ups, n - ups) + 1))
    return PValue(min(1.0, 2 * tail / 2**n), min(1.0, 2 / 2**n), n)


def flip_test(differences: Sequence[float]) -> PValue:
    """Sign-flip test of the mean: the share of all 2^n sign patterns whose |sum| is at least that seen.

    Exact where the differences are symmetric about 0 under the null, as those of exchangeable arms are.
    All patterns are counted (meet in the middle) up to 36 pairs; beyond, 99,999 seeded draws and the pattern
    seen itself. Zeros change nothing and are left out. Sources: Fisher 1935, section 21; Pitman 1937;
    Phipson & Smyth 2010 for the drawn p.
    """
    d_D = np.sort(np.array([d for d in differences if d != 0], dtype=np.float64))
    n = d_D.size
    least = min(1.0, 2.0 / 2.0**n)
    seen = abs(math.fsum(d_D))
    limit = seen - ROUNDING * math.fsum(np.abs(d_D))
    if limit <= 0:
        return PValue(1.0, least, n)
    if n > EXACT_PAIRS:
        return PValue(_drawn(np.abs(d_D), limit), max(least, 1 / (DRAWS + 1)), n)
    left, right = signed_sums(d_D[: n // 2]), np.sort(signed_sums(d_D[n // 2 :]))
    reached = int(np.sum(right.size - np.searchsorted(right, limit - left, side="left")))
    return PValue(min(1.0, 2 * reached / 2**n), least, n)


def t_test(differences: Sequence[float]) -> PValue:
    """Paired t test; p is NaN where the differences do not vary. Any level can be reached."""
    from scipy.special import stdtr

    n = len(differences)
    mean, sd = mean_sd(differences)
    p = 2 * float(stdtr(n - 1, -abs(mean) * math.sqrt(n) / sd)) if sd > 0 else math.nan
    return PValue(p, 0.0, n)


def holm(ps: Sequence[float | None]) -> tuple[float | None, ...]:
    """Holm's adjusted p of every test of the family shown; None and NaN are no tests and stay as they are.

    Holds the chance of any false finding in the family, whatever the dependence. Source: Holm 1979.
    """
    known = sorted((p, i) for i, p in enumerate(ps) if p is not None and not math.isnan(p))
    adjusted, largest = list(ps), 0.0
    for rank, (p, i) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * p))
        adjusted[i] = largest
    return tuple(adjusted)


def mean_sd(values: Sequence[float]) -> tuple[float, float]:
    """Mean and sample standard deviation (n − 1), the same whatever the order; NaN for too few values.

    A spread below rounding counts as none.
    """
    n = len(values)
    mean = math.fsum(values) / n if n else math.nan
    if n < 2:
        return mean, math.nan
    sd = math.sqrt(math.fsum((x - mean) ** 2 for x in values) / (n - 1))
    return mean, sd if sd > ROUNDING * max(abs(x) for x in values) else 0.0


def signed_sums(d_D: Floats) -> Floats:
    """The sums of all 2^n sign patterns."""
    sums = np.zeros(1)
    for d in d_D:
        sums = np.concatenate([sums + d, sums - d])
    return sums


def _drawn(size_D: Floats, limit: float) -> float:
    random = np.random.default_rng(size_D.size)
    chunk, reached = DRAWS // 9, 1  # the pattern seen is one of them
    for _ in range(9):
        signs_BD = random.integers(0, 2, (chunk, size_D.size)) * 2 - 1
        reached += int(np.sum(np.abs(signs_BD @ size_D) >= limit))
    return reached / (DRAWS + 1)
