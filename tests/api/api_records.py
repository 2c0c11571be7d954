"""Recorded runs for the tests of the Python interface, written without training."""

import itertools
import math
from collections.abc import Mapping
from pathlib import Path

from ablate.config import dump, flatten, parse
from ablate.record import Claim, RunFolder, SeriesWriter, State, create_rerun, create_run, write_json

STEPS = 6
RATES = (0.001, 0.01, 0.1)
SEEDS = (0, 1)
PROBES = {"none": ("attn/b00_max_logit",), "all": ("attn/b00_max_logit", "bias/b00_up_norm")}


def loss(lr: float, seed: int, step: int) -> float:
    return 6.0 - 0.25 * step + seed / 8 + lr


def study(root: Path) -> Path:
    """Bias none and all × three rates × two seeds: 0.001 is best, at 0.1 runs are lost."""
    for number, (bias, lr, seed) in enumerate(itertools.product(("none", "all"), RATES, SEEDS)):
        record(root, number, bias, lr, seed)
    return root / "s"


def record(
    root: Path, number: int, bias: str, lr: float, seed: int, state: State = State.done, rows: int = STEPS
) -> RunFolder:
    config = parse(settings(bias, lr, seed))
    folder = create_run(root, "s", "made", f"{number:012x}", dump(config))
    fill(folder, bias, lr, seed, state, rows)
    return folder


def settings(bias: str, lr: float, seed: int) -> dict[str, object]:
    return {
        "model": {"bias": bias}, "optim": {"lr": lr, "steps": STEPS, "warmup": 1}, "seed": seed, "study": "s"
    }  # fmt: skip


def fill(
    folder: RunFolder,
    bias: str,
    lr: float,
    seed: int,
    state: State = State.done,
    rows: int = STEPS,
    more: Mapping[str, object] | None = None,
) -> None:
    claim = Claim.take(folder)
    lost = lr == RATES[-1]
    losses = [math.nan if lost and t == rows - 1 else loss(lr, seed, t) for t in range(rows)]
    columns = ("train/loss", "train/unigram", "grad/norm", "out/b00_o", "out/b00_down")
    _write(claim, "", columns, [[t, x, 5.5, 1.0, 1.0 + t, 2.0] for t, x in enumerate(losses)])
    _write(claim, "val", ("val/loss",), [[t, loss(lr, seed, t)] for t in (0, rows // 2, rows)])
    _write(claim, "probe", PROBES[bias], [[t, *(10.0 + t for _ in PROBES[bias])] for t in range(0, rows, 2)])
    config = flatten(parse(settings(bias, lr, seed)))
    data = {"fingerprint": "f" * 64, "unigram_entropy": 5.5}
    write_json(folder.meta, {"config": config, "data": data, **(more or {})})
    if state is not State.running:
        claim.finish(state, "no space\nleft" if state is State.failed else None)
    if state is State.done:
        write_json(folder.summary, {
            "verdict": "diverged" if lost else "stable", "reasons": ["because"],
            "first_bad_step": rows - 1 if lost else None, "steps": rows, "planned_steps": rows,
            "final/val/loss": "NaN" if lost else loss(lr, seed, rows), "final/val/step": rows,
            "best/val/loss": loss(lr, seed, rows), "measures/l0": 6.5, "measures/u": 5.5,
            "max/resid/rms": "Infinity" if lost else 2.0,
        })  # fmt: skip


def repeat(folder: RunFolder, bias: str, lr: float, seed: int, start: int) -> RunFolder:
    """A repetition of a run from a step on."""
    again = create_rerun(folder, dump(parse(settings(bias, lr, seed))))
    fill(again, bias, lr, seed, more={"from_step": start})
    return again


def _write(claim: Claim, cadence: str, columns: tuple[str, ...], rows: list[list[float]]) -> None:
    with SeriesWriter(claim, cadence, ("step", *columns), 0) as writer:
        writer.append(rows)
