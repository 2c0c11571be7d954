"""What the step benchmarks share: pairs of processes that take turns, and one training run to measure.

CPU time drifts on a shared machine, within seconds and by more than what is measured. So the two processes of
a pair train at the same time, ten steps each in turn, and what counts is the median of the ratios of
neighbouring turns. Several pairs, because a process keeps what its memory layout happens to cost.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ablate.config import Config, dump, parse, run_id
from ablate.data import Batches, TokenData, fingerprint, prepare
from ablate.record import Claim, create_run

TURN, TURNS = 10, 12  # steps of a turn (one of them with the costlier probes), turns; the first warms up
SHAPE: dict[str, dict[str, Any]] = {
    "model": {"layers": 4, "width": 64, "heads": 4, "context": 128},
    "data": {"source": "synthetic", "tokens": 1_000_000, "vocab_size": 1024, "val_tokens": 128},
    "optim": {"batch": 16, "steps": TURN * TURNS},
}


def configuration(changes: Mapping[str, Mapping[str, Any]]) -> Config:
    """The benchmark's configuration: no evaluation and no checkpoint falls between the steps."""
    steps = SHAPE["optim"]["steps"]
    run = {"checkpoint_every": steps, "device": "cpu", "keep": "none"}
    raw: dict[str, dict[str, Any]] = {**SHAPE, "eval": {"every": steps}, "run": run}
    for section, settings in changes.items():
        raw[section] = {**raw.get(section, {}), **settings}
    return parse(raw)


def data_of(config: Config) -> TokenData:
    """The benchmark's tokens, from the cache after the first time."""
    return prepare(config.data, config.model.context)


def wait_for_turn(step: int) -> None:
    """Between turns: say how much CPU time has gone by, and wait until it is this process's turn again."""
    if step % TURN == 0:
        print(json.dumps(time.process_time()), flush=True)
        sys.stdin.readline()


class _TurnBatches(Batches):
    def at(self, step: int) -> NDArray[np.int64]:
        wait_for_turn(step)
        return super().at(step)


@dataclass(frozen=True, eq=False)
class _TurnData(TokenData):
    def batches(self, batch: int, data_seed: int) -> Batches:
        return _TurnBatches(self.train, self.unigram_V, self.context, batch, data_seed, self.task)


def take_turns(config: Config) -> None:
    """A real run, rows on disk included, that waits for its turn every ten steps."""
    from ablate.train import setup_process, train

    setup_process(config.run.threads)
    data = _TurnData(**vars(data_of(config)))
    with tempfile.TemporaryDirectory() as root:
        identity = run_id(config, fingerprint(config.data))
        folder = create_run(Path(root), "bench", "run", identity, dump(config))
        train(folder, Claim.take(folder), config, data, announce=lambda _: None)
    wait_for_turn(config.optim.steps)


def _turn(process: "subprocess.Popen[str]") -> float:
    """Let a process take its turn; its CPU time at the end."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return float(json.loads(process.stdout.readline()))


def _pair(script: str, kinds: tuple[str, str]) -> dict[str, list[float]]:
    """CPU seconds a step, for each turn but the first, of two processes."""
    processes = {
        kind: subprocess.Popen(
            [sys.executable, script, "--child", kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for kind in kinds
    }
    clock = {
        kind: [float(json.loads(process.stdout.readline()))]
        for kind, process in processes.items()
        if process.stdout
    }
    for turn in range(TURNS):
        for kind in kinds if turn % 2 == 0 else kinds[::-1]:
            clock[kind].append(_turn(processes[kind]))
    for process in processes.values():
        process.communicate("\n")
        assert process.returncode == 0
    return {kind: [(b - a) / TURN for a, b in pairwise(times[1:])] for kind, times in clock.items()}


def compare(script: str, ours: str, baseline: str, pairs: int) -> dict[str, Any]:
    """The median ratio of neighbouring turns, and the spread of the pairs' own medians."""
    ratios: list[list[float]] = []
    seconds: dict[str, list[float]] = {ours: [], baseline: []}
    for number in range(pairs):
        found = _pair(script, (ours, baseline))
        ratios.append([a / b for a, b in zip(found[ours], found[baseline], strict=True)])
        for kind, values in found.items():
            seconds[kind] += values
        print(f"pair {number + 1} of {pairs}: {statistics.median(ratios[-1]):.4f}", file=sys.stderr)
    return {
        "ratio": round(statistics.median(chain.from_iterable(ratios)), 4),
        "pair_ratios": sorted(round(statistics.median(pair), 4) for pair in ratios),
        f"{ours}_ms": round(1e3 * statistics.median(seconds[ours]), 3),
        f"{baseline}_ms": round(1e3 * statistics.median(seconds[baseline]), 3),
        "turns": pairs * (TURNS - 1),
        "steps_per_turn": TURN,
    }
