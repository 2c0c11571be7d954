"""The report's tables as text: arms, effects, noise floor, what could be seen, every run."""

from collections.abc import Sequence

from ablate.stats import JOINED, Bound, Edge, Lr50, PValue, Response
from ablate.view.analysis import Analysis, ArmAnswer, Row
from ablate.view.results import MODEL, Results
from ablate.view.sentences import models_of
from ablate.view.table import Table, table
from ablate.view.text import as_float, loss, number, plural
from ablate.view.words import NAMES, SIGNS, change, effect_words, estimated, p_words, size, span

TOLD = 160  # characters of a run's reasons
NAMED = 3  # models that a contrast is averaged over, in its row
WITHIN = "Effects within each model"


def edges_table(analysis: Analysis) -> Table:
    """One row an arm: best rate, LR½ over the seeds and of each, LR50."""
    rows = [
        (
            a.arm.title,
            _best(a),
            estimated(Response.edge, a.estimates[Response.edge]),
            str(a.estimates[Response.edge].n),
            _lr50(a.lr50),
            " · ".join(_edge(e) for e in a.edges.values()),
        )
        for a in analysis.arms
    ]
    return table(
        ("arm", "best lr", "LR½", "n", "LR50", "LR½ of each seed"),
        rows,
        title="Edges",
        right=("best lr", "n"),
    )


def responses_table(analysis: Analysis) -> Table:
    """One row an arm: LR sensitivity with its parts, share unstable, loss at the best rate."""
    rows = [
        (
            a.arm.title,
            estimated(Response.sensitivity, a.estimates[Response.sensitivity]),
            *(_part(a, part) for part in ("below", "above")),
            estimated(Response.unstable, a.estimates[Response.unstable]),
            estimated(Response.best_loss, a.estimates[Response.best_loss]),
            _counts(a),
        )
        for a in analysis.arms
    ]
    columns = (
        "arm", "LR sensitivity", "below best", "above best", "share unstable", "loss at best lr", "n",
    )  # fmt: skip
    return table(columns, rows, title="Sensitivity and losses", right=columns[1:])


def effects_table(analysis: Analysis, response: Response, chosen: Sequence[Row] | None = None) -> Table:
    """All or the chosen contrasts of one response with interval, tests and attainable levels, Holm's p, MDE
    and floor.

    Without intervals (too few seeds) with the difference in every seed instead. Where whole models are
    compared, with what each contrast is averaged over.
    """
    chosen = analysis.of_response(response) if chosen is None else chosen
    models = any(name == MODEL for r in chosen for name, _ in r.contrast.of)
    rows = [
        (
            r.contrast.name,
            effect_words(response, r.effect),
            "yes" if r.found else "no" if r.holm is not None else "-",
            span(response, r.effect.flip_interval, True),
            "" if analysis.infers else _each(response, r),
            _over(r) if models else "",
            str(r.effect.estimate.n),
            p_words(None if r.effect.t is None else r.effect.t.p),
            _tested(r.effect.flip),
            _tested(r.effect.sign),
            p_words(r.holm),
            size(response, r.effect.mde),
            size(response, r.floor),
            _remarks(r),
        )
        for r in chosen
    ]
    columns = (
        "contrast", "effect, 95 %" if analysis.infers else "effect", "detectable", "flip 95 %", "each seed",
        "mean over", "n", "p t", "p flip (least)", "p sign (least)", "p Holm", "MDE", "floor", "seeds",
    )  # fmt: skip
    return _without_empty(table(columns, rows, title=f"Effects on {NAMES[response]}", right=columns[6:13]))


