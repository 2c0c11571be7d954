"""Forest plots of the effects, with the noise floor behind them."""

import math
from collections.abc import Sequence

from ablate.stats import Response
from ablate.view.analysis import Analysis, Row
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
    layout,
    level,
    note,
)
from ablate.view.text import number
from ablate.view.words import NAMES, UNITS, effect_words, kind_of, p_words

EDGE, BAND = PALETTE[0], "#dddddd"
ROW, LOW_ROW = 34, 24  # pixels, the second where names are short
RATIOS = [
    *(0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95), 1.0,
    *(1.05, 1.1, 1.25, 1.4, 1.6, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0),
]  # fmt: skip
TICKS = 9  # on an axis of ratios at most
MANY = 24  # contrasts of one response: beyond, interactions stand in the tables only
FOLD = 26  # characters of a row's name on one line
EFFECTS = (
    "Each row is one contrast against the first level of its factor, one number a seed, averaged over the "
    "levels of the other factors (× marks a two-way interaction: the difference of two differences). Small "
    "marks: single seeds; large: mean{bars}. n = {n} seeds. {floor}"
)
BARS = (
    ", with its 95 % {kind} interval, filled where detectable (Holm-adjusted p < 0.05 over all {tests} "
    "contrasts of this page, and beyond the noise floor where there is one)"
)
WITHIN = (
    "Each row is one difference within one model, paired by seed; nothing is averaged over models. Small "
    "marks: single seeds; large: mean{bars}. n = {n} seeds. LR½ is measured against the best loss of the "
    "model's own arms. {floor}"
)
UNLEARNED = (
    " Never learned: most runs of an arm get no further than the unigram even at its best rate; the row says "
    "nothing."
)
NO_BARS = " (fewer than 5 seeds: no interval, no test)"
FLOOR = (
    "Grey: noise floor, the band for such means where there is nothing to find (placebo arms, averaged in "
    "the same way; nominally 95 %, less with few seeds)."
)
IN_TABLES = " Interactions, and contrasts without values, stand in the tables."
NO_FLOOR = "No placebo arm in this study, so no noise floor is drawn."


def effect_plate(analysis: Analysis) -> Plate | None:
    """One panel a response; None for a study without contrasts."""
    if not analysis.rows:
        return None
    panels = [
        _effects(f"effect-{response}", response, _drawn(analysis.of_response(response)))
        for response in Response
    ]
    caption = EFFECTS.format(**_seeds_and_bars(analysis, analysis.rows))
    if any(len(_drawn(rows)) < len(rows) for rows in map(analysis.of_response, Response)):
        caption += IN_TABLES
    return Plate("effects", "Effects", caption, tuple(panels), _key(analysis, analysis.rows), wide=True)


def within_plate(analysis: Analysis) -> Plate | None:
    """Effects within each model, one panel a response that says something; None where no models differ."""
    told = [r for r in analysis.telling if r is not Response.sensitivity]
    if not any(r.effect.estimate.n for r in analysis.within):
        return None
    panels = [
        _effects(f"within-{response}", response, _drawn(analysis.within_of(response))) for response in told
    ]
    caption = WITHIN.format(**_seeds_and_bars(analysis, analysis.within))
    if any(row.unlearned for row in analysis.within):
        caption += UNLEARNED
    key = _key(analysis, analysis.within)
    return Plate("effects_within_models", "Effects within each model", caption, tuple(panels), key, wide=True)


def _seeds_and_bars(analysis: Analysis, rows: Sequence[Row]) -> dict[str, object]:
    """What a caption says of the seeds, the intervals, the tests and the noise floor."""
    estimates = [r.effect.estimate for r in rows]
    ns = sorted({e.n for e in estimates if e.n})
    kinds = sorted({kind_of(e) for e in estimates} - {"none"})
    tests = len(analysis.tested)
    return {
        "bars": BARS.format(kind=" or ".join(kinds), tests=tests) if tests else NO_BARS,
        "n": "0" if not ns else ns[0] if len(ns) == 1 else f"{ns[0]} to {ns[-1]}",
        "floor": FLOOR if analysis.placebos else NO_FLOOR,
    }


def _key(analysis: Analysis, rows: Sequence[Row]) -> tuple[Key, ...]:
    tested = any(r.holm is not None for r in rows)
    means = [
        Key("mean, detectable", EDGE, "square", "solid"),
        Key("mean, not detectable", EDGE, "square-open", "solid"),
    ]
    key = (*(means if tested else [Key("mean, not tested", EDGE, "square-open")]),
           Key("one seed", INK, "circle-open"))  # fmt: skip
    return (*key, Key("noise floor", BAND, "square")) if analysis.placebos else key


def _drawn(rows: Sequence[Row]) -> Sequence[Row]:
    """Those that have values, of many only the main effects; all where none has."""
    known = [r for r in rows if r.effect.estimate.n and (len(rows) <= MANY or r.main)]
    return known if known or len(rows) > MANY else rows


