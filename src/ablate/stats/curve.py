"""The curve behind an LR sensitivity: an arm's loss at every rate."""

from ablate.stats.edge import Bound
from ablate.stats.effects import Estimate, estimate
from ablate.stats.outcomes import Outcome, Study
from ablate.stats.responses import Value


def curve(study: Study, arm: str) -> dict[float, Estimate]:
    """The mean of min(final, start) over the seeds at each rate of the grid, upwards, with its interval.

    A run whose end is not known is missing, and named; a broken one enters as its loss at step 0, and is
    counted.
    """
    return {
        lr: estimate({seed: _loss(study.ladders.get((arm, seed), {}).get(lr)) for seed in study.seeds})
        for lr in study.rates
    }


def _loss(run: Outcome | None) -> Value:
    why = run.unknown if run is not None else "no run"
    if run is None or why:
        return Value(float("nan"), Bound.missing, note=why)
    return Value(run.loss, capped=int(run.is_capped))
