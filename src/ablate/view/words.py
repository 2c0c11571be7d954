"""Responses and their differences as people read them: ratios for edges, nats for losses."""

import math

from ablate.stats import Bound, Effect, Estimate, Interval, Response
from ablate.view.text import number

NAMES = {
    Response.edge: "LR½",
    Response.sensitivity: "LR sensitivity",
    Response.unstable: "share unstable",
    Response.best_loss: "loss at best lr",
}
UNITS = {
    Response.edge: "ratio of learning rates",
    Response.sensitivity: "nats",
    Response.unstable: "share of the rates",
    Response.best_loss: "nats",
}
SIGNS = {Bound.exact: "", Bound.above: "≥ ", Bound.below: "≤ ", Bound.open: "~ ", Bound.missing: ""}
SURE = 1e-3  # p below it is printed so


def amount(response: Response, x: float) -> str:
    """A response of an arm: a learning rate for the edge (`x` is its log), else three decimals."""
    if not math.isfinite(x):
        return "-" if math.isnan(x) else number(x)
    if response is Response.edge:
        return number(math.exp(x), 3)
    return f"{x:.3f}"


def change(response: Response, x: float) -> str:
    """A difference between arms: a factor for the edge (`x` is its log), else signed with three decimals."""
    if math.isnan(x):
        return "-"
    if response is Response.edge:
        return f"×{_ratio(x)}"
    return f"{x:+.3f}".replace("-", "−") if round(x, 3) else "0.000"


def size(response: Response, x: float | None) -> str:
    """How large a difference is, without its direction: `×1.13`, `0.020`."""
    if x is None or math.isnan(x):
        return "-"
    return f"×{_ratio(x)}" if response is Response.edge else f"{x:.3f}"


def span(response: Response, interval: Interval | None, difference: bool) -> str:
    """`[0.98, 1.27]`; `-` where there is none."""
    if interval is None:
        return "-"
    say = change if difference else amount
    low, high = (say(response, x).replace("×", "") for x in (interval.low, interval.high))
    return f"[{low}, {high}]"


def estimated(response: Response, found: Estimate) -> str:
    """An arm's mean with its interval, or the mean alone below 5 seeds; ≥ or ≤ where edges are censored."""
    if not found.n:
        return "-"
    middle = f"{SIGNS[found.bound]}{amount(response, found.mean)}"
    return middle if found.interval is None else f"{middle} {span(response, found.interval, False)}"


def effect_words(response: Response, effect: Effect) -> str:
    """A difference with its interval."""
    found = effect.estimate
    if not found.n:
        return "-"
    middle = f"{SIGNS[found.bound]}{change(response, found.mean)}"
    return middle if found.interval is None else f"{middle} {span(response, found.interval, True)}"


def kind_of(found: Estimate) -> str:
    """The kind of the interval; `none` where there is none."""
    return "none" if found.interval is None else str(found.interval.kind)


def p_words(p: float | None) -> str:
    """`< 0.001`, `0.031`; `-` for none."""
    if p is None or math.isnan(p):
        return "-"
    return "< 0.001" if p < SURE else f"{p:.3f}"


def _ratio(log: float) -> str:
    """Three digits, trailing zeros kept: `1.20`."""
    return f"{math.exp(max(-700.0, min(log, 700.0))):#.3g}".rstrip(".")
