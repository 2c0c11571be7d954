"""One number for each arm and seed: what the arms are compared by."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ablate.stats.edge import Bound, lr_half
from ablate.stats.outcomes import Outcome, Study
from ablate.stats.sensitivity import Ending, Sensitivity, lr_sensitivity


class Response(StrEnum):
    """What is compared.

    `edge`: ln LR½. `sensitivity`: LR sensitivity, in nats. `unstable`: share of the grid's rates at which the
    run diverged or collapsed. `best_loss`: the loss at the arm's best rate, in nats.
    """

    edge = "edge"
    sensitivity = "sensitivity"
    unstable = "unstable"
    best_loss = "best_loss"


@dataclass(frozen=True)
class Value:
    """A response of one arm and seed.

    `value` is NaN where `missing`; the limit of the rates tried where the true one lies `above` or `below`.
    `capped` counts losses in it for which the loss at step 0 stands in; `note` says why it is missing.
    """

    value: float
    bound: Bound = Bound.exact
    capped: int = 0
    note: str = ""


Values = Mapping[str, Value]  # by seed


def responses(study: Study, response: Response) -> dict[str, dict[str, Value]]:
    """The response of every arm (in order) and every seed of the study; missing ones say why."""
    of = {
        Response.edge: _edge,
        Response.sensitivity: _sensitivity,
        Response.unstable: _unstable,
        Response.best_loss: _best_loss,
    }[response]
    return {arm: {seed: of(study, arm, seed) for seed in study.seeds} for arm in study.arms}


def exact(values: Mapping[str, float]) -> dict[str, Value]:
    """Plain numbers by seed as exact values; one that is not finite is missing."""
    return {
        seed: Value(x) if math.isfinite(x) else Value(math.nan, Bound.missing, note="not finite")
        for seed, x in values.items()
    }


def sensitivities(study: Study) -> dict[str, dict[str, Sensitivity]]:
    """LR sensitivity with its two parts, of every arm and each seed that has the whole declared grid."""
    found: dict[str, dict[str, Sensitivity]] = {arm: {} for arm in study.arms}
    for arm, seed in study.ladders:
        runs, _ = _grid(study, arm, seed)
        if runs:
            found[arm][seed] = lr_sensitivity([_ending(o) for o in runs])
    return {arm: {s: of[s] for s in study.seeds if s in of} for arm, of in found.items()}


def _edge(study: Study, arm: str, seed: str) -> Value:
    edge = lr_half(study, arm, seed)
    return Value(math.log(edge.lr), edge.bound, edge.capped, edge.note)


def _sensitivity(study: Study, arm: str, seed: str) -> Value:
    runs, why = _grid(study, arm, seed)
    if not runs:
        return _missing(why)
    total = lr_sensitivity([_ending(o) for o in runs]).total
    return Value(total, capped=sum(o.is_capped for o in runs))


def _unstable(study: Study, arm: str, seed: str) -> Value:
    runs, why = _grid(study, arm, seed)
    return Value(sum(o.unstable for o in runs) / len(runs)) if runs else _missing(why)


def _best_loss(study: Study, arm: str, seed: str) -> Value:
    rate = study.best_rates[arm]
    if rate is None:
        return _missing("the arm trains at no rate")
    run = study.ladders.get((arm, seed), {}).get(rate)
    why = run.unknown if run is not None else "no run"
    if run is None or why:
        return _missing(f"lr {rate:g}: {why}")
    return Value(run.loss, capped=int(run.is_capped))


def _grid(study: Study, arm: str, seed: str) -> tuple[list[Outcome], str]:
    """The runs of the whole declared grid; none, and why, if one of them is not known."""
    ladder = study.ladders.get((arm, seed), {})
    runs = []
    for lr in study.rates:
        run = ladder.get(lr)
        why = run.unknown if run is not None else "no run"
        if run is None or why:
            return [], f"lr {lr:g}: {why}"
        runs.append(run)
    return runs, ""


def _ending(o: Outcome) -> Ending:
    assert o.start is not None, "known"
    return Ending(o.lr, o.loss, o.start)


def _missing(why: str) -> Value:
    return Value(math.nan, Bound.missing, note=why)
