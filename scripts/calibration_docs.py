"""Section "Calibration" of docs/statistics.md and its figures, from the shares alone."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ablate.stats import Response
from calibration import ALPHA, Null, Pool
from calibration_measures import SHIFTS, Share
from calibration_tables import EQUAL, NULLS, PLANTED, markdown, percent, share_table, warning_table

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = DOCS / "statistics.md"
BEGIN, END = (
    "<!-- calibration: written by scripts/calibrate_noise_floor.py --docs -->",
    "<!-- calibration ends -->",
)
BLUE, ORANGE, GREEN, RED, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#808080"
NAMES = {
    Response.edge: "ln LR½",
    Response.sensitivity: "LR sensitivity",
    Response.unstable: "share unstable",
    Response.best_loss: "loss at the best rate",
}
DRAWN = {  # measure: label, colour, marker
    "coverage: interval": (
        "interval shown (t below 16 seeds, with bootstrap-t from 16)",
        BLUE,
        "o",
    ),
    "coverage: sign-flip interval": ("sign-flip interval", ORANGE, "s"),
    "coverage: t alone": ("t alone", GREEN, "D"),
    "warning: coverage of the percentile bootstrap": ("percentile bootstrap (not used)", RED, "x"),
}
LIMITS = """**What this does not say**

- A pool is the population here: its seeds are drawn with replacement, so what no recorded seed did never
  happens, and simulated studies share seeds. Few recorded seeds make few different differences: shares over a
  small pool are rough, whatever their interval.
- Labels are swapped within a seed by the toss of a coin, which makes the arms equal exactly. Real arms differ
  in more than a shift.
- An interval that is not there (differences that do not vary) excludes nothing, and is not counted under
  "covers".
- *planted*: "covers" asks for the mean effect over all simulated studies. Each study chooses best rates and
  ℓ\\* anew, so its own effect may be another: most so for the loss at the best rate.
- Small models, one corpus, one machine: the statistics are calibrated, not the size of anybody's noise."""


def renew(pools: Sequence[Pool], rows: Sequence[Share], studies: int) -> None:
    """Write the figures and put the section between its two marks. Raises ValueError without the marks."""
    (DOCS / "figures").mkdir(exist_ok=True)
    draw_coverage(rows, pools[0], DOCS / "figures" / "calibration_coverage.svg")
    draw_power(rows, pools[0], DOCS / "figures" / "calibration_power.svg")
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"{PAGE} has no lines {BEGIN!r} and {END!r}")
    PAGE.write_text(f"{before}{BEGIN}\n\n{section(pools, rows, studies)}\n\n{END}{after}", encoding="utf-8")


def section(pools: Sequence[Pool], rows: Sequence[Share], studies: int) -> str:
    """The section's text: what was simulated, what came out, tables, limits."""
    main = pools[0]
    parts = [
        f"`python scripts/calibrate_noise_floor.py` simulates {studies:,} studies of each kind from recorded "
        "runs whose arms are equal by construction, and analyses them with the functions that the report "
        "uses. Shares are in percent, with Clopper and Pearson's 95 % interval.",
        "The records:",
        "\n".join(
            f"- `{p.name}`: {len(p.seeds)} seeds × {len(p.rates)} rates × 2 arms; {p.about}" for p in pools
        ),
        summary(main, rows),
        f"![Coverage of the intervals by number of seeds](figures/calibration_coverage.svg)\n\n"
        f"*How often 95 % intervals cover the true effect, 0, over {studies:,} simulated studies of "
        f"`{main.name}`; bars: Clopper–Pearson. Dashed: 95 %.*",
        f"![Power by planted effect](figures/calibration_power.svg)\n\n"
        f"*How often an effect planted in {studies:,} studies of `{main.name}` (placebo) is found at "
        "p < 0.05, by its size in units of the smallest detectable effect (MDE). Dotted: 80 % at 1.*",
    ]
    for pool in pools:
        for null, words in NULLS.items():
            own = [r for r in rows if r.pool == pool.name and r.null is null]
            if own:
                table = share_table(own, PLANTED if null is Null.planted else EQUAL)
                parts += [f"**`{pool.name}`, {words}**", markdown(table)]
    return "\n\n".join(
        [*parts, "**What the report does not use, and why**", markdown(warning_table(rows)), LIMITS]
    )


