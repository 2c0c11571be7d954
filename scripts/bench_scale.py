"""How long a study of 10,000 runs takes to plan and to list, and the rows of 500 runs to read for a report.

    python scripts/bench_scale.py [--runs 10000] [--read 500]

Prints one JSON line for each.

`plan`: from the command line's words to a checked plan with its arms, cost and confound guard; 40 models,
data prepared, models described before (the first time costs a worker process: `describe_s`). `ls`: from the
folders to the printed table; `first_s` without the index that it leaves behind. Times are seconds of wall
clock and of CPU, in one process, after imports. The folders are copies of one really trained run with each
run's own configuration and numbers.

`report_read`: what a report makes of the rows of 500 runs × 2,000 steps × 60 columns, before it draws; with
the columns kept beside the text (metrics.parquet), `first_s` while these are written, `text_s` from the text
alone. All runs have the same made-up rows, in one text file with many names; the columns are a file each.
`report`: the whole command on them, tables and page included, with all columns there; `first_s` with none,
while some are written; `page_mb` should stay below 15.
"""

import argparse
import contextlib
import json
import math
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from ablate.cli import main
from ablate.cli.planning import check_and_summarise
from ablate.config import dump, flatten
from ablate.record import RunFolder, cache, find_runs, read_json
from ablate.sweep import Plan, describe_models, plan
from ablate.view import study_results

REACH_S = {"plan": 2.0, "ls": 1.0, "report_read": 5.0, "report": 10.0}
SITES = ("q", "k", "v", "o", "up", "gate", "down")
STEPS = 2000
TINY = (
    "model=tiny", "model.context=16", "data=synthetic", "data.tokens=4000", "data.vocab_size=32",
    "data.val_tokens=256", "optim.batch=4", "optim.steps=12",
)  # fmt: skip
ARMS = (
    "model.bias=none,linear,norm,all,qkv",
    "model.norm=layernorm,rmsnorm",
    "model.placement=pre,post,peri,sublayer",
)


