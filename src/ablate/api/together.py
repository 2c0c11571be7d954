"""What a run is only beside the others of its study: impaired, or the twin of one. From facts alone."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ablate.stats import best_rate, impaired
from ablate.verdict import Kind
from ablate.view import Arms, RunFacts, as_float, number
from ablate.view.results import ending


@dataclass(frozen=True)
class Together:
    """`arm`: each run's arm; `best_lr`: each arm's best rate, None where no rate trains.

    `twins`: the id of each run's stable twin; `impaired`: ids.
    """

    arm: Mapping[str, str]
    best_lr: Mapping[str, float | None]
    twins: Mapping[str, str]
    impaired: frozenset[str]

    @classmethod
    def of(cls, runs: Sequence[RunFacts], arms: Arms) -> "Together":
        """Compare the runs that have a readable configuration."""
        whole = [r for r in runs if r.flat]
        by_arm: dict[str, list[RunFacts]] = {}
        for run in whole:
            by_arm.setdefault(arms.label(run), []).append(run)
        rates = {
            arm: best_rate([end for r in own if (end := ending(r)) is not None])
            for arm, own in by_arm.items()
        }
        best = _best(by_arm.values())
        return cls(
            arm={r.run_id: arm for arm, own in by_arm.items() for r in own},
            best_lr=rates,
            twins={run: twin for arm, own in by_arm.items() for run, twin in _twins(own, rates[arm]).items()},
            impaired=frozenset(r.run_id for r in whole if _impaired(r, best)),
        )

    def why_no_twin(self, run: RunFacts) -> str:
        """A sentence for a run that has no stable twin."""
        arm = self.arm.get(run.run_id)
        best = None if arm is None else self.best_lr[arm]
        if arm is None:
            return "its configuration cannot be read"
        if best is None:
            return f"no learning rate trains the arm {arm}"
        if run.lr == best:
            return f"it is at its arm's best learning rate ({number(best, 6)}) itself"
        return f"at its arm's best learning rate ({number(best, 6)}) no run of seed {run.seed} is stable"


def _best(arms: Iterable[Sequence[RunFacts]]) -> float | None:
    """ℓ*: the lowest mean over seeds of the final loss, over all arms and rates."""
    means = []
    for own in arms:
        finals: dict[float | None, list[float]] = {}
        for run in own:
            if run.val is not None:
                finals.setdefault(run.lr, []).append(run.val)
        means += [statistics.fmean(vals) for vals in finals.values() if all(map(math.isfinite, vals))]
    return min(means, default=None)


def _twins(runs: Sequence[RunFacts], best: float | None) -> dict[str, str]:
    if best is None:
        return {}
    twin = {repr(r.seed): r.run_id for r in runs if r.lr == best and r.verdict == Kind.stable}
    return {r.run_id: twin[repr(r.seed)] for r in runs if r.lr != best and repr(r.seed) in twin}


def _impaired(run: RunFacts, best: float | None) -> bool:
    unigram = as_float(run.summary.get("measures/u"))
    if best is None or unigram is None or run.val is None or run.verdict not in set(Kind):
        return False
    return impaired(Kind(run.verdict), run.val, best, unigram)