def summary(pool: Pool, rows: Sequence[Share]) -> str:
    """The range of the main pool's false positive rates and coverages, in two sentences."""

    def worst(measure: str, null: Null, largest: bool) -> str:
        own = [r for r in rows if (r.pool, r.null, r.measure) == (pool.name, null, measure) and r.of]
        row = (max if largest else min)(own, key=lambda r: r.share)
        return f"{percent(row)} % ({NAMES[Response(row.response)]}, n = {row.n})"

    sentences = [
        f"{null.capitalize()}: the interval excludes 0 in at most "
        f"{worst('false positives: interval excludes 0', null, True)} of the studies and covers it in at "
        f"least {worst('coverage: interval', null, False)}; p < 0.05 in at most "
        f"{worst('false positives: p < 0.05', null, True)}, the sign-flip test in at most "
        f"{worst('false positives: sign-flip test', null, True)}."
        for null in (Null.placebo, Null.reseeded)
    ]
    return " ".join(sentences)


def draw_coverage(rows: Sequence[Share], pool: Pool, path: Path) -> None:
    """A panel each response and null: coverage against the number of seeds."""
    figure, axes = _panels(2, len(Response), (11, 5.2))
    mine = [r for r in rows if r.pool == pool.name and r.measure in DRAWN and r.of]
    sizes = sorted({r.n for r in mine})
    for line, null in zip(axes, (Null.placebo, Null.reseeded), strict=True):
        for axis, response in zip(line, Response, strict=True):
            own = [r for r in mine if (r.null, r.response) == (null, response)]
            _coverage(axis, own, sizes)
            axis.set(ylim=(0.68, 1.01), title=f"{NAMES[response]}, {null}")
            if not own:
                _note(axis, "no difference in any study")
        line[0].set_ylabel("coverage")
    for axis in axes[-1]:
        axis.set_xlabel("seeds")
    _finish(figure, axes[0][0], path)


def _coverage(axis: Any, rows: Sequence[Share], sizes: Sequence[int]) -> None:
    """Points with bars, one column of them each number of seeds."""
    for place, (measure, (label, colour, marker)) in enumerate(DRAWN.items()):
        own = [r for r in rows if r.measure == measure]
        x = [sizes.index(r.n) + 0.15 * (place - 1.5) for r in own]
        bars = [[r.share - r.low for r in own], [r.high - r.share for r in own]]
        axis.errorbar(x, [r.share for r in own], yerr=bars, fmt=marker, color=colour, label=label, ms=5)
    axis.axhline(1 - ALPHA, color=GREY, ls="--", lw=1)
    axis.set_xticks(range(len(sizes)), map(str, sizes))
    axis.set_xlim(-0.5, len(sizes) - 0.5)


def _note(axis: Any, text: str) -> None:
    axis.text(0.5, 0.5, text, transform=axis.transAxes, ha="center", color=GREY)


def draw_power(rows: Sequence[Share], pool: Pool, path: Path) -> None:
    """A panel each response: power against the planted effect, a line each number of seeds."""
    figure, axes = _panels(1, len(Response), (11, 3))
    mine = [r for r in rows if r.pool == pool.name and r.null is Null.placebo]
    sizes = sorted({r.n for r in mine})
    shades = ["#56B4E9", "#0072B2", "#009E73", "#222222"]
    for axis, response in zip(axes[0], Response, strict=True):
        for n, colour, marker in zip(sizes, shades, "osD^", strict=False):
            own = {r.measure: r.share for r in mine if (r.response, r.n) == (response, n)}
            null = own["false positives: p < 0.05"]
            y = [null, *(own.get(f"power at {k:g} × MDE", float("nan")) for k in SHIFTS)]
            axis.plot([0, *SHIFTS], y, marker=marker, color=colour, label=f"{n} seeds", ms=5, lw=1.3)
        axis.axhline(0.8, color=GREY, ls=":", lw=1)
        axis.axhline(ALPHA, color=GREY, ls=":", lw=1)
        axis.axvline(1, color=GREY, ls=":", lw=1)
        axis.set(title=NAMES[response], xlabel="planted effect / MDE", ylim=(-0.02, 1.02))
        if not any(r.response == response and "× MDE" in r.measure for r in mine):
            _note(axis, "no difference in any study")
    axes[0][0].set_ylabel("found at p < 0.05")
    _finish(figure, axes[0][0], path)


def _panels(rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, Any]:
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.rcParams.update(
        {"svg.hashsalt": "ablate", "svg.fonttype": "none", "font.size": 9, "axes.titlesize": 9}
    )
    mpl.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "font.family": "sans-serif"})
    return plt.subplots(
        rows, columns, figsize=size, squeeze=False, sharey=True, sharex=True, layout="constrained"
    )


def _finish(figure: Any, first: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    handles, labels = first.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
