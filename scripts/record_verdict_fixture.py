"""Record the training runs on which the verdict rules are tried, and pack them for tests/verdict.

    python scripts/record_verdict_fixture.py record tuning held_out   train what is missing (~15 CPU minutes)
    python scripts/record_verdict_fixture.py pack                     -> tests/verdict/recorded_runs.json.gz
    python scripts/record_verdict_fixture.py draw PAGES               draw the curves (needs matplotlib)
    python scripts/record_verdict_fixture.py compare                  labels against verdicts

Every run is trained by `ablate sweep`; nothing is trained here. The labels stand in
tests/verdict/recorded_labels.json. They were given by eye, from the drawn pages and before any verdict was
looked at; docs/verdicts.md tells how. The `held_out` runs were recorded after the rules had been settled on
`tuning`. Trained again with other library versions, single runs near an edge may end differently: draw and
label anew.
"""

import argparse
import gzip
import importlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ablate.config import VerdictConfig, flatten
from ablate.record import Run, find_runs
from ablate.verdict import Curve, judge

TESTS = Path(__file__).resolve().parent.parent / "tests" / "verdict"
RUNS, LABELS = TESTS / "recorded_runs.json.gz", TESTS / "recorded_labels.json"
SHARED = ["run.device=cpu", "run.keep=none", "probe.every=0", "probe.outputs=false"]
DIGITS = 5  # significant, of every packed value
PER_PAGE = 9
SETTINGS = (
    "model.layers",
    "model.width",
    "model.placement",
    "model.norm",
    "data.source",
    "optim.lr",
    "optim.clip",
    "optim.warmup",
    "optim.schedule",
    "optim.batch",
    "seed",
)

SWEEPS: dict[str, tuple[str, ...]] = {
    "tuning": (
        "optim.steps=150 model.placement=pre,post optim.lr=1e-5,1e-4,1e-3,3e-3,1e-2,3e-2,1e-1,3e-1,1,3,10",
        "optim.steps=120 model.placement=pre,post optim.lr=1e-3,1e-2,1e-1,1 optim.clip=0 optim.warmup=0"
        " seed=1",
        "optim.steps=120 model.placement=post optim.lr=3e-3,1e-1 optim.clip=0 model.bias=none seed=2",
        "optim.steps=120 model.placement=pre optim.lr=1e2,1e4,1e8 optim.clip=0 optim.warmup=0 model.bias=all"
        " seed=2",
        "optim.steps=50 model.placement=post optim.lr=3e-4,1e-3,3e-3,1e-2 seed=3",
        "optim.steps=50 model.placement=pre optim.lr=1e-3,1e-2 optim.warmup=0 seed=3",
        "optim.steps=30 model.layers=2 optim.lr=1e-3,3e-2 seed=3",
        "optim.steps=400 model.layers=2 optim.batch=8 optim.lr=3e-3,3e-2 optim.schedule=constant seed=4",
        "optim.steps=400 model.layers=2 optim.batch=8 model.placement=post optim.lr=1e-3,1e-2 seed=4",
        "optim.steps=120 model.placement=peri,sublayer model.norm=rmsnorm optim.lr=1e-3,3e-2,1 seed=5",
        "optim.steps=120 data=synthetic model.placement=pre,post optim.lr=1e-3,1e-2,1 seed=6",
        "optim.steps=150 optim.schedule=constant optim.warmup=0 model.placement=pre,post optim.lr=1e-2,3e-2"
        " seed=7",
        "optim.steps=150 optim.warmup=0 model.bias=none,all optim.lr=2e-1 seed=8",
        "optim.steps=150 model.placement=post model.bias=none,all optim.lr=2e-3,5e-3 seed=9",
        "optim.steps=300 model.layers=2 optim.batch=4 optim.beta2=0.999 optim.clip=0 optim.warmup=0"
        " optim.schedule=constant optim.lr=1e-2,3e-2 seed=10,11",
    ),
    "held_out": (
        "optim.steps=160 model.layers=3 model.width=48 model.placement=pre,post"
        " optim.lr=3e-5,6e-4,2e-3,6e-3,2e-2,6e-2,6e-1,5 seed=21",
        "optim.steps=100 data.vocab_size=1024 model.placement=pre,post optim.lr=1e-3,2e-2,5e-1"
        " optim.clip=0 optim.warmup=0 seed=22",
        "optim.steps=300 model.layers=2 optim.batch=8 optim.lr=5e-3 optim.clip=0 optim.warmup=0 seed=23,24",
        "optim.steps=150 model.placement=peri,sublayer model.bias=none optim.lr=2e-3,1e-2,5e-2"
        " optim.schedule=constant optim.warmup=0 seed=25",
        "optim.steps=120 data=synthetic data.branching=8 model.placement=pre,post optim.lr=5e-3,3e-2"
        " optim.schedule=linear seed=26",
        "optim.steps=40,80 model.placement=pre,post optim.lr=5e-3 seed=27",
        "optim.steps=120 model.placement=post model.bias=linear optim.lr=3e2,3e6 optim.clip=0 seed=28",
        "optim.steps=200 model.norm=rmsnorm model.bias=none optim.lr=5e-3,1e-2 optim.clip=0 optim.warmup=0"
        " seed=29",
        "optim.steps=500 model.layers=2 optim.lr=3e-2 optim.schedule=constant optim.warmup=0 seed=30",
        "optim.steps=120 optim.lr=2e-3 optim.clip=0 seed=32",
    ),
}
STOPPED: dict[str, tuple[tuple[int, str], ...]] = {  # stopped from outside once so many rows are recorded
    "tuning": (
        (60, "optim.steps=150 optim.lr=3e-3 seed=12"),
        (60, "optim.steps=150 model.placement=post optim.lr=1 optim.clip=0 optim.warmup=0 seed=12"),
    ),
    "held_out": ((40, "optim.steps=200 optim.lr=1e-3 seed=31"),),
}


