"""Every figure of a study's page, as plain plotly figures (dictionaries that plotly has checked).

Colours are Okabe and Ito's, told apart by everyone; verdicts differ in shape too. Text from configurations is
escaped, because plotly reads a little HTML in labels. Legend: R rows (row t = step t), N thinned steps.
"""

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ablate.stats import capped
from ablate.stats.twins import Floats
from ablate.view.facts import RunFacts
from ablate.view.results import ArmResult, Results, ending
from ablate.view.text import as_float, clean, loss, number

Figure = dict[str, Any]

RAMP = ("#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00")  # Okabe and Ito's, cold to hot
VERDICTS: Mapping[str, tuple[str, str, str]] = {  # colour, plotly symbol, the same as a character
    "stable": ("#009E73", "circle", "●"),
    "stable (impaired)": ("#009E73", "circle-open", "○"),
    "spiked": ("#E69F00", "triangle-up", "▲"),
    "spiked (impaired)": ("#E69F00", "triangle-up-open", "△"),
    "undertrained": ("#0072B2", "diamond", "◆"),
    "collapsed": ("#CC79A7", "square", "■"),
    "diverged": ("#D55E00", "x", "✕"),
    "censored": ("#595959", "pentagon-open", "⬠"),
}
INK, FAINT, GRID = "#222222", "#c8c8c8", "#ececec"
SITES = ("o", "down", "q", "k", "v", "up", "gate", "head")
LINE_POINTS = 200  # points of a line at most, and of all lines of one figure together:
FIGURE_POINTS = 24_000
MAP_STEPS = 60  # columns of a heatmap at most
MAP_VALUES = 400_000  # values of all heatmaps together: runs beyond are left out, unstable ones last
SPREAD = 1.05  # factor in the rate between neighbouring seeds, so that their points do not hide each other


def rate_figures(results: Results) -> list[Figure]:
    """One figure an arm: final held-out loss against the learning rate, every seed's point with its verdict.

    A loss above the loss at step 0, or not finite, is drawn at the loss at step 0 with an arrow. Grey: the
    medians of the other arms. All share their axes.
    """
    marks = {arm.name: _marks(arm, results) for arm in results.arms}
    medians = {name: _medians(found) for name, found in marks.items()}
    values = [m["y"] for found in marks.values() for m in found]
    unigram = _common(results, "measures/u")
    start = _common(results, "measures/l0")
    levels = [x for x in (unigram, start) if x is not None]
    low, high = min([*values, *levels], default=0.0), max([*values, *levels], default=1.0)
    pad = 0.08 * (high - low) or 0.1
    layout = _layout("learning rate (log)", "final val loss, nats")
    layout["xaxis"] |= {"type": "log", **_rate_ticks(results.rates)}
    layout["yaxis"] |= {"range": [low - pad, high + 1.6 * pad]}
    layout["shapes"] = [_level(y, dash) for y, dash in ((unigram, "dot"), (start, "dash")) if y is not None]
    return [
        _checked(_rate_traces(name, marks, medians), {**layout, **_nothing(not marks[name])})
        for name in marks
    ]


