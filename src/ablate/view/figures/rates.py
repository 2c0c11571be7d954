"""Final loss against the learning rate: one panel an arm, every seed's point, intervals from 5 seeds on."""

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from ablate.stats import Interval, capped, mean_interval
from ablate.view.facts import RunFacts
from ablate.view.figures.style import (
    FAINT,
    GLYPHS,
    INK,
    VERDICTS,
    Figure,
    Key,
    Panel,
    Plate,
    checked,
    label,
    layout,
    level,
    line,
    note,
    rate_axis,
)
from ablate.view.results import ArmResult, Results, ending, seed_of
from ablate.view.text import as_float, loss, number, plural

SPREAD = 0.35  # of the distance between two rates: how far the seeds of a rate are set apart in all
FEW_POINTS = 24  # of one panel are drawn large
CAPTION = (
    "{runs}: one point each (seeds of a rate are set slightly apart). The line joins the medians over the "
    "seeds, grey ones are the other arms'{of}. {bars} ↑: at or above the loss at step 0, or not finite, "
    "drawn at that loss. Dashed: median loss at step 0; dotted: the unigram."
)
BARS = (
    "Bars, where n ≥ 5 seeds have ended: 95 % {kind} interval of the mean over the seeds of min(final val, "
    "loss at step 0). Near the edge the seeds fall into two heaps, and the points say more than the bar."
)
NO_BARS = "Fewer than five seeds: no intervals."


def rate_plate(results: Results) -> Plate:
    """One panel an arm; those of one task share their axes."""
    marks = {arm.name: _marks(arm, results) for arm in results.arms}
    medians = {name: _medians(found) for name, found in marks.items()}
    bars = {name: _bars(found) for name, found in marks.items()}
    panels: dict[str, Panel] = {}
    for arms in _by_task(results):
        names = [arm.name for arm in arms]
        values = [m["y"] for name in names for m in marks[name]]
        values += [x for name in names for _, b in bars[name] for x in (b.low, b.high)]
        laid_out = _layout(results, arms, values)
        own = {name: medians[name] for name in names}
        for arm in arms:
            empty = {} if marks[arm.name] else {"annotations": note("no run finished yet")}
            figure = checked(_traces(arm.name, marks, own, bars[arm.name]), {**laid_out, **empty})
            panels[arm.name] = Panel(f"rate-{results.arms.index(arm)}", arm.title, figure)
    kinds = sorted({str(b.kind) for found in bars.values() for _, b in found})
    caption = CAPTION.format(
        runs=plural(sum(map(len, marks.values())), "finished run"),
        of=" of the same task" if len(results.study.tasks) > 1 else "",
        bars=BARS.format(kind=" or ".join(kinds)) if kinds else NO_BARS,
    )
    return Plate(
        "loss_against_rate",
        "Loss against learning rate",
        caption,
        tuple(panels[arm.name] for arm in results.arms),
        verdict_key(results),
    )


def _by_task(results: Results) -> list[list[ArmResult]]:
    """The arms whose losses are comparable, together."""
    found: dict[str, list[ArmResult]] = {}
    for arm in results.arms:
        found.setdefault(results.study.task_of.get(arm.name, ""), []).append(arm)
    return list(found.values())


def _layout(results: Results, arms: Sequence[ArmResult], values: Sequence[float]) -> Figure:
    """Axes over all values of these arms, with the levels of their start and of the unigram."""
    every = len(arms) == len(results.arms)
    runs = results.runs if every else [r for arm in arms for p in arm.points for r in p.runs]
    unigram, start = _common(runs, "measures/u"), _common(runs, "measures/l0")
    levels = [x for x in (unigram, start) if x is not None]
    low, high = min([*values, *levels], default=0.0), max([*values, *levels], default=1.0)
    pad = 0.08 * (high - low) or 0.1
    laid_out = layout("learning rate (log)", "final val loss, nats")
    laid_out["xaxis"] |= rate_axis(results.rates)
    laid_out["yaxis"] |= {"range": [low - pad, high + 1.6 * pad]}
    laid_out["shapes"] = [level(y, dash) for y, dash in ((unigram, "dot"), (start, "dash")) if y is not None]
    return laid_out


def verdict_key(results: Results) -> tuple[Key, ...]:
    """The marks of the verdicts that this study has."""
    seen = {results.word(r) for r in results.runs}
    return tuple(Key(word, *VERDICTS[word]) for word in VERDICTS if word in seen)


