"""A figure of the page as one picture: its panels on a grid, with titles and a legend."""

import math
from collections.abc import Sequence

from ablate.view.figures.style import INK, Figure, Key, Panel, Plate, checked, folded, label

COLUMNS, PANEL_WIDTH, PANEL_HEIGHT = 3, 340, 260
TITLE, FOOT = 16, 46  # pixels of a line of a panel's title, and below a panel for its axis
FOLD = 38  # characters of a title's line


def composed(plate: Plate) -> Figure:
    """The whole plate as one plotly figure with a size; traces that are hidden on the page are left out."""
    columns = 1 if plate.wide else min(COLUMNS, len(plate.panels))
    rows = math.ceil(len(plate.panels) / columns)
    heights = [_height(plate.panels[i * columns : (i + 1) * columns]) for i in range(rows)]
    title = 14 + TITLE * max(1 + folded(p.title, FOLD).count("<br>") for p in plate.panels)
    total = sum(heights) + title * rows + (20 * math.ceil(len(plate.key) / 5) + 8 if plate.key else 0)
    width = 760 if plate.wide else max(480, PANEL_WIDTH * columns)
    layout: Figure = {
        "template": "none", "paper_bgcolor": "white", "plot_bgcolor": "white", "width": width,
        "height": total,
        "font": plate.panels[0].figure["layout"]["font"], "shapes": [], "annotations": [],
        "margin": {"l": 8, "r": 8, "t": 4, "b": 8}, "showlegend": bool(plate.key),
        "legend": {"orientation": "h", "x": 0, "y": 0, "yanchor": "bottom", "xanchor": "left",
                   "yref": "container", "font": {"size": 11}},
    }  # fmt: skip
    traces: list[Figure] = [_legend_trace(key) for key in plate.key]
    top = total - 4
    for row, height in enumerate(heights):
        top -= title
        for column, panel in enumerate(plate.panels[row * columns : (row + 1) * columns]):
            place = row * columns + column + 1
            left = 0.0 if columns == 1 else column / columns
            gap = panel.figure["layout"]["margin"]["l"] / width
            box = (
                left + gap + 0.01, left + 1 / columns - 0.015,
                (top - height + FOOT) / total, top / total,
            )  # fmt: skip
            traces += _placed(panel, place, box, layout)
        top -= height
    return checked(traces, layout)


def _height(panels: Sequence[Panel]) -> int:
    return max(int(p.figure["layout"].get("height") or PANEL_HEIGHT) for p in panels)


def _placed(panel: Panel, place: int, box: tuple[float, float, float, float], layout: Figure) -> list[Figure]:
    """The panel's traces on axes of their own, which the layout gets together with shapes and title."""
    suffix = "" if place == 1 else str(place)
    left, right, bottom, top = box
    title = folded(panel.title, FOLD)
    own = panel.figure["layout"]
    layout[f"xaxis{suffix}"] = {**own["xaxis"], "domain": [left, right], "anchor": f"y{suffix}"}
    layout[f"yaxis{suffix}"] = {**own["yaxis"], "domain": [bottom, top], "anchor": f"x{suffix}"}
    layout[f"yaxis{suffix}"] |= {"automargin": False}
    layout["shapes"] += [_moved(shape, suffix) for shape in own.get("shapes", ())]
    layout["annotations"] += [_moved(one, suffix) for one in own.get("annotations", ())]
    layout["annotations"].append(
        {
            "text": f"<b>{title}</b>", "showarrow": False, "xref": "paper", "yref": "paper",
            "x": left, "y": top, "xanchor": "left", "yanchor": "bottom", "font": {"size": 11},
            "align": "left",
        }
    )  # fmt: skip
    shown = [trace for trace in panel.figure["data"] if trace.get("visible", True)]
    return [{**t, "xaxis": f"x{suffix}", "yaxis": f"y{suffix}", "showlegend": False} for t in shown]


def _moved(item: Figure, suffix: str) -> Figure:
    refs = {}
    for axis in ("x", "y"):
        paper = item.get(f"{axis}ref") == "paper"
        refs[f"{axis}ref"] = f"{axis}{suffix} domain" if paper else f"{axis}{suffix}"
    return {**item, **refs}


def _legend_trace(key: Key) -> Figure:
    mode = "+".join(
        word for word, used in (("lines", key.dash is not None), ("markers", key.symbol is not None)) if used
    )
    trace: Figure = {
        "type": "scatter", "x": [None], "y": [None], "name": label(key.label), "mode": mode or "markers",
    }  # fmt: skip
    if key.dash is not None:
        trace["line"] = {"color": key.colour or INK, "dash": key.dash, "width": 2}
    if key.symbol is not None:
        trace["marker"] = {"color": key.colour, "symbol": key.symbol, "size": 8}
    return trace