def record(root: Path, sets: Sequence[str]) -> None:
    for name in sets:
        for overrides in SWEEPS[name]:
            subprocess.run(_sweep(root, name, overrides), check=True)
        for place, (rows, overrides) in enumerate(STOPPED.get(name, ())):
            _stop_after(rows, root, f"{name}_stopped{place}", overrides)


def _sweep(root: Path, study: str, overrides: str) -> list[str]:
    command = [sys.executable, "-m", "ablate", "sweep", *overrides.split(), *SHARED]
    return [*command, f"study={study}", f"run.root={root}"]


def _stop_after(rows: int, root: Path, study: str, overrides: str) -> None:
    """Train the one run of a study and interrupt it as Ctrl-C does; nothing to do if it exists."""
    if find_runs(root, study):
        return
    process = subprocess.Popen(_sweep(root, study, overrides))
    while process.poll() is None:
        time.sleep(0.05)
        started = [folder for folder in find_runs(root, study) if folder.metrics().exists()]
        if started and len(Run(started[0]).series()) >= rows:
            process.send_signal(signal.SIGINT)
            process.wait()


def pack(root: Path) -> None:
    """Write the fixture; a run whose verdict the rounding would change is an error."""
    packed = {}
    for folder in find_runs(root):
        name = folder.path.parent.name.partition("_stopped")[0]
        if name in SWEEPS:
            run = Run(folder)
            curve, settings = run.curve(), flatten(run.config)
            entry = _compact(curve)
            exact, rounded = judge(curve, VerdictConfig()).kind, judge(curve_of(entry), VerdictConfig()).kind
            assert exact is rounded, f"{folder.path}: {exact} turns {rounded} by rounding"
            packed[f"{name}/{folder.path.name.removesuffix('-' + folder.id)}"] = {
                "settings": {key: settings[key] for key in SETTINGS},
                **entry,
            }
    text = json.dumps(packed, sort_keys=True, separators=(",", ":"))
    RUNS.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
    print(f"{RUNS}: {len(packed)} runs, {RUNS.stat().st_size / 1024:.0f} KiB")


def _compact(curve: Curve) -> dict[str, Any]:
    return {
        "steps": curve.steps,
        "warmup": curve.warmup,
        "loss": _rounded(curve.loss_R),
        "unigram_of_batch": _rounded(curve.unigram_R),
        "gradient": _rounded(curve.grad_R),
        "val_step": curve.val_step_E.tolist(),
        "val_loss": _rounded(curve.val_loss_E),
        "unigram": float(f"{curve.unigram:.{DIGITS}g}"),
        "complete": curve.complete,
    }