def within_table(analysis: Analysis) -> Table:
    """The effects within each model, one row a pair of levels, with the measures that say something.

    With few seeds the difference in every seed; else the interval, and in which measures it is detectable.
    """
    told = [r for r in analysis.telling if r is not Response.sensitivity]
    several = len({r.contrast.of[0][0] for r in analysis.within}) > 1
    found: dict[tuple[str, str], dict[Response, Row]] = {}
    for row in analysis.within:
        what = row.contrast.name.removesuffix(in_model(row))
        what = what if several else what.partition(": ")[2]
        found.setdefault((models_of(row)[0], what), {})[row.contrast.response] = row
    rows = []
    for (model, what), by in found.items():
        n = {by[r].effect.estimate.n for r in told}
        seen = ", ".join(NAMES[r] for r in told if by[r].found)
        tested = any(by[r].holm is not None for r in told)
        remarks = [_never(by[told[0]]), *([_remarks(by[told[0]])] if _remarks(by[told[0]]) != "-" else [])]
        rows.append(
            (
                model, what, *(_difference(by[r], analysis) for r in told),
                " / ".join(map(str, sorted(n))), (seen or "no") if tested else "-",
                "; ".join(filter(None, remarks)) or "-",
            )
        )  # fmt: skip
    names = [NAMES[r] for r in told]
    columns = ("model", "difference", *names, "n", "detectable", "remarks")
    return _without_empty(table(columns, rows, title=WITHIN, right=(*names, "n")))


def in_model(row: Row) -> str:
    """The end of the name of an effect within one model."""
    return f" in {', '.join(level for _, level in row.contrast.within)}" if row.contrast.within else ""


def _difference(row: Row, analysis: Analysis) -> str:
    """`×1.25 [1.1, 1.4]`; with few seeds `×1.25 (×1.20 · ×1.30)`."""
    response, found = row.contrast.response, row.effect.estimate
    words = effect_words(response, row.effect)
    if analysis.infers or found.n < 2:
        return words
    return f"{words} ({' · '.join(change(response, x) for x in found.per_seed)})"


def _never(row: Row) -> str:
    return f"says nothing: {plural(len(row.unlearned), 'arm')} never learned" if row.unlearned else ""


def floor_table(analysis: Analysis) -> Table:
    """Placebo pairs seed by seed, then the floors of contrasts, then disjoint seeds."""
    rows: list[tuple[object, ...]] = []
    for response, floors in analysis.floors.items():
        for arm, like, effect in floors.pairs:
            found = effect.estimate
            rows.append(
                (
                    NAMES[response], f"{arm} against {like}", found.n, effect_words(response, effect),
                    size(response, max(map(abs, found.per_seed), default=None)),
                    " · ".join(change(response, d) for d in found.per_seed),
                )
            )  # fmt: skip
        paired = [
            (f"placebo, {what}{f' ({task})' if task else ''}", floor)
            for what, by_task in (("main effects", floors.main), ("interactions", floors.interaction))
            for task, floor in by_task.items()
        ]
        for name, floor in paired:
            if floor.n and analysis.infers:
                band = size(response, floor.band(analysis.seeds))
                rows.append(
                    (NAMES[response], name, floor.n, f"band {band}", size(response, floor.largest), "")
                )
        floor = floors.unpaired
        enough = floor.n and analysis.infers
        band = f"band {size(response, floor.band(analysis.seeds))}" if enough else "-"
        largest = size(response, floor.largest)
        rows.append(
            (NAMES[response], "disjoint seeds of the first arm (unpaired)", floor.n, band, largest, "")
        )
    middle = "mean [95 %] or band" if analysis.infers else "mean"
    columns = ("measure", "what", "n", middle, "largest", "each seed")
    return table(columns, rows, title="Noise floor", right=("n",))


def undetected_table(analysis: Analysis) -> Table:
    """Contrasts that are not detectable: the interval and the least difference that would have been seen."""
    rows = [
        (
            NAMES[r.contrast.response],
            r.contrast.name,
            effect_words(r.contrast.response, r.effect),
            r.effect.estimate.n,
            size(r.contrast.response, r.effect.mde),
            size(r.contrast.response, r.floor),
        )
        for r in analysis.tested
        if not r.found
    ]
    columns = ("measure", "contrast", "effect, 95 %", "n", "could have been seen", "noise floor")
    return table(columns, rows, title="Not detectable", right=columns[3:])


def runs_table(results: Results) -> Table:
    """Every run: verdict and why, folder, and the command that trains it again."""
    arm_of = {r.run_id: a.title for a in results.arms for p in a.points for r in p.runs}
    left_out = {r.folder: why for r, why in results.left_out}
    rows = []
    for run in (*results.runs, *(r for r, _ in results.left_out)):
        reasons = run.summary.get("reasons")
        why = "; ".join(map(str, reasons)) if isinstance(reasons, list) else run.reason or ""
        if run.folder in left_out:
            why = f"left out: {left_out[run.folder]}; {why}"
        rows.append(
            (
                "-" if run.folder in left_out else arm_of.get(run.run_id, "-"), number(run.lr, 6), run.seed,
                results.word(run), loss(as_float(run.val)), why if len(why) <= TOLD else f"{why[:TOLD]}…",
                f"{run.study}/{run.folder.name}", f"ablate rerun {run.study}/{run.run_id}",
            )
        )  # fmt: skip
    columns = ("arm", "lr", "seed", "verdict", "final val", "why", "folder", "again")
    return table(columns, rows, title="Every run", right=("lr", "seed", "final val"))


