"""What a run costs beyond its steps inside a study, and what a study costs against separate processes.

    python scripts/bench_study.py [--runs 64] [--steps 30]

CPU seconds, user and system, of whole process trees; the last line is JSON:
    overhead_s   a run's process, beginning to end, beyond its training loop (goal ≤ 0.35 s)
    ratio        `ablate sweep` against as many `python -m ablate.worker RUN` processes (goal ≤ 0.55)
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ablate.record import RunFolder, State, find_runs, read_series, read_status
from ablate.sweep import freeze, plan, prepare_data

# The default model and data; a small held-out set, so that training and not evaluation is compared.
RUN = ("data.val_tokens=2048", "run.device=cpu")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=64)
    parser.add_argument("--steps", type=int, default=30)
    args = parser.parse_args()
    overrides = [*RUN, f"optim.steps={args.steps}", f"seed=range(0,{args.runs})"]
    with tempfile.TemporaryDirectory(prefix="ablate-bench-") as folder:
        root = Path(folder)
        prepare_data(plan([*overrides, f"run.root={root}"]), print)  # no part of either side
        study = cpu_seconds([["ablate", "sweep", *overrides, f"run.root={root}", "study=pool"]])
        runs = check(root, "pool", args.runs)
        freeze(plan([*overrides, f"run.root={root}", "study=separate"]))
        commands = [["ablate.worker", str(run.path)] for run in find_runs(root, "separate")]
        separate = cpu_seconds(commands)
        loops = sum(loop_seconds(run) for run in runs)
        loops_apart = sum(loop_seconds(run) for run in check(root, "separate", args.runs))
    measured = {
        "runs": args.runs,
        "steps": args.steps,
        "overhead_s": round((study - loops) / args.runs, 3),
        "overhead_separate_s": round((separate - loops_apart) / args.runs, 3),
        "loop_s": round(loops / args.runs, 3),
        "study_s": round(study, 1),
        "separate_s": round(separate, 1),
        "ratio": round(study / separate, 3),
    }
    print(json.dumps({"measure": "bench_study", **measured, "reach": 0.55, "reach_overhead_s": 0.35}))


def cpu_seconds(modules: Sequence[Sequence[str]]) -> float:
    """CPU seconds of `python -m …` commands run one after another, their children included."""
    before = _children()
    for words in modules:
        subprocess.run([sys.executable, "-m", *words], check=True, stdout=subprocess.DEVNULL, env=os.environ)
    return _children() - before


def check(root: Path, study: str, count: int) -> list[RunFolder]:
    """The study's folders, all done."""
    runs = find_runs(root, study)
    assert len(runs) == count, len(runs)
    assert all(read_status(run).state is State.done for run in runs)
    return runs


def loop_seconds(run: RunFolder) -> float:
    """CPU seconds of the training loop: steps, and the evaluations and checkpoints between them."""
    return float(read_series(run.metrics("timing")).column("cpu_seconds")[-1])


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