def bench(runs: int, read: int) -> None:
    """All measurements, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="ablate-bench-") as place, contextlib.chdir(place):
        os.environ["ABLATE_CACHE"] = str(Path(place) / "cache")
        with _silent():
            assert main(["train", *TINY, "study=template"]) == 0
        request = [*TINY, *ARMS, "optim.lr=logspace(1e-4,1,25)", f"seed=range({max(1, runs // 1000)})"]
        with _silent():
            described = _timed(lambda: describe_models([c.config for c in plan(request).cells], print))
            planned = _timed(lambda: _plan([*request, "study=big"]))
        whole = plan([*request, "study=big"])
        count = len(whole.cells)
        _line("plan", runs=count, **planned, describe_s=described["wall_s"])
        _make_folders(whole, find_runs(Path("runs"), "template")[0])
        time.sleep(3)  # files of the last two seconds are not indexed
        with _silent():
            first = _timed(lambda: main(["ls", "big"]))
            again = _timed(lambda: main(["ls", "big"]))
            filtered = _timed(lambda: main(["ls", "big", "--filter", "optim.lr>1e-2", "--sort=-final_val"]))
        _line("ls", runs=count, **again, first_s=first["wall_s"], filtered_s=filtered["wall_s"])
        _bench_read(read)


def _bench_read(runs: int) -> None:
    template = find_runs(Path("runs"), "template")[0]
    request = [*TINY, *ARMS, f"optim.lr=logspace(1e-4,1,{runs // 40 + 1})", f"optim.steps={STEPS}"]
    whole = plan([*request, "study=wide"])
    columns = _make_rows(Path("rows.jsonl"))
    _make_folders(replace(whole, cells=whole.cells[:runs]), template)
    for folder in find_runs(Path("runs"), "wide"):
        folder.metrics().unlink()
        os.link("rows.jsonl", folder.metrics())
    time.sleep(3)
    pays, cache.ENOUGH = cache.ENOUGH, sys.maxsize
    text = _timed(_read)
    cache.ENOUGH = pays
    share, cache.SHARE = cache.SHARE, math.inf
    first, again = _timed(_read), _timed(_read)
    _line(
        "report_read", runs=runs, steps=STEPS, columns=columns, **again, first_s=first["wall_s"],
        text_s=text["wall_s"], text_cpu_s=text["cpu_s"],
    )  # fmt: skip

    page = Path("runs/wide/index.html")
    with _silent():
        again = _timed(lambda: main(["report", "wide"]))
        _forget_columns()
        cache.SHARE = share
        first = _timed(lambda: main(["report", "wide"]))
    _line("report", runs=runs, **again, first_s=first["wall_s"], page_mb=round(page.stat().st_size / 1e6, 1))


def _forget_columns() -> None:
    for columns in Path("runs/wide").glob("*/metrics*.parquet"):
        columns.unlink()


def _read() -> None:
    study_results(Path("runs"), "wide")


def _make_rows(path: Path) -> int:
    """A series of 2,000 steps; loss, rate and gradient norm in float32, as a model has them."""
    linears = [f"b{block:02d}_{site}" for block in range(4) for site in SITES]
    names = ["step", "train/loss", "train/lr", "grad/norm"]
    names += [f"{group}/{linear}" for group in ("out", "update") for linear in linears]
    walk_RC = np.exp(np.cumsum(np.random.default_rng(0).normal(0, 0.01, (STEPS, len(names) - 1)), axis=0))
    walk_RC[:, :3] = walk_RC[:, :3].astype(np.float32)
    lines = [orjson.dumps({"schema": 1, "columns": names, "attempt": 1, "from_step": 0})]
    lines += [orjson.dumps([step, *row]) for step, row in enumerate(walk_RC.tolist())]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return len(names)


def _plan(request: list[str]) -> None:
    check_and_summarise(plan(request))


def _make_folders(whole: Plan, template: RunFolder) -> None:
    """Done runs: the template's files, with each run's own configuration in config.yaml and meta.json."""
    meta, summary = read_json(template.meta), read_json(template.summary)
    chance = random.Random(0)
    home = whole.root / whole.study
    for cell in whole.cells:
        folder = RunFolder(home / f"{cell.slug}-{cell.run_id}")
        folder.path.mkdir(parents=True)
        folder.config.write_text(dump(cell.config))
        folder.meta.write_text(json.dumps({**meta, "config": flatten(cell.config)}, indent=2))
        folder.summary.write_text(json.dumps(_varied(summary, chance), indent=2))
        for name in ("status.json", "claim.1", "heartbeat", "stdout.log"):
            shutil.copyfile(template.path / name, folder.path / name)
        for name in ("metrics.jsonl", "metrics.val.jsonl", "metrics.probe.jsonl", "timing.jsonl"):
            os.link(template.path / name, folder.path / name)


def _varied(summary: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """The summary of another run: other numbers, and another linear that grows fastest."""
    numbers = {k: x * chance.uniform(0.9, 1.1) if isinstance(x, float) else x for k, x in summary.items()}
    growth = sorted((k for k in numbers if k.startswith("growth/")), key=lambda k: -numbers[k])
    rest = {k: x for k, x in numbers.items() if k not in growth}
    return {**rest, **{k: numbers[k] for k in growth}}


def _timed(work: Callable[[], object]) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return {
        "wall_s": round(time.perf_counter() - wall, 3),
        "cpu_s": round(time.process_time() - cpu, 3),
    }


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    with (
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        yield


def _line(name: str, **facts: object) -> None:
    print(json.dumps({"measure": f"bench_scale/{name}", **facts, "reach_wall_s": REACH_S[name]}), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--read", type=int, default=500)
    asked = parser.parse_args()
    bench(asked.runs, asked.read)
    sys.exit(0)
