"""Recorded studies for the tests of tables and pages, written without training."""

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from ablate.config import dump, flatten, parse
from ablate.record import Claim, RunFolder, SeriesWriter, State, create_run, write_json

STEPS = 20
START, UNIGRAM = 6.0, 5.0
LINEARS = ("b00_q", "b00_o", "b01_q", "b01_o", "head")


def record(
    root: Path,
    number: int,
    model: Mapping[str, object] | None = None,
    *,
    lr: float = 0.01,
    seed: int = 0,
    verdict: str | None = "stable",
    final: float = 4.0,
    growth: float = 1.0,
    state: State | None = State.done,
    reason: str | None = None,
    study: str = "s",
    notes: str = "",
    data: Mapping[str, object] | None = None,
) -> RunFolder:
    """A run of STEPS steps; `growth`: factor per step on every output of block 1; a NaN in `final` ends them.

    `state` None leaves the run queued, without rows.
    """
    config = parse({
        "model": dict(model or {}), "optim": {"lr": lr, "steps": STEPS, "warmup": 2}, "seed": seed,
        "study": study, "run": {"notes": notes}, "data": dict(data or {}),
    })  # fmt: skip
    folder = create_run(root, study, "made", f"{number:012x}", dump(config))
    if state is None:
        return folder
    claim = Claim.take(folder)
    rows = [[t, 5.0, *(_output(name, t, growth, final) for name in LINEARS)] for t in range(STEPS)]
    writer = SeriesWriter(claim, "", ("step", "train/loss", *(f"out/{name}" for name in LINEARS)), 0)
    writer.append(rows if state is State.done else rows[:7])
    writer.close()
    write_json(folder.meta, {"config": flatten(config), "data": {"fingerprint": "f" * 64}})
    if verdict is not None:
        write_json(folder.summary, {
            "verdict": verdict, "reasons": [], "final/val/loss": final, "final/val/step": STEPS,
            "steps": STEPS, "planned_steps": STEPS, "measures/l0": START, "measures/u": UNIGRAM,
            "growth/b01_o": math.log(growth),
        })  # fmt: skip
    if state is not State.running:
        claim.finish(state, reason)
    return folder


def product(root: Path, biases: Sequence[str], rates: Sequence[float], seeds: Sequence[int]) -> None:
    """A whole study: the highest of several rates diverges and grows, the others are stable."""
    for number, (bias, lr, seed) in enumerate(itertools.product(biases, rates, seeds)):
        lost = len(rates) > 1 and lr == max(rates)
        record(
            root, number, {"bias": bias}, lr=lr, seed=seed,
            verdict="diverged" if lost else "stable",
            final=math.nan if lost else 4.0 + 0.1 * seed + lr,
            growth=1.5 if lost else 1.0,
        )  # fmt: skip


def _output(name: str, step: int, growth: float, final: float) -> float:
    if math.isnan(final) and step > STEPS - 3:
        return math.nan
    return 2.0 * growth**step if name.startswith("b01") else 1.0
