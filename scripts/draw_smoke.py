"""Draw docs/figures/smoke.svg from a recorded smoke study: the loss and the outputs that grow, arm by arm.

    ablate sweep experiment=smoke && python scripts/draw_smoke.py      # needs matplotlib: pip install -e '.[docs]'
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from ablate.record import Run, find_runs
from ablate.view import Arms, RunFacts, read_facts

mpl.rcParams["svg.hashsalt"] = "ablate"  # the same records give the same file

COLOURS = ("#0072B2", "#D55E00")  # Okabe and Ito: told apart by everyone
SITES = ("o", "down")


def outputs(run: Run) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Steps, and the largest output L2 among the o and down linears of all blocks."""
    series = run.series()
    names = [
        name
        for name in series.columns
        if name.startswith("out/b") and name.rpartition("_")[2] in SITES
    ]
    return series.steps, np.max([series.column(name) for name in names], axis=0)


def draw(facts: Sequence[RunFacts], target: Path) -> None:
    """Columns are arms; above the training loss, below the outputs; one line for each learning rate."""
    arms = Arms.of(facts)
    names = list(dict.fromkeys(arms.label(fact) for fact in facts))
    rates = sorted({fact.lr for fact in facts if fact.lr is not None})
    figure, axes = plt.subplots(
        2, len(names), figsize=(2.6 * len(names), 4.4), sharex=True, sharey="row", squeeze=False
    )
    for fact in facts:
        run, column = Run(fact.folder), names.index(arms.label(fact))
        assert fact.lr is not None
        colour = COLOURS[rates.index(fact.lr)]
        series = run.series()
        label = f"lr {fact.lr:g}: {fact.verdict}"
        axes[0, column].plot(series.steps, series.column("train/loss"), color=colour, lw=1, label=label)
        axes[1, column].plot(*outputs(run), color=colour, lw=1)
        axes[0, column].axhline(run.meta["data"]["unigram_entropy"], color="grey", lw=0.8, ls=":")
    for column, name in enumerate(names):
        axes[0, column].set_title(name, fontsize=9)
        axes[0, column].legend(fontsize=7, frameon=False)
        axes[1, column].set_yscale("log")
        axes[1, column].set_xlabel("step", fontsize=8)
    axes[0, 0].set_ylabel("training loss (nats)", fontsize=8)
    axes[1, 0].set_ylabel("largest output L2, o and down", fontsize=8)
    for axis in axes.flat:
        axis.tick_params(labelsize=7)
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path("runs"))
    parser.add_argument("--study", default="smoke")
    parser.add_argument("--out", type=Path, default=Path("docs/figures/smoke.svg"))
    arguments = parser.parse_args()
    facts = [read_facts(folder) for folder in find_runs(arguments.root, arguments.study)]
    draw(facts, arguments.out)
    print(arguments.out)


if __name__ == "__main__":
    main()
