"""What a bias does beside its weight: |Wx|, |b|, and the share of b that a LayerNorm can cancel."""

import math
import statistics
from collections.abc import Sequence

from ablate.view.curves import BiasCourse
from ablate.view.figures.style import (
    INK,
    SITES,
    Figure,
    Key,
    Panel,
    Plate,
    checked,
    label,
    layout,
    level,
    log_axis,
    rate_key,
    rate_styles,
)
from ablate.view.results import Point, Results
from ablate.view.text import as_float, number

CANCELLED = ("o", "cross_o", "down")  # the sites whose output enters the stream, where a norm may follow
LEAST_SHARE = 1e-4  # smaller shares are off the panel
CAPTION = (
    "Parts of the output's L2 on the probe steps: ‖Wx‖ / √tokens (solid) and ‖b‖ (dotted), medians over "
    "the blocks and over the seeds (n = {n} at most), no interval; colours are learning rates. A line ends "
    "where a block is not finite. The last panels show d·mean(b)² / ‖b‖²: the share of ‖b‖² in the mean "
    "direction, which is all that a LayerNorm after it can cancel, and only for o, cross_o and down "
    "(RMSNorm cancels nothing); dashed: 1/d, the share of a random b."
)


def bias_plate(results: Results) -> Plate | None:
    """Panels by site: |Wx| and |b| over the steps, then the cancellable share of o, cross_o and down.

    `meta` of a trace is its arm's place among all arms; the first arm with biases is visible.
    """
    merged = {
        (place, point.lr): courses
        for place, arm in enumerate(results.arms)
        for point in arm.points
        if point.lr is not None and (courses := _merged(point, results))
    }
    if not merged:
        return None
    first = min(place for place, _ in merged)
    sites = [s for s in SITES if any(s in courses for courses in merged.values())]
    panels = [_decomposition(site, merged, first, results) for site in sites]
    panels += [_share(site, merged, first, results) for site in sites if site in CANCELLED]
    n = max(len(p.runs) for arm in results.arms for p in arm.points)
    key = (*rate_key(results.rates), Key("|Wx|", INK, dash="solid"), Key("|b|", INK, dash="dot"))
    plain = tuple(Key(k.label, k.colour, dash="solid") if k.label.startswith("lr ") else k for k in key)
    return Plate("bias_decomposition", "Bias and weight", CAPTION.format(n=n), tuple(panels), plain)


def biased_arms(results: Results) -> list[int]:
    """Places of the arms that have anything to show here."""
    return [
        place
        for place, arm in enumerate(results.arms)
        if any(results.curves[r.run_id].biases for p in arm.points for r in p.runs)
    ]


def _decomposition(
    site: str, merged: dict[tuple[int, float], dict[str, BiasCourse]], first: int, results: Results
) -> Panel:
    colours = rate_styles(results.rates)
    traces: list[Figure] = []
    for (place, lr), courses in merged.items():
        if site in courses:
            course = courses[site]
            where = place, first, label(f"{results.arms[place].title}, lr {number(lr, 6)}")
            traces.append(_line(course.steps, course.wx, colours[lr][0], "solid", "|Wx|", where))
            traces.append(_line(course.steps, course.b, colours[lr][0], "dot", "|b|", where))
    laid_out = layout("step", "L2 (log)")
    laid_out["yaxis"] |= log_axis([y for t in traces for y in t["y"] if y])
    return Panel(f"bias-{site}", site, checked(traces, laid_out))


def _share(
    site: str, merged: dict[tuple[int, float], dict[str, BiasCourse]], first: int, results: Results
) -> Panel:
    colours = rate_styles(results.rates)
    traces = [
        _line(
            courses[site].steps, courses[site].cancellable, colours[lr][0], "solid", "share",
            (place, first, label(f"{results.arms[place].title}, lr {number(lr, 6)}")),
        )
        for (place, lr), courses in merged.items()
        if site in courses
    ]  # fmt: skip
    laid_out = layout("step", "share of ‖b‖² (log)")
    laid_out["yaxis"] |= {**log_axis([LEAST_SHARE, 1.0]), "range": [math.log10(LEAST_SHARE), 0.05]}
    widths = {as_float(r.flat.get("model.width")) for r in results.runs} - {None}
    laid_out["shapes"] = [level(1 / w, "dash") for w in sorted(w for w in widths if w)]
    return Panel(f"cancel-{site}", f"{site}: cancellable share", checked(traces, laid_out))


def _line(
    steps: Sequence[int],
    values: Sequence[float | None],
    colour: str,
    dash: str,
    what: str,
    where: tuple[int, int, str],
) -> Figure:
    place, first, name = where
    usable = [y if y is not None and y > 0 else None for y in values]
    return {
        "type": "scatter", "mode": "lines", "x": list(steps), "y": usable, "meta": place,
        "visible": place == first, "line": {"color": colour, "width": 1.4, "dash": dash},
        "text": f"{name}: {what}", "hoverinfo": "x+y+text", "name": "",
    }  # fmt: skip


def _merged(point: Point, results: Results) -> dict[str, BiasCourse]:
    """Medians over the seeds, at the steps that each seed which has the site recorded."""
    seeds = [found for r in point.runs if (found := results.curves[r.run_id].biases)]
    return {
        site: _median_course([found[site] for found in seeds if site in found])
        for site in dict.fromkeys(site for found in seeds for site in found)
    }


def _median_course(courses: Sequence[BiasCourse]) -> BiasCourse:
    steps = sorted({step for course in courses for step in course.steps})

    def middle(part: str) -> tuple[float | None, ...]:
        at: dict[int, list[float | None]] = {}
        for course in courses:
            for step, y in zip(course.steps, getattr(course, part), strict=True):
                at.setdefault(step, []).append(y)
        return tuple(_median(at[step]) for step in steps)

    return BiasCourse(tuple(steps), middle("wx"), middle("b"), middle("cancellable"))


def _median(values: Sequence[float | None]) -> float | None:
    """What is not finite counts as infinite; None when the median is."""
    found = statistics.median(math.inf if y is None else y for y in values)
    return found if math.isfinite(found) else None