def _each(response: Response, row: Row) -> str:
    """`0: ×1.20 · 1: ×1.10`: the difference in every seed."""
    found = row.effect.estimate
    pairs = zip(found.seeds, found.per_seed, strict=True)
    return " · ".join(f"{seed}: {change(response, x)}" for seed, x in pairs)


def _best(a: ArmAnswer) -> str:
    nothing = "no rate trains" if a.sensitivities else "-"
    return nothing if a.arm.best_lr is None else number(a.arm.best_lr, 6)


def _edge(edge: Edge) -> str:
    if edge.bound is Bound.missing:
        return "-"
    return f"{SIGNS[edge.bound]}{number(edge.lr, 3)}{'' if edge.monotone else '*'}"


def _lr50(found: Lr50) -> str:
    if found.bound is Bound.missing:
        return "-"
    if found.bound is not Bound.exact:
        return f"{'>' if found.bound is Bound.above else '<'} {number(found.lr, 3)}"
    if found.bracket is not None:
        return f"between {number(found.bracket[0], 3)} and {number(found.bracket[1], 3)}"
    interval = found.interval
    return number(found.lr, 3) + (
        f" [{number(interval.low, 3)}, {number(interval.high, 3)}]" if interval is not None else ""
    )


def _part(a: ArmAnswer, part: str) -> str:
    values = [getattr(s, part) for s in a.sensitivities.values()]
    return loss(sum(values) / len(values)) if values else "-"


def _counts(a: ArmAnswer) -> str:
    """n of the three responses; one number where they agree."""
    ns = [a.estimates[r].n for r in (Response.sensitivity, Response.unstable, Response.best_loss)]
    return str(ns[0]) if len(set(ns)) == 1 else " / ".join(map(str, ns))


def _over(row: Row) -> str:
    """The blocks that a contrast is averaged over: `gpt2, llama`; several factors' levels joined; of many
    their number.
    """
    names = [name for block in row.contrast.blocks if (name := " ".join(level for _, level in block))]
    models = models_of(row)
    if len(names) <= NAMED:
        return ", ".join(names) or "-"
    return f"{len(models)} models" if len(models) == len(names) else f"{len(names)} combinations"


def _tested(found: PValue | None) -> str:
    return "-" if found is None else f"{p_words(found.p)} ({p_words(found.attainable)})"


def _remarks(row: Row) -> str:
    """Counts of what was capped, censored or left out; the exported tables have the seeds."""
    found = row.effect.estimate
    counts = ((found.n_capped, "capped"), (found.n_censored, "censored"), (found.n_missing, "left out"))
    words = [f"{n} {what}" for n, what in counts if n]
    words += (
        [f"{plural(len(row.unlearned), 'arm')} never learned"]
        if row.unlearned and not row.contrast.within
        else []
    )
    gone = [why for why in row.contrast.left_out if ": no arm " not in why or not _of_models(row)]
    blocks = len(gone)
    return ", ".join([*words, *([f"{plural(blocks, 'block')} left out"] if blocks else [])]) or "-"


def _of_models(row: Row) -> bool:
    """Are whole models in it? A level that only some of them have is no gap: `mean over` says which."""
    places = (row.contrast.of, *row.contrast.blocks)
    return any(MODEL in name.split(JOINED) for place in places for name, _ in place)


def _without_empty(tab: Table) -> Table:
    """The table without columns in which nothing stands, the first one kept."""
    kept = [
        i
        for i, name in enumerate(tab.columns)
        if i == 0 or any(cell not in ("", "-") for cell in tab.column(name))
    ]
    rows = [[row[i] for i in kept] for row in tab.rows]
    return table([tab.columns[i] for i in kept], rows, title=tab.title, right=tab.right)
