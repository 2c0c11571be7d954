"""What the mirror costs the training beside it.

    python scripts/bench_mirror.py [--runs 4] [--steps 600] [--rounds 3] [--modes offline,online]

CPU seconds of the training loops of a small study with `tracker.mode=offline` (or online, against a loopback
service that this script starts) against `off`; the studies take turns. The last line is JSON:
    offline, online   ratio of the training's CPU seconds, the median over the rounds (goal ≤ 1.03)
    mirror_s          CPU seconds of the mirror itself, wandb-core included, for one study
"""

import argparse
import ctypes
import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ablate.record import State, find_runs, read_series, read_status
from ablate.sweep import plan, prepare_data

RUN = ("model=tiny", "data.val_tokens=2048", "run.device=cpu")
PR_SET_CHILD_SUBREAPER = 36  # <sys/prctl.h>: what a mirror leaves behind is waited for, and counted, here
ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--modes", default="offline,online")
    args = parser.parse_args()
    modes = args.modes.split(",")
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    overrides = [*RUN, f"optim.steps={args.steps}", f"seed=range(0,{args.runs})"]
    training: dict[str, list[float]] = {mode: [] for mode in ("off", *modes)}
    whole: dict[str, list[float]] = {mode: [] for mode in training}
    with tempfile.TemporaryDirectory(prefix="ablate-bench-") as folder:
        root = Path(folder)
        prepare_data(plan([*overrides, f"run.root={root}"]), print)  # no part of any side
        environ = surroundings(root, "online" in modes)
        sweep(root, "warm", "off", overrides, environ, args.runs)
        for turn in range(args.rounds):
            for mode in list(training)[:: 1 if turn % 2 == 0 else -1]:
                loops, cpu = sweep(root, f"{mode}{turn}", mode, overrides, environ, args.runs)
                training[mode].append(loops)
                whole[mode].append(cpu)
                print(
                    f"round {turn + 1} of {args.rounds}, {mode}: {loops:.2f} s of training", file=sys.stderr
                )
    found: dict[str, Any] = {"measure": "bench_mirror", "runs": args.runs, "steps": args.steps, "reach": 1.03}
    for mode in modes:
        pairs = [a / b for a, b in zip(training[mode], training["off"], strict=True)]
        found[mode] = round(statistics.median(pairs), 4)
        found[f"{mode}_rounds"] = sorted(round(x, 4) for x in pairs)
        costs = [a - b for a, b in zip(whole[mode], whole["off"], strict=True)]
        found[f"{mode}_mirror_s"] = round(statistics.median(costs), 2)
    found["training_s"] = round(statistics.median(training["off"]), 2)
    print(json.dumps(found))


def sweep(
    root: Path, study: str, mode: str, overrides: list[str], environ: Mapping[str, str], count: int
) -> tuple[float, float]:
    """CPU seconds of the training loops, and of everything, the mirror's processes included."""
    before = children()
    words = ["ablate", "sweep", *overrides, f"run.root={root}", f"study={study}", f"tracker.mode={mode}"]
    subprocess.run([sys.executable, "-m", *words], check=True, stdout=subprocess.DEVNULL, env=dict(environ))
    reap()
    runs = find_runs(root, study)
    assert len(runs) == count, len(runs)
    assert all(read_status(run).state is State.done for run in runs)
    if mode != "off":
        assert all((run.path / "mirror.json").exists() for run in runs), "nothing was mirrored"
    loops = sum(float(read_series(run.metrics("timing")).column("cpu_seconds")[-1]) for run in runs)
    return loops, children() - before


def surroundings(root: Path, online: bool) -> dict[str, str]:
    """The environment of the sweeps: nobody's key, no service but the one that is started here."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("WANDB_")}
    kept |= {"HOME": str(root), "NETRC": str(root / "netrc")}
    if online:
        sys.path.insert(0, str(ROOT))
        server = importlib.import_module("tests.mirror.backend.server")
        kept |= {"WANDB_BASE_URL": server.Backend().url, "WANDB_API_KEY": server.KEY}
    return kept


def reap() -> None:
    """Wait for every process that the sweep has left behind."""
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
