"""Where training breaks: LR½ and LR50 of every arm."""

import math
from collections.abc import Sequence

from ablate.stats import Bound, Response
from ablate.view.analysis import Analysis, ArmAnswer
from ablate.view.figures.forest import EDGE, FOLD, rows_layout
from ablate.view.figures.style import (
    INK,
    PALETTE,
    Figure,
    Key,
    Panel,
    Plate,
    checked,
    folded,
    label,
    rate_axis,
)
from ablate.view.results import Results
from ablate.view.text import number
from ablate.view.words import SIGNS, amount, kind_of

STEEP = PALETTE[1]
CENSORED = {Bound.above: "triangle-right", Bound.below: "triangle-left"}
EDGES = (
    "LR½: the rate above the arm's best at which the loss crosses half of what there was to learn. Small "
    "marks: one seed each (▶ no edge up to the highest rate, ◀ beyond it at the lowest already). Large "
    "mark: geometric mean over the seeds, edges beyond the rates tried at their limit{bars}. Diamond: "
    "LR50, where half of the runs are unstable, with its profile likelihood interval (thin; at least the "
    "bracket where stable and unstable runs are separated). Short strokes: the arm's best rate. n = {n} "
    "seeds an arm."
)


def edge_plate(analysis: Analysis, results: Results) -> Plate | None:
    """LR½ and LR50 of every arm; None where no arm has an edge."""
    rows = [a for a in analysis.arms if any(e.bound is not Bound.missing for e in a.edges.values())]
    if not rows:
        return None
    names = [folded(a.arm.title, FOLD) for a in rows]
    laid_out = rows_layout("learning rate (log)", names)
    laid_out["xaxis"] |= rate_axis(results.rates)
    traces = [_seed_marks(rows), _best_marks(rows), _lr50_marks(rows), _edge_marks(rows)]
    ns = sorted({len(a.edges) for a in rows})
    intervals = sorted({kind_of(a.estimates[Response.edge]) for a in rows} - {"none"})
    bars = (
        f", with its 95 % {' or '.join(intervals)} interval"
        if intervals
        else " (fewer than 5 seeds: no interval)"
    )
    caption = EDGES.format(bars=bars, n=ns[0] if len(ns) == 1 else f"{ns[0]} to {ns[-1]}")
    key = (
        Key("LR½, mean over seeds", EDGE, "square", "solid"), Key("LR½, one seed", EDGE, "circle-open"),
        Key("LR50", STEEP, "diamond-open", "solid"), Key("best rate", INK, "line-ns-open"),
    )  # fmt: skip
    panel = Panel("edges", "", checked(traces, laid_out))
    return Plate("edges", "Where training breaks", caption, (panel,), key, wide=True)


def _seed_marks(rows: Sequence[ArmAnswer]) -> Figure:
    found = [
        (e, i, seed)
        for i, a in enumerate(rows)
        for seed, e in a.edges.items()
        if e.bound is not Bound.missing
    ]
    return {
        "type": "scatter", "mode": "markers", "x": [e.lr for e, _, _ in found],
        "y": [i + 0.2 for _, i, _ in found],
        "marker": {
            "symbol": [CENSORED.get(e.bound, "circle-open") for e, _, _ in found], "size": 6, "color": EDGE,
            "line": {"width": 1.2, "color": EDGE},
        },
        "text": [label(f"seed {s}: {SIGNS[e.bound]}{number(e.lr, 3)} {e.note}") for e, _, s in found],
        "hoverinfo": "text",
    }  # fmt: skip


def _best_marks(rows: Sequence[ArmAnswer]) -> Figure:
    found = [(a.arm.best_lr, i) for i, a in enumerate(rows) if a.arm.best_lr is not None]
    return {
        "type": "scatter", "mode": "markers", "x": [lr for lr, _ in found], "y": [i for _, i in found],
        "marker": {"symbol": "line-ns-open", "size": 12, "color": INK, "line": {"width": 1.5, "color": INK}},
        "text": [f"best rate {number(lr, 6)}" for lr, _ in found], "hoverinfo": "text",
    }  # fmt: skip


def _lr50_marks(rows: Sequence[ArmAnswer]) -> Figure:
    found = [(a.lr50, i) for i, a in enumerate(rows) if a.lr50.bound is Bound.exact]
    low = [x.lr - x.interval.low if x.interval is not None else 0.0 for x, _ in found]
    high = [min(x.interval.high, 1e9) - x.lr if x.interval is not None else 0.0 for x, _ in found]
    return {
        "type": "scatter", "mode": "markers", "x": [x.lr for x, _ in found],
        "y": [i - 0.24 for _, i in found],
        "marker": {
            "symbol": "diamond-open", "size": 8, "color": STEEP, "line": {"width": 1.5, "color": STEEP}
        },
        "error_x": {"type": "data", "symmetric": False, "array": high, "arrayminus": low, "color": STEEP,
                    "thickness": 1, "width": 3},
        "text": [label(f"LR50 {number(x.lr, 3)} {x.note}") for x, _ in found], "hoverinfo": "text",
    }  # fmt: skip


def _edge_marks(rows: Sequence[ArmAnswer]) -> Figure:
    found = [(a.estimates[Response.edge], i) for i, a in enumerate(rows) if a.estimates[Response.edge].n]
    middle = [math.exp(e.mean) for e, _ in found]
    ends = [
        (e.interval.low, e.interval.high) if e.interval is not None else (e.mean, e.mean) for e, _ in found
    ]
    return {
        "type": "scatter", "mode": "markers", "x": middle, "y": [i for _, i in found],
        "marker": {"symbol": "square", "size": 9, "color": EDGE},
        "error_x": {
            "type": "data", "symmetric": False, "color": EDGE, "thickness": 2, "width": 4,
            "array": [math.exp(high) - x for x, (_, high) in zip(middle, ends, strict=True)],
            "arrayminus": [x - math.exp(low) for x, (low, _) in zip(middle, ends, strict=True)],
        },
        "text": [f"LR½ {SIGNS[e.bound]}{amount(Response.edge, e.mean)}, n = {e.n}" for e, _ in found],
        "hoverinfo": "text",
    }  # fmt: skip
