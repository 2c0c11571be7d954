"""The course of a run, and a closer look at the steps around one of them.

Legend: R rows, C columns.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ablate.config import UserError
from ablate.record import Run, Series
from ablate.verdict import growth_rate
from ablate.view.results import GROWTH, growth_rates
from ablate.view.table import Table, table
from ablate.view.text import loss, number, plural, rate, rate_span, sparkline

FASTEST = 8  # linears in the table of growth
ROWS = 11  # probe rows shown around a step
BARS_WIDE = 34  # the course and its numbers fit into 80 characters
LEAST_WINDOW, SHARE = 5, 20  # of the growth up to a step: a twentieth of the rows before it
OUT = "out/"
# Heading, first word of the columns, their ending; of several layers the largest is shown.
PROBES = (
    ("attn logit", "attn/", "_max_logit"),
    ("resid max", "resid/", "_max"),
    ("logit max", "logit/max", ""),
    ("log Z", "logit/logz", ""),
    ("update", "update/", ""),
)


def fastest_table(run: Run, planned: object, step: int | None) -> Table:
    """The linears whose outputs grow fastest: over the last window, or over that up to `step`.

    `planned`: the steps of the whole run, as its configuration has them.
    """
    growth, window = growth_around(run, step)
    span = rate_span(planned)
    where = "over the last window" if step is None else f"over the {plural(window, 'step')} up to step {step}"
    rows = [(name, rate(slope, span)) for name, slope in growth[:FASTEST]]
    return table(("linear", "output growth"), rows, title=f"fastest-growing linears, {where}")


def growth_around(run: Run, step: int | None) -> tuple[list[tuple[str, float]], int]:
    """(linear, growth rate per step), fastest first, and the window in rows (0: as the summary has it)."""
    if step is None:
        return growth_rates(run.summary or {}), 0
    series = run.series()
    end = int(np.searchsorted(series.steps, step, side="right"))
    window = max(LEAST_WINDOW, end // SHARE)
    names = [name for name in series.columns if name.startswith(OUT)]
    found = {
        GROWTH + name.removeprefix(OUT): growth_rate(series.column(name)[max(0, end - window) : end], window)
        for name in names
    }
    return growth_rates(found), window


def course_table(run: Run, fastest: str | None) -> Table | None:
    """Training loss, held-out loss, gradient norm and the fastest-growing output as lines of bars."""
    series, val = run.series(), run.series("val")
    if not len(series):
        return None
    rows = [_course("train loss", series, "train/loss", loss), _course("val", val, "val/loss", loss)]
    rows.append(_course("grad norm, log", series, "grad/norm", number))
    if fastest is not None:
        rows.append(_course(f"|{fastest}|, log", series, OUT + fastest, number))
    return table(
        ("of", "course", "first", "last", "largest"),
        [row for row in rows if row is not None],
        title="course",
        right=("first", "last", "largest"),
    )


def _course(name: str, series: Series, column: str, words: Callable[[object], str]) -> tuple[str, ...] | None:
    if not len(series) or column not in series.columns:
        return None
    values_R = series.column(column)
    drawn_R = values_R
    if name.endswith("log"):
        with np.errstate(all="ignore"):
            drawn_R = np.log(values_R)
    ends = (values_R[0], values_R[-1], np.max(values_R))
    return (name, sparkline(drawn_R.tolist(), BARS_WIDE), *(words(float(x)) for x in ends))


def check_step(run: Run, step: int) -> None:
    """Raise UserError for a step of which nothing is recorded."""
    steps = run.series().steps
    if not len(steps) or not steps[0] <= step <= steps[-1]:
        allowed = f"{steps[0]} … {steps[-1]}, the recorded steps" if len(steps) else "no step is recorded"
        raise UserError(f"--step {step}", allowed=allowed)


def probes_table(run: Run, step: int, linears: list[str]) -> Table | None:
    """The probe rows nearest to a step: the largest value over the layers of each kind, and some outputs."""
    series, probe = run.series(), run.series("probe")
    if not len(probe):
        return None
    steps_R = probe.steps
    start = max(0, min(int(np.searchsorted(steps_R, step)) - ROWS // 2, len(steps_R) - ROWS))
    chosen = range(start, min(len(steps_R), start + ROWS))
    columns = [("loss", series, ["train/loss"]), ("grad norm", series, ["grad/norm"])]
    columns += [(name, probe, _like(probe, first, end)) for name, first, end in PROBES]
    columns += [(f"|{name}|", series, [OUT + name]) for name in linears]
    present = [(name, of, keys) for name, of, keys in columns if keys and set(keys) <= set(of.columns)]
    rows = [
        [str(steps_R[row]), *(_largest(of, int(steps_R[row]), keys) for _, of, keys in present)]
        for row in chosen
    ]
    headings = ["step", *(name for name, _, _ in present)]
    title = f"around step {step} (the largest over the layers; docs/metrics.md)"
    return table(headings, rows, title=title, right=headings)


def _like(series: Series, first: str, end: str) -> list[str]:
    return [name for name in series.columns if name.startswith(first) and name.endswith(end)]


def _largest(series: Series, step: int, keys: list[str]) -> str:
    place = int(np.searchsorted(series.steps, step))
    if place >= len(series) or series.steps[place] != step:
        return "-"
    values: Any = [series.column(key)[place] for key in keys]
    return number(float(np.max(values)), 4)