def verdict_glyph(word: str) -> tuple[str, str]:
    """(colour, character) of a verdict, or of a state while there is none."""
    if word not in VERDICTS:
        return "#595959", "·"
    colour, symbol = VERDICTS[word]
    return colour, GLYPHS[symbol]


def _marks(arm: ArmResult, results: Results) -> list[dict[str, Any]]:
    """One entry a finished run: x, y (capped), the rate itself, verdict, and whether it was capped."""
    found = []
    middle = (len(results.seeds) - 1) / 2
    apart = _closest(results.rates) ** (SPREAD / max(1, len(results.seeds)))
    for run in (r for point in arm.points for r in point.runs):
        if (end := ending(run)) is None:
            continue
        over = not end.final < end.start
        words = f"{results.word(run)}, seed {run.seed}, lr {number(end.lr, 6)}, final val {loss(end.final)}"
        found.append(
            {
                "x": end.lr * apart ** (results.seeds.index(seed_of(run)) - middle),
                "y": capped(end.final, end.start), "lr": end.lr, "word": results.word(run), "over": over,
                "text": label(f"{words} (drawn at the loss at step 0)" if over else words),
            }
        )  # fmt: skip
    return found


def _traces(
    name: str,
    marks: Mapping[str, Sequence[Mapping[str, Any]]],
    medians: Mapping[str, Sequence[tuple[float, float]]],
    bars: Sequence[tuple[float, Interval]],
) -> list[Figure]:
    others = [pair for other, found in medians.items() if other != name for pair in (*found, (None, None))]
    own = medians[name]
    size = 8 if len(marks[name]) <= FEW_POINTS else 6
    traces: list[Figure] = [
        line([x for x, _ in others], [y for _, y in others], FAINT, 1.0),
        line([x for x, _ in own], [y for _, y in own], INK, 1.6),
    ]
    if bars:
        middle = [(b.low + b.high) / 2 for _, b in bars]
        traces.append(
            {
                "type": "scatter", "mode": "markers", "x": [lr for lr, _ in bars], "y": middle,
                "marker": {"symbol": "line-ew-open", "size": 9, "color": INK}, "hoverinfo": "skip",
                "error_y": {
                    "type": "data", "array": [(b.high - b.low) / 2 for _, b in bars], "color": INK,
                    "thickness": 1.4, "width": 4,
                },
            }
        )  # fmt: skip
    for word in dict.fromkeys(m["word"] for m in marks[name]):
        chosen = [m for m in marks[name] if m["word"] == word]
        colour, symbol = VERDICTS.get(word, (INK, "circle"))
        first = {m["lr"]: m["x"] for m in reversed(chosen) if m["over"]}
        edge = 1.6 if symbol.endswith("open") else 0
        traces.append(
            {
                "type": "scatter", "mode": "markers+text", "name": word, "hoverinfo": "text",
                "x": [m["x"] for m in chosen], "y": [m["y"] for m in chosen],
                "text": ["↑" if m["x"] == first.get(m["lr"]) else "" for m in chosen],
                "textposition": "top center",
                "hovertext": [m["text"] for m in chosen],
                "marker": {
                    "color": colour, "symbol": symbol, "size": size, "line": {"width": edge, "color": colour}
                },
            }
        )  # fmt: skip
    return traces


def _closest(rates: Sequence[float]) -> float:
    """The smallest ratio of neighbouring rates; 2 for a single one."""
    return min((b / a for a, b in itertools.pairwise(rates)), default=2.0)


def _by_rate(marks: Sequence[Mapping[str, Any]]) -> dict[float, list[float]]:
    found: dict[float, list[float]] = {}
    for mark in marks:
        found.setdefault(mark["lr"], []).append(mark["y"])
    return dict(sorted(found.items()))


def _medians(marks: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    return [(lr, statistics.median(found)) for lr, found in _by_rate(marks).items()]


def _bars(marks: Sequence[Mapping[str, Any]]) -> list[tuple[float, Interval]]:
    found = [(lr, mean_interval(values)) for lr, values in _by_rate(marks).items()]
    return [(lr, interval) for lr, interval in found if interval is not None]


def _common(runs: Sequence[RunFacts], key: str) -> float | None:
    """The median of a measure over the runs: the same for all, or nearly so (l0 varies with seed and arm)."""
    known = [x for r in runs if (x := as_float(r.summary.get(key))) is not None and math.isfinite(x)]
    return statistics.median(known) if known else None
