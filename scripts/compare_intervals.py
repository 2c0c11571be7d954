"""Coverage of four 95 % intervals for a mean of few draws: why Student's t, and bootstrap-t later.

    python scripts/compare_intervals.py [studies] [resamples]

Prints the table of docs/statistics.md (about 20 CPU seconds). Legend: D draws of one study, B resamples.
"""

import math
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit

Floats = NDArray[np.float64]
TAIL = 0.025
SIZES = (5, 10, 16, 20, 32)
DRAWS: dict[str, Callable[[np.random.Generator, int], Floats]] = {  # each with mean 0
    "normal": lambda random, n: random.normal(size=n),
    "log-normal": lambda random, n: np.exp(random.normal(size=n)) - math.exp(0.5),
    "t with 3 degrees": lambda random, n: random.standard_t(3, size=n),
}


def intervals(d_D: Floats, random: np.random.Generator, resamples: int) -> dict[str, tuple[float, float]]:
    """Each interval for the mean of these draws."""
    n, mean, error = d_D.size, float(d_D.mean()), float(d_D.std(ddof=1)) / math.sqrt(d_D.size)
    half = float(stdtrit(n - 1, 1 - TAIL)) * error
    drawn_BD = d_D[random.integers(0, n, (resamples, n))]
    mean_B, error_B = drawn_BD.mean(axis=1), drawn_BD.std(axis=1, ddof=1) / math.sqrt(n)
    t_B = (mean_B - mean) / np.maximum(error_B, 1e-300)
    low_t, high_t = np.quantile(t_B, [TAIL, 1 - TAIL])
    return {
        "t": (mean - half, mean + half),
        "percentile": tuple(np.quantile(mean_B, [TAIL, 1 - TAIL])),
        "BCa": tuple(np.quantile(mean_B, bca_levels(d_D, mean_B))),
        "bootstrap-t": (mean - float(high_t) * error, mean - float(low_t) * error),
    }


def bca_levels(d_D: Floats, mean_B: Floats) -> Floats:
    """The levels of the resampled means that BCa takes (Efron 1987), acceleration by the jackknife."""
    below = (np.sum(mean_B < d_D.mean()) + 0.5 * np.sum(mean_B == d_D.mean())) / mean_B.size
    bias = ndtri(np.clip(below, 1e-4, 1 - 1e-4))
    pull_D = d_D - d_D.mean()  # how each draw moves the mean, up to a factor that cancels
    acceleration = np.sum(pull_D**3) / 6 / np.sum(pull_D**2) ** 1.5
    z = bias + ndtri(np.array([TAIL, 1 - TAIL]))
    return np.asarray(ndtr(bias + z / (1 - acceleration * z)))


def main() -> None:
    studies = int(sys.argv[1]) if len(sys.argv) > 1 else 1500
    resamples = int(sys.argv[2]) if len(sys.argv) > 2 else 999
    names = ("t", "percentile", "BCa", "bootstrap-t")
    print("| n, draws |", " | ".join(names), "|\n|", " | ".join(["---"] * (len(names) + 1)), "|")
    for n in SIZES:
        for draws, draw in DRAWS.items():
            random = np.random.default_rng(n)
            found = [intervals(draw(random, n), random, resamples) for _ in range(studies)]
            shares = [np.mean([f[name][0] <= 0 <= f[name][1] for f in found]) for name in names]
            print(f"| {n}, {draws} |", " | ".join(f"{100 * share:.1f}" for share in shares), "|", flush=True)


if __name__ == "__main__":
    main()
