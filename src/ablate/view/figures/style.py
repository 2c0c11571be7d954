"""What all figures share: colours, marks, axes, and the shape of a figure of the page.

Colours are Okabe and Ito's, told apart by everyone; what matters differs in mark or dash too. Text from
configurations is escaped, because plotly reads a little HTML in labels.
"""

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ablate.view.text import clean, number

Figure = dict[str, Any]

INK, FAINT, GRID, SOFT = "#222222", "#c8c8c8", "#ececec", "#808080"
# Okabe and Ito 2008, without their yellow (too light on white); black first.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
RAMP = ("#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00")  # cold to hot
DASHES = ("solid", "dash", "dot", "dashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "cross", "star", "triangle-down")
GLYPHS: Mapping[str, str] = {
    "circle": "●", "circle-open": "○", "square": "■", "square-open": "□", "diamond": "◆", "diamond-open": "◇",
    "triangle-up": "▲", "triangle-up-open": "△", "x": "✕", "x-thin-open": "✕", "cross": "✚", "star": "★",
    "triangle-down": "▼", "pentagon-open": "⬠", "triangle-right": "▶", "triangle-left": "◀",
    "line-ns-open": "|",
}  # fmt: skip
VERDICTS: Mapping[str, tuple[str, str]] = {  # colour, plotly symbol
    "stable": ("#009E73", "circle"),
    "stable (impaired)": ("#009E73", "circle-open"),
    "spiked": ("#E69F00", "triangle-up"),
    "spiked (impaired)": ("#E69F00", "triangle-up-open"),
    "undertrained": ("#0072B2", "diamond"),
    "collapsed": ("#CC79A7", "square"),
    "diverged": ("#D55E00", "x"),
    "censored": ("#595959", "pentagon-open"),
}
SITES: Mapping[str, tuple[str, str, str]] = {  # colour, dash, symbol
    "o": ("#D55E00", "solid", "circle"),
    "down": ("#0072B2", "solid", "square"),
    "q": ("#009E73", "dash", "diamond"),
    "k": ("#CC79A7", "dash", "triangle-up"),
    "v": ("#E69F00", "dash", "triangle-down"),
    "up": ("#56B4E9", "dot", "star"),
    "gate": ("#000000", "dot", "cross"),
    "cross_q": ("#009E73", "dashdot", "diamond-open"),  # a site's colour, across: another dash and mark
    "cross_k": ("#CC79A7", "dashdot", "triangle-up-open"),
    "cross_v": ("#E69F00", "dashdot", "triangle-down-open"),
    "cross_o": ("#D55E00", "dashdot", "circle-open"),
    "transform": ("#7F7F7F", "dot", "pentagon-open"),
    "head": ("#7F7F7F", "dashdot", "x"),
}


@dataclass(frozen=True)
class Key:
    """One entry of a legend: a mark, a line, or both."""

    label: str
    colour: str
    symbol: str | None = None
    dash: str | None = None


@dataclass(frozen=True)
class Panel:
    """One small figure: `id` names its place on the page; `figure` is checked by plotly."""

    id: str
    title: str
    figure: Figure


@dataclass(frozen=True)
class Plate:
    """A figure of the page: panels that belong together, their legend, and a caption that says n, the kind
    of interval, and what is shown. `name` is its file's name when it is exported. `wide`: few large panels.
    """

    name: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    key: tuple[Key, ...] = ()
    wide: bool = False


def layout(x: str, y: str) -> Figure:
    """Axes titled `x` and `y`, dark on white, without a legend (the page has its own)."""
    axis = {"gridcolor": GRID, "zeroline": False, "linecolor": FAINT, "automargin": True, "fixedrange": False}
    return {
        "template": "none", "showlegend": False, "hovermode": "closest", "autosize": True,
        "margin": {"l": 48, "r": 8, "t": 8, "b": 40},
        "font": {"size": 11, "color": INK, "family": "system-ui, sans-serif"},
        "xaxis": {**axis, "title": {"text": x, "standoff": 6}},
        "yaxis": {**axis, "title": {"text": y, "standoff": 6}},
        "paper_bgcolor": "white", "plot_bgcolor": "white",
    }  # fmt: skip


def checked(data: Sequence[Figure], laid_out: Figure) -> Figure:
    """The figure, after plotly has refused what it does not know."""
    import plotly.graph_objects as go

    return dict(go.Figure({"data": list(data), "layout": laid_out}).to_plotly_json())


def label(text: object) -> str:
    """Text for a plotly label: one harmless line."""
    return html.escape(clean(text), quote=False)


def folded(text: str, width: int) -> str:
    """A label on lines of about `width` characters, broken at spaces."""
    lines = [""]
    for word in label(text).split(" "):
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return "<br>".join(lines)


def level(value: float, dash: str, axis: str = "y") -> Figure:
    """A line across the panel at a value of one axis."""
    other = "x" if axis == "y" else "y"
    return {
        "type": "line", f"{other}ref": "paper", f"{other}0": 0, f"{other}1": 1, f"{axis}0": value,
        f"{axis}1": value, "line": {"color": SOFT, "width": 1, "dash": dash}, "layer": "below",
    }  # fmt: skip


def note(text: str) -> list[Figure]:
    """Words in the middle of an empty panel."""
    middle = {"xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5}
    return [{"text": label(text), "showarrow": False, **middle}]


def line(
    x: Sequence[float | None],
    y: Sequence[float | None],
    colour: str,
    width: float,
    dash: str = "solid",
) -> Figure:
    """A line that says nothing when pointed at."""
    style = {"color": colour, "width": width, "dash": dash}
    return {
        "type": "scatter",
        "mode": "lines",
        "x": list(x),
        "y": list(y),
        "line": style,
        "hoverinfo": "skip",
    }


def rate_axis(rates: Sequence[float]) -> Figure:
    """A log axis with ticks at (at most five of) the study's rates."""
    shown = rates if len(rates) <= 5 else rates[:: math.ceil(len(rates) / 5)]
    span = [math.log10(rates[0]) - 0.25, math.log10(rates[-1]) + 0.25] if rates else [-3, 0]
    ticks = {"tickvals": list(shown), "ticktext": [number(lr, 3) for lr in shown]}
    return {"type": "log", "range": span, "tickangle": 0, **ticks}


def log_axis(values: Sequence[float]) -> Figure:
    """A log axis in powers of ten with about five ticks over these values; plotly's own below two decades."""
    known = [v for v in values if v > 0]
    decades = math.log10(max(known) / min(known)) if known else 0.0
    axis: Figure = {"type": "log", "exponentformat": "power", "tickfont": {"size": 10}}
    return axis | ({"dtick": max(1, round(decades / 5))} if decades >= 2 else {"nticks": 5})


def rate_styles(rates: Sequence[float]) -> dict[float, tuple[str, str]]:
    """(colour, dash) of each rate, cold to hot: Okabe and Ito's, or cividis for more than five."""
    places = np.linspace(0, 1, len(rates)).tolist()
    if len(rates) <= len(RAMP):
        colours = [RAMP[round(x * (len(RAMP) - 1))] for x in places]
    else:
        from plotly.colors import sample_colorscale

        colours = sample_colorscale("Cividis", [0.92 * x for x in places])
    return {lr: (colours[i], DASHES[i % len(DASHES)]) for i, lr in enumerate(rates)}


def rate_key(rates: Sequence[float]) -> tuple[Key, ...]:
    """The legend of `rate_styles`."""
    styles = rate_styles(rates)
    return tuple(Key(f"lr {number(lr, 6)}", styles[lr][0], dash=styles[lr][1]) for lr in rates)