def _row_name(row: Row) -> str:
    """`gpt2: all − none` within a model where there is one such factor; else the contrast's name."""
    if not row.contrast.within:
        return folded(row.contrast.name, FOLD)
    pair = f"{row.contrast.of[0][1]} − {row.contrast.against[0][1]}"
    never = " (never learned)" if row.unlearned else ""
    return folded(f"{row.contrast.within[0][1]}: {pair}{never}", FOLD)


def _effects(name: str, response: Response, rows: Sequence[Row]) -> Panel:
    names = [_row_name(r) for r in rows]
    low = any(r.contrast.within for r in rows)
    laid_out = rows_layout(f"{NAMES[response]}: {UNITS[response]}", names, LOW_ROW if low else ROW)
    show = math.exp if response is Response.edge else float
    if response is Response.edge:
        laid_out["xaxis"] |= {"type": "log", **_ratio_ticks(rows)}
    else:
        laid_out["xaxis"] |= {"range": list(_reach(rows))}
    known = [(i, r) for i, r in enumerate(rows) if r.effect.estimate.n]
    neutral = show(0.0)
    laid_out["shapes"] = [
        *(_band(i, show(-r.floor), show(r.floor)) for i, r in known if r.floor is not None),
        level(neutral, "dot", "x"),
    ]
    if not known:
        laid_out["annotations"] = note("no seed has all of the values")
    traces: list[Figure] = [
        {
            "type": "scatter", "mode": "markers", "hoverinfo": "x",
            "x": [show(d) for _, r in known for d in r.effect.estimate.per_seed],
            "y": [i + 0.27 for i, r in known for _ in r.effect.estimate.per_seed],
            "marker": {"symbol": "circle-open", "size": 5, "color": INK, "opacity": 0.7},
        },
        *_bars(known, show, response),
    ]  # fmt: skip
    return Panel(name, NAMES[response], checked(traces, laid_out))


def _bars(known: Sequence[tuple[int, Row]], show: object, response: Response) -> list[Figure]:
    assert callable(show)
    traces: list[Figure] = []
    for i, row in known:
        interval = row.effect.estimate.interval
        if interval is not None:
            ends = [show(interval.low), show(interval.high)]
            traces.append(
                {"type": "scatter", "mode": "lines", "x": ends, "y": [i, i], "hoverinfo": "skip",
                 "line": {"color": EDGE, "width": 2}}
            )  # fmt: skip
    traces.append(
        {
            "type": "scatter", "mode": "markers", "x": [show(r.effect.estimate.mean) for _, r in known],
            "y": [i for i, _ in known], "hoverinfo": "text",
            "text": [
                label(f"{r.contrast.name}: {effect_words(response, r.effect)}, n = {r.effect.estimate.n}, "
                      f"Holm p {p_words(r.holm)}") for _, r in known
            ],
            "marker": {
                "symbol": ["square" if r.found else "square-open" for _, r in known], "size": 9,
                "color": EDGE,
                "line": {"width": 1.5, "color": EDGE},
            },
        }
    )  # fmt: skip
    return traces


def _ratio_ticks(rows: Sequence[Row]) -> Figure:
    """Ticks at ratios that people know, as far apart as the values are."""
    low, high = _reach(rows)
    inside = [
        [t for t in ticks if low <= math.log(t) <= high]
        for ticks in (RATIOS, RATIOS[::2], RATIOS[4::8], [10.0**k for k in range(-12, 13)], [1.0])
    ]
    shown = next(ticks for ticks in inside if len(ticks) <= TICKS)
    span = [low / math.log(10), high / math.log(10)]
    return {"range": span, "tickvals": shown, "ticktext": [number(t, 3) for t in shown], "tickangle": 0}


def _reach(rows: Sequence[Row]) -> tuple[float, float]:
    """From the least to the largest of what a panel draws, noise floors too, with some room."""
    ends = [0.0]
    for row in rows:
        found = row.effect.estimate
        ends += found.per_seed
        if found.interval is not None:
            ends += [found.interval.low, found.interval.high]
        ends += [row.floor, -row.floor] if row.floor is not None else []
    room = 0.06 * (max(ends) - min(ends)) or 0.1
    return min(ends) - room, max(ends) + room


def _band(row: int, low: float, high: float) -> Figure:
    return {
        "type": "rect", "xref": "x", "yref": "y", "x0": low, "x1": high, "y0": row - 0.45, "y1": row + 0.45,
        "fillcolor": BAND, "line": {"width": 0}, "layer": "below",
    }  # fmt: skip


def rows_layout(x: str, names: Sequence[str], row: int = ROW) -> Figure:
    """A panel with one named row, `row` pixels high, above the other."""
    lines = sum(1 + 0.45 * name.count("<br>") for name in names)
    laid_out = layout(x, "")
    laid_out["height"] = round(70 + row * max(2.0, lines))
    laid_out["margin"] |= {"l": 170, "r": 12}
    laid_out["yaxis"] |= {
        "range": [len(names) - 0.4, -0.6], "tickvals": list(range(len(names))), "ticktext": list(names),
        "showgrid": False, "ticks": "", "automargin": False,
    }  # fmt: skip
    return laid_out
