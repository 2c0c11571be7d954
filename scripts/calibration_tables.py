"""The shares as tables, for the terminal and for docs/statistics.md."""

from collections.abc import Iterable, Sequence

from ablate.stats import Response
from calibration import Null, Pool
from calibration_measures import Share

NULLS = {
    Null.placebo: "placebo: the same seeds, equal arms; the true effect is 0",
    Null.reseeded: "reseeded: other seeds, equal arms; the true effect is 0",
    Null.planted: "planted: the second arm acts as at the next higher rate",
}
EQUAL = {  # measure: heading
    "false positives: interval excludes 0": "interval excludes 0",
    "false positives: p < 0.05": "p < 0.05",
    "false positives: sign-flip test": "sign-flip",
    "false positives: sign test": "sign",
    "coverage: interval": "covers",
    "coverage: sign-flip interval": "sign-flip covers",
    "coverage: t alone": "t covers",
    "inside another study's noise-floor band": "in the band",
    "power at 1 × MDE": "finds 1 × MDE",
    "no interval (differences do not vary)": "no interval",
}
PLANTED = {"power: one step of the grid": "finds it", "coverage: interval": "covers"}
WARNINGS = {
    "warning: pooled McNemar": "McNemar of unstable cells, pooled: p < 0.05",
    "warning: pooled t": "t of the losses of all cells, pooled: p < 0.05",
    "warning: coverage of the percentile bootstrap": "percentile bootstrap of ln LR½: covers",
}
Row = tuple[str, ...]


def terminal_tables(pools: Sequence[Pool], rows: Sequence[Share]) -> str:
    """Every table, one below the other."""
    return "\n\n".join(f"{title}\n{aligned(table)}" for title, table in tables(pools, rows))


def tables(pools: Sequence[Pool], rows: Sequence[Share]) -> list[tuple[str, list[Row]]]:
    """(title, rows with the heading first) of each pool and null, and of the warnings. Shares in percent."""
    found = []
    for pool in pools:
        for null, words in NULLS.items():
            own = [r for r in rows if r.pool == pool.name and r.null is null]
            if own:
                title = f"{pool.name} ({len(pool.seeds)} seeds recorded), {words}"
                found.append((title, share_table(own, PLANTED if null is Null.planted else EQUAL)))
    return [*found, ("what the report does not use, and why", warning_table(rows))]


def share_table(rows: Sequence[Share], measures: dict[str, str]) -> list[Row]:
    """One line a response and number of seeds; the true effect where one is planted."""
    planted = any(r.effect for r in rows if r.measure in PLANTED)
    head = ("response", "n", *(("true effect",) if planted else ()), *measures.values())
    lines = [head]
    for response in Response:
        for n in sorted({r.n for r in rows}):
            own = {r.measure: r for r in rows if (r.response, r.n) == (response, n)}
            effect = (f"{next(iter(own.values())).effect:+.3f}",) if planted else ()
            lines.append((response, str(n), *effect, *(percent(own.get(m)) for m in measures)))
    return lines


def warning_table(rows: Sequence[Share]) -> list[Row]:
    """The methods that err: how far off they are, by null and number of seeds."""
    lines: list[Row] = [("method", "studies", "n", "share", "should be")]
    for measure, words in WARNINGS.items():
        lines += [
            (words, f"{r.pool}, {r.null}", str(r.n), percent(r), f"{100 * (r.nominal or 0):.0f}")
            for r in rows
            if r.measure == measure and (r.response == Response.edge or "pooled" in measure)
        ]
    return lines


def percent(row: Share | None) -> str:
    """`4.6 (3.4–6.1)`: the share in percent with its interval; `-` where nothing was counted."""
    if row is None or not row.of:
        return "-"
    return f"{100 * row.share:.1f} ({100 * row.low:.1f}–{100 * row.high:.1f})"


def aligned(lines: Iterable[Row]) -> str:
    """Columns of equal width."""
    rows = list(lines)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def markdown(lines: Iterable[Row]) -> str:
    """A table of docs/."""
    head, *rest = list(lines)
    rule = ["---"] * len(head)
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rest))
