"""How the linears' outputs grow: over the steps, and at the end against the stable twin."""

import math
import statistics
from collections.abc import Sequence

from ablate.view.curves import Line, plotted
from ablate.view.facts import RunFacts
from ablate.view.figures.armstyle import arm_styles
from ablate.view.figures.style import (
    SITES,
    Figure,
    Panel,
    Plate,
    checked,
    label,
    layout,
    level,
    log_axis,
    rate_axis,
    rate_key,
    rate_styles,
)
from ablate.view.results import ArmResult, Point, Results
from ablate.view.text import number

LARGEST = 1e12  # a growth that is not finite is drawn at the panel's top, at most here

COURSE = (
    "Output L2 (‖y‖ / √tokens) at each step, the largest over the blocks; one line a learning rate (n = 1: "
    "the first seed that has rows), no interval. Of every stretch the lowest and the highest value are "
    "drawn. ✕: where the output is no longer finite."
)
GROWN = (
    "Output L2 over the same site's at the same step in the stable twin (same arm and seed, at the arm's "
    "best rate), geometric mean over the last tenth of the steps, the largest over the blocks; median over "
    "the seeds that have a twin (n = {n}), no interval. ▲ at the top: not finite. Dotted: as in the twin. "
    "Growth describes; it is no score of stability (Rybakov et al. 2024 found that damping what grows most "
    "need not raise the edge)."
)

UNTOLD = " One line an arm: point at it for its name."


def course_plate(results: Results) -> Plate | None:
    """One panel a site: output L2 against the step. `meta` of a trace is its arm's place."""
    shown = [
        (place, run)
        for place, arm in enumerate(results.arms)
        for point in arm.points
        if (run := _first(point, results)) is not None
    ]
    styles = rate_styles(results.rates)
    panels = []
    for site in (s for s in SITES if any(s in results.curves[r.run_id].sites for _, r in shown)):
        traces: list[Figure] = []
        for place, run in shown:
            found = results.curves[run.run_id].sites.get(site)
            if found is not None and run.lr is not None:
                name = f"lr {number(run.lr, 6)}, seed {run.seed}: {results.word(run)}"
                traces += _course(found, styles[run.lr], place, label(name))
        laid_out = layout("step", "output L2 (log)")
        laid_out["yaxis"] |= log_axis([y for t in traces for y in t["y"] if y])
        panels.append(Panel(f"out-{site}", site, checked(traces, laid_out)))
    if not panels:
        return None
    return Plate(
        "output_norms", "Output norms over the steps", COURSE, tuple(panels), rate_key(results.rates)
    )


def growth_plate(results: Results) -> Plate | None:
    """One panel a site: growth against the stable twin at the end, by learning rate, one line an arm."""
    styles, key = arm_styles(results.arms)
    found = {
        (site, arm.name): ends
        for arm in results.arms
        for site in SITES
        if (ends := _ends(arm, site, results))
    }
    if not found:
        return None
    finite = [y for ends in found.values() for _, y, _ in ends if math.isfinite(y) and y > 0]
    top = min(LARGEST, 3 * max(finite, default=1.0))
    panels = []
    for site in (s for s in SITES if any(s == key[0] for key in found)):
        traces: list[Figure] = []
        for arm in results.arms:
            ends = found.get((site, arm.name), [])
            look = styles[arm.name]
            traces.append(
                {
                    "type": "scatter", "mode": "lines+markers", "x": [lr for lr, _, _ in ends],
                    "y": [min(y, top) for _, y, _ in ends], "name": label(arm.title),
                    "line": {"color": look.colour, "width": 1.3, "dash": look.dash},
                    "marker": {
                        "color": look.colour, "size": 7,
                        "symbol": [look.symbol if math.isfinite(y) else "triangle-up" for _, y, _ in ends],
                    },
                    "text": [label(f"{arm.title}, lr {number(lr, 6)}: ×{number(y)} (n = {n})")
                             for lr, y, n in ends], "hoverinfo": "text",
                }
            )  # fmt: skip
        laid_out = layout("learning rate (log)", "× stable twin (log)")
        laid_out["xaxis"] |= rate_axis(results.rates)
        laid_out["yaxis"] |= log_axis([y for t in traces for y in (*t["y"], 1.0)])
        laid_out["shapes"] = [level(1.0, "dot")]
        panels.append(Panel(f"grown-{site}", site, checked(traces, laid_out)))
    told = len({(look.colour, look.dash, look.symbol) for look in styles.values()}) == len(styles)
    counts = sorted({n for ends in found.values() for _, _, n in ends})
    words = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    caption = GROWN.format(n=words) + ("" if told else UNTOLD)
    return Plate("output_growth", "Growth of outputs", caption, tuple(panels), key)


def _first(point: Point, results: Results) -> RunFacts | None:
    return next((r for r in point.runs if results.curves[r.run_id].sites), None)


def _course(found: Line, look: tuple[str, str], place: int, name: str) -> list[Figure]:
    colour, dash = look
    traces: list[Figure] = [
        {
            "type": "scatter", "mode": "lines", "x": found.step_N.tolist(),
            "y": plotted(found.value_N), "meta": place, "visible": place == 0,
            "line": {"color": colour, "width": 1.4, "dash": dash},
            "text": name, "hoverinfo": "x+y+text", "name": "",
        }
    ]  # fmt: skip
    if found.broken is not None and found.broken[1] > 0:
        step, before = found.broken
        traces.append(
            {
                "type": "scatter", "mode": "markers", "x": [step], "y": [before], "meta": place,
                "visible": place == 0, "marker": {"symbol": "x", "size": 8, "color": colour},
                "text": f"{name}, not finite from here", "hoverinfo": "x+text", "name": "",
            }
        )  # fmt: skip
    return traces


def _ends(arm: ArmResult, site: str, results: Results) -> list[tuple[float, float, int]]:
    """(rate, median growth at the end, n) of the arm's points that have twins; the twin itself is 1."""
    found = []
    for point in arm.points:
        values = [
            results.against[r.run_id].sites[site]
            for r in point.runs
            if r.run_id in results.against and site in results.against[r.run_id].sites
        ]
        if point.lr is not None and values:
            found.append((point.lr, _median(values), len(values)))
    return found


def _median(values: Sequence[float]) -> float:
    """As usual, with infinity above everything."""
    ordered = sorted(values)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return statistics.fmean((low, high)) if math.isfinite(high) else high
