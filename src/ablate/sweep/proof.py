"""The paired proof: runs that differ only in biases that start at zero must have equal losses at step 0."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ablate.config import BiasInit, science
from ablate.record import Run, find_runs
from ablate.sweep.plan import Plan

TOLERANCE = 1e-5  # nats


@dataclass(frozen=True)
class Proof:
    """`groups`: sets of done runs alike in all but zero biases; `largest`: the largest spread of their
    losses at step 0, in nats; `broken`: the runs of those sets that spread by more than the tolerance.
    """

    groups: int
    largest: float
    broken: tuple[tuple[str, ...], ...]


def paired_proof(plan: Plan) -> Proof:
    """Compare the recorded initial losses of a plan's done runs."""
    present = {folder.id: folder for folder in find_runs(plan.root, plan.study)}
    losses: dict[str, list[tuple[float, str]]] = defaultdict(list)
    if len({cell.config.model.bias for cell in plan.cells}) > 1:
        for cell in plan.cells:
            if cell.config.model.bias_init is not BiasInit.zeros or cell.run_id not in present:
                continue
            loss = Run(present[cell.run_id]).meta.get("initial_loss")
            if isinstance(loss, int | float):
                losses[_but_biases(cell.config, cell.fingerprint)].append((float(loss), cell.run_id))
    pairs = [group for group in losses.values() if len(group) > 1]
    spreads = [_spread(group) for group in pairs]
    broken = [group for group, spread in zip(pairs, spreads, strict=True) if not spread <= TOLERANCE]
    return Proof(
        groups=len(pairs),
        largest=max(spreads, default=0.0),
        broken=tuple(tuple(run for _, run in group) for group in broken),
    )


def _spread(group: Sequence[tuple[float, str]]) -> float:
    losses = [loss for loss, _ in group]
    return max(losses) - min(losses)


def _but_biases(config: object, fingerprint: str) -> str:
    tree = science(config)
    return json.dumps([{**tree, "model": {**tree["model"], "bias": None}}, fingerprint], sort_keys=True)
