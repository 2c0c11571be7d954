"""The noise floor: how large differences are where there is nothing to find."""

import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from ablate.stats.effects import Effect
from ablate.stats.intervals import TAIL, t_quantile
from ablate.stats.outcomes import seed_order

SPLITS = 10_000  # more ways to halve the seeds than this are sampled


class FloorKind(StrEnum):
    """`paired`: a placebo arm against its twin arm; `unpaired`: disjoint seeds of equal arms."""

    paired = "paired"
    unpaired = "unpaired"


@dataclass(frozen=True)
class NoiseFloor:
    """Null differences. `n` of them are behind `rms`, the root mean square of one null difference of two
    single seeds (about 0, the known mean); `largest` is the largest absolute one seen (unpaired: of half
    against half). `differences` are those seen (unpaired: of the splits). `reasons` names what was not used.
    """

    kind: FloorKind
    n: int
    rms: float
    largest: float
    differences: tuple[float, ...]
    reasons: tuple[str, ...] = ()

    def band(self, n: int) -> float | None:
        """Half-width of the band in which 95 % of the means of `n` null differences lie.

        t(0.975)·rms/√n, with as many degrees of freedom as differences are behind the rms. None for none.
        """
        return t_quantile(1 - TAIL, self.n + 1) * self.rms / math.sqrt(n) if self.n and n else None


def paired_floor(placebos: Sequence[Effect]) -> NoiseFloor:
    """The floor of paired effects, from the effects of placebo arms (null by construction) on one response.

    Several placebo pairs (one for each norm and placement, say) are taken together; they share seeds, so they
    are not as good as that many more seeds.
    """
    found = tuple(d for effect in placebos for d in effect.estimate.per_seed)
    reasons = tuple(dict.fromkeys(r for effect in placebos for r in effect.estimate.reasons))
    return NoiseFloor(
        kind=FloorKind.paired,
        n=len(found),
        rms=math.sqrt(math.fsum(d * d for d in found) / len(found)) if found else math.nan,
        largest=max((abs(d) for d in found), default=math.nan),
        differences=found,
        reasons=reasons,
    )


def unpaired_floor(values: Mapping[str, float], other: Mapping[str, float] | None = None) -> NoiseFloor:
    """The floor without pairing: seeds are split into disjoint halves and the halves' means compared.

    `values` are one arm's, by seed; `other` those of an equal (placebo) arm, from which the second half is
    then taken. All splits, or 10,000 seeded ones where there are more; of an odd number, one half is smaller.
    `rms` is put back onto the scale of two single seeds: that of the splits over √(1/a + 1/b), times √2, for
    halves of a and b seeds. For one arm this is √2 times the standard deviation over seeds.
    """
    seeds = sorted(values.keys() & (values if other is None else other).keys(), key=seed_order)
    if len(seeds) < 2:
        return NoiseFloor(FloorKind.unpaired, 0, math.nan, math.nan, ())
    first = np.array([values[s] for s in seeds])
    second = first if other is None else np.array([other[s] for s in seeds])
    a, b = len(seeds) // 2, len(seeds) - len(seeds) // 2
    halves = _halves(len(seeds), a, first, twice=other is None and a == b)
    found = tuple(
        math.fsum(np.delete(second, half)) / b - math.fsum(first[list(half)]) / a for half in halves
    )
    rms = math.sqrt(math.fsum(d * d for d in found) / len(found))
    return NoiseFloor(
        kind=FloorKind.unpaired,
        n=len(seeds) - 1,
        rms=rms * math.sqrt(2) / math.sqrt(1 / a + 1 / b),
        largest=max(abs(d) for d in found),
        differences=found,
    )


def _halves(
    n: int, size: int, values: "np.ndarray[tuple[int], np.dtype[np.float64]]", twice: bool
) -> list[tuple[int, ...]]:
    """Ways to choose `size` of n; where halves are alike (`twice`), each way once."""
    if math.comb(n, size) <= SPLITS:
        every = itertools.combinations(range(n), size)
        return [half for half in every if not twice or 0 in half]
    seed = int.from_bytes(hashlib.sha256(values.tobytes()).digest()[:8], "big")
    random = np.random.default_rng(seed)
    return [tuple(sorted(random.permutation(n)[:size].tolist())) for _ in range(SPLITS)]
