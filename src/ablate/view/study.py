"""The study's table: arm × learning rate, over the seeds."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ablate.view.facts import Arms, RunFacts
from ablate.view.table import Table, table
from ablate.view.text import as_float, loss, number, rate, rate_span

GROWTH = "growth/"  # summary keys: growth rate of each linear's output over the last window


@dataclass(frozen=True)
class Point:
    """One arm at one learning rate; `runs` are its seeds."""

    arm: str
    lr: float | None
    runs: tuple[RunFacts, ...]

    def median_val(self) -> float | None:
        """Median final validation loss over the finished seeds; one that is not finite counts as infinite."""
        finals = [r.val for r in self.runs if r.verdict is not None and r.val is not None]
        return statistics.median([x if math.isfinite(x) else math.inf for x in finals]) if finals else None

    def words(self) -> str:
        """Verdicts of the seeds, or the state of those that have none: `stable`, `2 stable, 1 diverged`."""
        words = [r.verdict or r.state for r in self.runs]
        kinds = sorted(set(words), key=lambda w: (-words.count(w), w))
        if len(words) == 1:
            return words[0]
        return ", ".join(f"{words.count(k)} {k}" for k in kinds)

    def fastest(self) -> tuple[str, float] | None:
        """The linear whose output grows fastest, over the seeds."""
        found = [f for r in self.runs if (f := fastest_growing(r.summary)) is not None]
        return max(found, key=lambda f: f[1]) if found else None


def points(runs: Sequence[RunFacts], arms: Arms) -> list[Point]:
    """The runs by arm and learning rate: arms in the order in which their values appear, rates upwards."""
    cells: dict[tuple[str, float | None], list[RunFacts]] = {}
    for run in runs:
        if run.flat:
            cells.setdefault((arms.label(run), run.lr), []).append(run)
    names = list(dict.fromkeys(arm for arm, _ in cells))
    order = sorted(cells, key=lambda c: (names.index(c[0]), -math.inf if c[1] is None else c[1]))
    return [Point(arm, lr, tuple(sorted(cells[arm, lr], key=lambda r: str(r.seed)))) for arm, lr in order]


def study_table(runs: Sequence[RunFacts], title: str | None = None) -> Table:
    """Arm × learning rate: median final validation loss with n, verdicts, fastest-growing linear."""
    rows = []
    span = min((rate_span(r.flat.get("optim.steps")) for r in runs if r.flat), default=100)
    for point in points(runs, Arms.of(runs)):
        fastest = point.fastest()
        finished = sum(r.verdict is not None for r in point.runs)
        rows.append(
            (
                point.arm,
                number(point.lr, 6),
                loss(point.median_val()),
                f"{finished}/{len(point.runs)}" if finished < len(point.runs) else str(finished),
                point.words(),
                "-" if fastest is None else f"{fastest[0]} {rate(fastest[1], span)}",
            )
        )
    return table(
        ("arm", "lr", "final val", "n", "verdict", "fastest-growing linear"),
        rows,
        title=title,
        right=("lr", "final val", "n"),
    )


def growth_rates(summary: Mapping[str, object]) -> list[tuple[str, float]]:
    """(linear, growth rate per step) from a summary, fastest first; rates that are not finite left out."""
    rates = [(k.removeprefix(GROWTH), as_float(v)) for k, v in summary.items() if k.startswith(GROWTH)]
    known = [(name, r) for name, r in rates if r is not None and math.isfinite(r)]
    return sorted(known, key=lambda pair: -pair[1])


def fastest_growing(summary: Mapping[str, object]) -> tuple[str, float] | None:
    """The fastest-growing linear of a summary, None when no growth was recorded."""
    rates = growth_rates(summary)
    return rates[0] if rates else None
