"""Words and numbers as people read them; hostile text made harmless."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

BARS = "▁▂▃▄▅▆▇█"
Rank = tuple[int, float, str]


def clean(text: object, limit: int | None = None) -> str:
    """One printable line: control characters become escapes, text beyond `limit` an ellipsis."""
    line = str(text)
    if not line.isprintable():
        line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
    if limit is not None and len(line) > limit:
        return line[: limit - 1] + "…"
    return line


def one_line(text: str) -> str:
    """Several lines joined by `; `."""
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())


def value(item: object) -> str:
    """A configuration value as one would type it: `null`, `true`, `0.003`, `[q,k]`."""
    if item is None:
        return "null"
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, float):
        return f"{item:.12g}"
    if isinstance(item, list | tuple):
        return "[" + ",".join(value(part) for part in item) + "]"
    return str(item)


def number(x: object, digits: int = 4) -> str:
    """A measure to `digits` significant digits; `-` when absent. Records hold NaN as a string."""
    if x is None:
        return "-"
    if isinstance(x, str):
        try:
            x = float(x)
        except ValueError:
            return clean(x)
    if isinstance(x, bool) or not isinstance(x, int | float):
        return clean(x)
    if isinstance(x, int):
        return str(x)
    return f"{x:.{digits}g}"


def loss(x: object) -> str:
    """A loss in nats with three decimals, or as `number` beyond 1000 or when not finite."""
    known = as_float(x)
    if known is None:
        return "-"
    return f"{known:.3f}" if math.isfinite(known) and abs(known) < 1000 else number(known)


def as_float(x: object) -> float | None:
    """The number behind a record's value (NaN and infinities are strings there), else None."""
    if isinstance(x, bool) or not isinstance(x, int | float | str):
        return None
    try:
        return float(x)
    except ValueError:
        return None


def as_mapping(x: object) -> Mapping[str, Any]:
    """A part of a record that holds others by name; empty where something else stands in its place."""
    return x if isinstance(x, Mapping) else {}


def rank(item: object) -> Rank:
    """Sorts mixed values: numbers by size (NaN last), then words, then what is absent."""
    known = as_float(item)
    if known is not None:
        return (0, known, "") if not math.isnan(known) else (1, 0.0, "")
    return (3, 0.0, "") if item is None else (2, 0.0, str(item))


def duration(seconds: float) -> str:
    """`8 s`, `3 min 20 s`, `2 h 05 min`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 run`, `2 runs`."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def rate(growth: float, steps: int = 100) -> str:
    """A growth rate (slope of the log per step) as a factor over `steps` steps: `×1.8/100 steps`."""
    exponent = growth * steps
    if not math.isfinite(exponent):
        return number(exponent)
    factor = math.exp(min(exponent, 700.0))
    shown = f"{factor:.2f}" if 0.01 <= factor < 10 else f"{factor:.3g}"
    return f"×{shown}/{steps} steps"


def rate_span(planned: object) -> int:
    """Steps over which a run's growth rates are given: 100, or 10 for short runs."""
    return 100 if isinstance(planned, int) and planned >= 200 else 10


def sparkline(values: Sequence[float], width: int = 40) -> str:
    """The course of a series in at most `width` characters; `×` where nothing finite stands."""
    largest = max((abs(x) for x in values if math.isfinite(x)), default=0.0) or 1.0
    buckets = _buckets([x / largest for x in values], width)  # within ±1, where nothing overflows
    finite = [x for x in buckets if x is not None]
    if not finite:
        return "×" * len(buckets)
    low = min(finite)
    span = (max(finite) - low) or 1.0
    return "".join("×" if x is None else BARS[round((x - low) / span * (len(BARS) - 1))] for x in buckets)


def _buckets(values: Sequence[float], width: int) -> list[float | None]:
    count = min(width, len(values))
    edges = [round(i * len(values) / count) for i in range(count + 1)] if count else [0]
    return [_mean(values[a:b]) for a, b in itertools.pairwise(edges)]


def _mean(values: Iterable[float]) -> float | None:
    finite = [x for x in map(float, values) if math.isfinite(x)]
    return sum(finite) / len(finite) if finite else None