def output_figures(results: Results) -> dict[str, Figure]:
    """One figure a site: the largest output L2 over blocks against the step, one line an arm and rate.

    Of every arm and rate the first seed that has rows. A line keeps the largest value of each stretch it
    is thinned to, and ends where it is no longer finite. `meta` of a trace is its arm's place.
    """
    runs = [
        (place, next((r for r in point.runs if results.outputs[r.run_id]), None))
        for place, arm in enumerate(results.arms)
        for point in arm.points
    ]
    shown = [(place, run) for place, run in runs if run is not None]
    count = max(30, min(LINE_POINTS, FIGURE_POINTS // max(1, len(shown))))
    colours = rate_colours(results.rates)
    names = {r.run_id: arm.title for arm in results.arms for p in arm.points for r in p.runs}
    figures = {}
    for site in SITES:
        traces = []
        for place, run in shown:
            values_R = _largest(results.outputs[run.run_id], site)
            if values_R is None or run.lr is None:
                continue
            step_N, value_N = thinned(values_R, count)
            label = f"{names[run.run_id]}, lr {number(run.lr, 6)}, seed {run.seed}: {results.word(run)}"
            traces.append(
                {
                    "type": "scatter", "mode": "lines", "x": step_N, "y": value_N, "meta": place,
                    "line": {"color": colours[run.lr], "width": 1.3}, "opacity": 0.75,
                    "text": _label(label), "hoverinfo": "x+y+text", "name": "",
                }
            )  # fmt: skip
        if traces:
            layout = _layout("step", "output L2 (log)")
            layout["yaxis"] |= {"type": "log", "exponentformat": "power", "dtick": _decades(traces)}
            figures[site] = _checked(traces, layout)
    return figures


def growth_maps(results: Results) -> tuple[list[dict[str, Any]], str | None]:
    """Data of the heatmaps, and the run shown first.

    One entry a run: its linears (site by site, first block first), thinned steps, log10 of output L2 × 100
    as integers (null: not finite or zero), and its twin's id. Twins are entries too.
    """
    order = {"collapsed": 1, "spiked": 2, "diverged": 0}
    wanted = [r for r in results.runs if results.outputs[r.run_id]]
    wanted.sort(key=lambda r: (r.run_id not in results.twins, order.get(r.verdict or "", 3)))
    names = {r.run_id: arm.title for arm in results.arms for p in arm.points for r in p.runs}
    entries: dict[str, dict[str, Any]] = {}
    size = 0
    for run in wanted:
        for one in (run, results.twins.get(run.run_id)):
            if one is None or one.run_id in entries or not results.outputs[one.run_id] or size > MAP_VALUES:
                continue
            entries[one.run_id] = entry = _map(one, names.get(one.run_id, "?"), results)
            size += len(entry["steps"]) * len(entry["linears"])
    first = next((r.run_id for r in wanted if r.run_id in results.twins and r.run_id in entries), None)
    return list(entries.values()), first or next(iter(entries), None)


def map_figures() -> dict[str, Figure]:
    """The empty heatmaps: a run's output L2, its twin's on the same scale, and the growth (their ratio)."""
    ratio = [[0, "#0072B2"], [0.5, "#f7f7f7"], [1, "#D55E00"]]
    bar = {"thickness": 10, "len": 0.9, "tickfont": {"size": 10}}
    figures = {}
    for name, scale, title in (
        ("growth", ratio, "log10 ratio"),
        ("run", "Cividis", "log10 L2"),
        ("twin", "Cividis", "log10 L2"),
    ):
        trace = {
            "type": "heatmap", "x": [], "y": [], "z": [], "colorscale": scale,
            "colorbar": {**bar, "title": {"text": title, "side": "right"}},
            "hovertemplate": "%{y}, step %{x}: 10^%{z:.2f}<extra></extra>",
        }  # fmt: skip
        layout = _layout("step", "")
        layout["yaxis"] |= {"type": "category", "autorange": "reversed", "dtick": 1, "ticks": ""}
        layout["yaxis"] |= {"tickfont": {"size": 10}, "showgrid": False}
        layout["margin"] |= {"l": 66, "r": 4}
        figures[name] = _checked([trace], layout)
    return figures


def rate_colours(rates: Sequence[float]) -> dict[float, str]:
    """A colour for each rate, cold to hot: Okabe and Ito's, or cividis when there are more than five."""
    places = np.linspace(0, 1, len(rates)).tolist()
    if len(rates) <= len(RAMP):
        return {lr: RAMP[round(x * (len(RAMP) - 1))] for lr, x in zip(rates, places, strict=True)}
    from plotly.colors import sample_colorscale

    return dict(zip(rates, sample_colorscale("Cividis", places), strict=True))


def thinned(values_R: Floats, count: int) -> tuple[list[int], list[float | None]]:
    """At most `count` stretches of equal length: the first step and the largest value of each.

    None for a stretch with a value that is not finite.
    """
    stride = max(1, math.ceil(values_R.size / count))
    steps = range(0, values_R.size, stride)
    with np.errstate(invalid="ignore"):
        largest = [float(np.max(values_R[step : step + stride])) for step in steps]
    return list(steps), [float(f"{x:.4g}") if math.isfinite(x) else None for x in largest]


def _marks(arm: ArmResult, results: Results) -> list[dict[str, Any]]:
    """One entry a finished run: x, y (capped), the rate itself, verdict, and whether it was capped."""
    found = []
    middle = (len(results.seeds) - 1) / 2
    for run in (r for point in arm.points for r in point.runs):
        if (end := ending(run)) is None:
            continue
        y = capped(end.final, end.start)
        over = not end.final < end.start
        words = f"{results.word(run)}, seed {run.seed}, lr {number(end.lr, 6)}, final val {loss(end.final)}"
        found.append(
            {
                "x": end.lr * SPREAD ** (results.seeds.index(str(run.seed)) - middle), "y": y, "lr": end.lr,
                "word": results.word(run), "over": over,
                "text": _label(f"{words} (drawn at the loss at step 0)" if over else words),
            }
        )  # fmt: skip
    return found


def _rate_traces(
    name: str,
    marks: Mapping[str, Sequence[Mapping[str, Any]]],
    medians: Mapping[str, Sequence[tuple[float, float]]],
) -> list[Figure]:
    others = [pair for other, line in medians.items() if other != name for pair in (*line, (None, None))]
    own = medians[name]
    traces: list[Figure] = [
        _line([x for x, _ in others], [y for _, y in others], FAINT, 1.0),
        _line([x for x, _ in own], [y for _, y in own], INK, 1.6),
    ]
    for word in dict.fromkeys(m["word"] for m in marks[name]):
        chosen = [m for m in marks[name] if m["word"] == word]
        colour, symbol, _ = VERDICTS.get(word, (INK, "circle", "?"))
        edge = 1.6 if symbol.endswith("open") else 0
        traces.append(
            {
                "type": "scatter", "mode": "markers+text", "name": word, "hoverinfo": "text",
                "x": [m["x"] for m in chosen], "y": [m["y"] for m in chosen],
                "text": ["↑" if m["over"] else "" for m in chosen], "textposition": "top center",
                "hovertext": [m["text"] for m in chosen],
                "marker": {
                    "color": colour, "symbol": symbol, "size": 9, "line": {"width": edge, "color": colour}
                },
            }
        )  # fmt: skip
    return traces


def _medians(marks: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    by_rate: dict[float, list[float]] = {}
    for mark in marks:
        by_rate.setdefault(mark["lr"], []).append(mark["y"])
    return [(lr, float(np.median(found))) for lr, found in sorted(by_rate.items())]


def _map(run: RunFacts, arm: str, results: Results) -> dict[str, Any]:
    outputs = results.outputs[run.run_id]
    linears = sorted(outputs, key=lambda name: (_site_rank(name), name))
    planned = as_float(run.flat.get("optim.steps")) or 0
    count = max(1, math.ceil(len(next(iter(outputs.values()))) / max(1, math.ceil(planned / MAP_STEPS))))
    columns = {name: thinned(outputs[name], count) for name in linears}
    twin = results.twins.get(run.run_id)
    label = f"lr {number(run.lr, 6)}, seed {run.seed}: {results.word(run)}"
    return {
        "id": run.run_id,
        "arm": clean(arm),
        "label": clean(label),
        "twin": None if twin is None else twin.run_id,
        "linears": [clean(name) for name in linears],
        "steps": columns[linears[0]][0],
        "z": [[_centilog(x) for x in columns[name][1]] for name in linears],
    }


def _centilog(x: float | None) -> int | None:
    return round(100 * math.log10(x)) if x is not None and x > 0 else None


def _site_rank(linear: str) -> int:
    site = linear.rpartition("_")[2]
    return SITES.index(site) if site in SITES else len(SITES)


def _largest(outputs: Mapping[str, Floats], site: str) -> Floats | None:
    """Largest output over the blocks of a site; NaN wherever one is."""
    found = [values for name, values in outputs.items() if name.rpartition("_")[2] == site]
    return np.max(found, axis=0) if found else None


def _decades(traces: Sequence[Figure]) -> int:
    """Decades between ticks, for about five of them."""
    known = [y for trace in traces for y in trace["y"] if y]
    return max(1, round(math.log10(max(known) / min(known)) / 5)) if known else 1


def _common(results: Results, key: str) -> float | None:
    """The median of a measure over the runs: the same for all, or nearly so (l0 varies with seed and arm)."""
    known = [x for r in results.runs if (x := as_float(r.summary.get(key))) is not None and math.isfinite(x)]
    return float(np.median(known)) if known else None


def _rate_ticks(rates: Sequence[float]) -> Figure:
    shown = rates if len(rates) <= 5 else rates[:: math.ceil(len(rates) / 5)]
    span = [math.log10(rates[0]) - 0.25, math.log10(rates[-1]) + 0.25] if rates else [-3, 0]
    return {"tickvals": list(shown), "ticktext": [number(lr, 6) for lr in shown], "range": span}


def _level(y: float, dash: str) -> Figure:
    line = {"color": "#808080", "width": 1, "dash": dash}
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": y,
        "y1": y,
        "line": line,
        "layer": "below",
    }


def _line(x: Sequence[float | None], y: Sequence[float | None], colour: str, width: float) -> Figure:
    line = {"color": colour, "width": width}
    return {"type": "scatter", "mode": "lines", "x": list(x), "y": list(y), "line": line, "hoverinfo": "skip"}


def _nothing(empty: bool) -> Figure:
    middle = {"xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5}
    note = {"text": "no run finished yet", "showarrow": False, **middle}
    return {"annotations": [note]} if empty else {}


def _layout(x: str, y: str) -> Figure:
    axis = {"gridcolor": GRID, "zeroline": False, "linecolor": FAINT, "automargin": True, "fixedrange": False}
    return {
        "template": "none", "showlegend": False, "hovermode": "closest", "autosize": True,
        "margin": {"l": 48, "r": 8, "t": 8, "b": 40},
        "font": {"size": 11, "color": INK, "family": "system-ui, sans-serif"},
        "xaxis": {**axis, "title": {"text": x, "standoff": 6}},
        "yaxis": {**axis, "title": {"text": y, "standoff": 6}},
        "paper_bgcolor": "white", "plot_bgcolor": "white",
    }  # fmt: skip


def _checked(data: Sequence[Figure], layout: Figure) -> Figure:
    """The figure, after plotly has refused what it does not know."""
    import plotly.graph_objects as go

    return dict(go.Figure({"data": list(data), "layout": layout}).to_plotly_json())


def _label(text: str) -> str:
    return html.escape(clean(text), quote=False)