def _rounded(values: np.ndarray[Any, np.dtype[np.float64]]) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values]


def curve_of(entry: dict[str, Any]) -> Curve:
    """A curve from its packed form."""
    return Curve(
        steps=entry["steps"],
        warmup=entry["warmup"],
        loss_R=np.array(entry["loss"], float),
        unigram_R=np.array(entry["unigram_of_batch"], float),
        grad_R=np.array(entry["gradient"], float),
        val_step_E=np.array(entry["val_step"], np.int64),
        val_loss_E=np.array(entry["val_loss"], float),
        unigram=entry["unigram"],
        complete=entry["complete"],
    )


def load_runs() -> dict[str, Curve]:
    """The packed runs by name: `set/slug_id`."""
    return {name: curve_of(entry) for name, entry in json.loads(gzip.decompress(RUNS.read_bytes())).items()}


def compare() -> None:
    """Every disagreement with its reasons, then the agreement of each set."""
    labels = json.loads(LABELS.read_text())
    for part in SWEEPS:
        named = {name: curve for name, curve in load_runs().items() if name.startswith(part + "/")}
        agreed = undisputed = 0
        for name, curve in named.items():
            verdict, label = judge(curve, VerdictConfig()), labels[name]["label"]
            undisputed += "|" not in label
            if verdict.kind in label.split("|"):
                agreed += 1
            else:
                print(f"{name}: {label} by eye, {verdict.kind} by rule", *verdict.reasons, sep="\n    ")
        print(
            f"{part}: {agreed} of {len(named)} agree; {len(named) - undisputed} may be called either of two"
        )


def draw(pages: Path, prefix: str) -> None:
    """Page after page of curves: loss, held-out loss, its start and the unigram. No verdicts."""
    pyplot = importlib.import_module("matplotlib.pyplot")
    pages.mkdir(parents=True, exist_ok=True)
    chosen = [(name, curve) for name, curve in load_runs().items() if name.startswith(prefix)]
    for page, first in enumerate(range(0, len(chosen), PER_PAGE)):
        figure, axes = pyplot.subplots(3, 3, figsize=(18, 12), layout="constrained")
        for axis, (name, curve) in zip(axes.flat, chosen[first : first + PER_PAGE], strict=False):
            _panel(axis, name, curve)
        path = pages / f"page{page:02d}.png"
        figure.savefig(path, dpi=70)
        pyplot.close(figure)
        print(path)


def _panel(axis: Any, name: str, curve: Curve) -> None:
    rows = np.arange(curve.loss_R.size)
    axis.plot(rows, curve.loss_R, lw=0.8, label="loss")
    axis.plot(rows, curve.loss_R - curve.unigram_R + curve.unigram, lw=0.6, label="excess + unigram")
    axis.plot(
        curve.val_step_E,
        curve.val_loss_E,
        "ko-",
        lw=0.5,
        ms=4,
        label=f"held out, ends {curve.val_loss_E[-1]:.4g}",
    )
    axis.axhline(curve.unigram, color="r", ls="--", lw=0.8, label=f"unigram {curve.unigram:.4g}")
    axis.axhline(curve.val_loss_E[0], color="grey", ls=":", lw=0.8, label=f"start {curve.val_loss_E[0]:.4g}")
    axis.axvline(curve.warmup, color="grey", lw=0.3)
    axis.set_title(name, fontsize=9)
    axis.set_xlim(-1, curve.steps + 1)
    if np.nanmax(curve.loss_R) > 3 * curve.loss_R[0]:
        axis.set_yscale("log")
    axis.legend(fontsize=7)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=Path("runs/verdict_fixture"), help="folder of the runs")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("record").add_argument("sets", nargs="+", choices=list(SWEEPS))
    commands.add_parser("pack")
    commands.add_parser("compare")
    drawn = commands.add_parser("draw")
    drawn.add_argument("pages", type=Path, help="folder of the pictures")
    drawn.add_argument("--only", default="", help="beginning of the names to draw")
    args = parser.parse_args()
    if args.command == "record":
        record(args.root, args.sets)
    elif args.command == "pack":
        pack(args.root)
    elif args.command == "compare":
        compare()
    else:
        draw(args.pages, args.only)


if __name__ == "__main__":
    main()
