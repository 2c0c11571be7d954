"""Growth layer by layer: heatmaps of output L2 over the steps, of a run, its stable twin, and their ratio.

The page draws them from compact data, so that any run can be chosen; the same numbers make a still figure.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ablate.record import depth_of, site_of
from ablate.view.curves import Floats
from ablate.view.facts import RunFacts
from ablate.view.figures.style import SITES, Figure, Panel, Plate, checked, layout
from ablate.view.results import Results
from ablate.view.text import clean, number

MAP_VALUES = 400_000  # values of all heatmaps together: runs beyond are left out, unstable ones last
CAPTION = (
    "n = 1: one run beside its stable twin (same arm and seed, at the arm's best rate); no interval. Rows "
    "are linears, site by site from the first block to the last (e: the encoder's of an encoder_decoder). "
    "Growth is the output L2 over the twin's at the same step; its colours span 98 % of its values; white "
    "gaps are not finite, or beyond either's last row."
)
RATIO = [[0, "#0072B2"], [0.5, "#f7f7f7"], [1, "#D55E00"]]


def growth_maps(results: Results) -> tuple[list[dict[str, Any]], str | None]:
    """Data of the heatmaps, and the run shown first.

    One entry a run: its linears (site by site, first block first), thinned steps, log10 of output L2 × 100
    as integers (null: not finite or zero), and its twin's id. Twins are entries too.
    """
    order = {"collapsed": 1, "spiked": 2, "diverged": 0}
    wanted = [r for r in results.runs if (c := results.curves.get(r.run_id)) is not None and c.maps]
    wanted.sort(key=lambda r: (r.run_id not in results.twins, order.get(r.verdict or "", 3)))
    names = {r.run_id: arm.title for arm in results.arms for p in arm.points for r in p.runs}
    entries: dict[str, dict[str, Any]] = {}
    size = 0
    for run in wanted:
        for one in (run, results.twins.get(run.run_id)):
            if one is None or one.run_id in entries or size > MAP_VALUES:
                continue
            if not results.curves[one.run_id].maps:
                continue
            entries[one.run_id] = entry = _map(one, names[one.run_id], results)
            size += len(entry["steps"]) * len(entry["linears"])
    first = next((r.run_id for r in wanted if r.run_id in results.twins and r.run_id in entries), None)
    return list(entries.values()), first or next(iter(entries), None)


def map_figures() -> dict[str, Figure]:
    """The empty heatmaps: a run's output L2, its twin's on the same scale, and the growth (their ratio)."""
    return {
        "growth": _heatmap([], [], [], RATIO, "log10 ratio"),
        "run": _heatmap([], [], [], "Cividis", "log10 L2"),
        "twin": _heatmap([], [], [], "Cividis", "log10 L2"),
    }


def map_plate(entries: Sequence[Mapping[str, Any]], first: str | None) -> Plate | None:
    """The growth map of the run shown first, as a still figure; None where it has no twin."""
    by_id = {str(e["id"]): e for e in entries}
    run = by_id.get(first or "")
    twin = by_id.get(str(run["twin"])) if run is not None else None
    if run is None or twin is None:
        return None
    z = growth_rows(run, twin)
    sizes = sorted(abs(x) for row in z for x in row if x is not None)
    limit = max(0.5, sizes[math.floor(0.98 * (len(sizes) - 1))]) if sizes else 0.5
    figure = _heatmap(run["steps"], run["linears"], z, RATIO, "log10 ratio")
    figure["data"][0] |= {"zmin": -limit, "zmax": limit}
    figure["layout"]["height"] = max(260, 70 + 13 * len(z))
    title = f"{run['arm']}, {run['label']}"
    panel = Panel("map-growth", title, checked(figure["data"], figure["layout"]))
    return Plate("growth_map", "Growth, layer by layer", CAPTION, (panel,), wide=True)


def growth_rows(run: Mapping[str, Any], twin: Mapping[str, Any]) -> list[list[float | None]]:
    """log10 of run / twin for each linear and step of the run; None where either is not known."""
    at = {step: i for i, step in enumerate(twin["steps"])}
    rows = dict(zip(twin["linears"], twin["z"], strict=True))
    found: list[list[float | None]] = []
    for name, mine in zip(run["linears"], run["z"], strict=True):
        its = rows.get(name)
        found.append(
            [
                None
                if x is None or its is None or step not in at or its[at[step]] is None
                else (x - its[at[step]]) / 100
                for step, x in zip(run["steps"], mine, strict=True)
            ]
        )
    return found


def _heatmap(x: Sequence[int], y: Sequence[str], z: object, scale: object, title: str) -> Figure:
    bar = {"thickness": 10, "len": 0.9, "tickfont": {"size": 10}}
    trace = {
        "type": "heatmap", "x": list(x), "y": list(y), "z": z, "colorscale": scale,
        "colorbar": {**bar, "title": {"text": title, "side": "right"}},
        "hovertemplate": "%{y}, step %{x}: 10^%{z:.2f}<extra></extra>",
    }  # fmt: skip
    laid_out = layout("step", "")
    laid_out["yaxis"] |= {"type": "category", "autorange": "reversed", "dtick": 1, "ticks": ""}
    laid_out["yaxis"] |= {"tickfont": {"size": 10}, "showgrid": False}
    laid_out["margin"] |= {"l": 66, "r": 4}
    return checked([trace], laid_out)


def _map(run: RunFacts, arm: str, results: Results) -> dict[str, Any]:
    found = results.curves[run.run_id]
    linears = sorted(found.maps, key=lambda name: (_site_rank(name), depth_of(name), name))
    twin = results.twins.get(run.run_id)
    label = f"lr {number(run.lr, 6)}, seed {run.seed}: {results.word(run)}"
    return {
        "id": run.run_id,
        "arm": clean(arm),
        "label": clean(label),
        "twin": None if twin is None else twin.run_id,
        "linears": [clean(name) for name in linears],
        "steps": list(found.map_steps),
        "z": [_centilogs(found.maps[name]) for name in linears],
    }


def _centilogs(values: Floats) -> list[int | None]:
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.round(100 * np.log10(values))
    return [int(x) if math.isfinite(x) else None for x in found.tolist()]


def _site_rank(linear: str) -> int:
    sites, site = list(SITES), site_of(linear)
    return sites.index(site) if site in sites else len(sites)
