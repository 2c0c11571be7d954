"""The tables of the page: arms by rate with a mark for every seed, arms, effects, what was not detectable."""

from collections.abc import Iterable

from ablate.stats import INFERENCE_SEEDS, Bound, Response
from ablate.view.analysis import Analysis
from ablate.view.figures import verdict_glyph, verdict_key
from ablate.view.report.html import details, key_html, note, paragraph, section, table_html, text
from ablate.view.report.tables import (
    NAMED,
    edges_table,
    effects_table,
    floor_table,
    responses_table,
    runs_table,
    undetected_table,
    within_table,
)
from ablate.view.results import Point, Results
from ablate.view.sentences import models_of
from ablate.view.study import REPEAT, results_table
from ablate.view.text import loss, number, plural
from ablate.view.words import NAMES

LISTED = 4  # placebos named
MANY = 24  # contrasts of one response: beyond, interactions are folded
MANY_RUNS = 200  # beyond, the table of runs is folded
LOSSES = (
    "Median final held-out loss over the seeds (nats; one that is not finite counts as infinite), one mark "
    "a seed in the order of the seeds."
)
EDGES = (
    "LR½: geometric mean over the seeds with its 95 % interval ({kind}); of single seeds ≥ and ≤ mark "
    "edges beyond the rates tried, * one beyond which a higher rate trains again. LR50: fit with its "
    "interval, or the bracket between stable and unstable rates."
)
PARTS = (
    "Means over the n seeds that ran the whole grid, with 95 % intervals ({kind}). LR sensitivity = below "
    "best (undertraining) + above best (instability). Lower depends less on the rate; it is blind to the "
    "level of the loss."
)
FEW_EFFECTS = (
    "Difference against the first level, averaged over the other factors: the mean over the seeds, and that "
    f"of each seed. × between two contrasts: their interaction. Fewer than {INFERENCE_SEEDS} seeds: no "
    "interval, no test."
)
EFFECTS = (
    "Difference against the first level, one number a seed, averaged over the other factors; × between two "
    "contrasts: their interaction. Interval: {kind}; flip: that of the sign-flip test. p of the t, "
    "sign-flip and sign tests, with the least that so many pairs can reach; p Holm: over all {tests} "
    "contrasts of this page. Floor: noise floor. MDE: the least difference seen with power 0.8 (before "
    "Holm). Seeds: capped, those in which the loss at step 0 stands in for a higher or non-finite one; "
    "censored, those with an edge beyond the rates tried."
)
WORDS = (
    "Departs first: the site whose output is the first to rise above twice its stable twin's for good. It "
    "tells less than it seems: o and down start near zero and move with the rate from the first step on. "
    "Grown most: the linear furthest above its twin over the last tenth; without a twin, the "
    "fastest-growing linear's rate."
)


MEANINGS = (
    (Bound.above, "≥", "the value is at least that"),
    (Bound.below, "≤", "at most that"),
    (Bound.open, "~", "it may lie on either side"),
)
WITHIN = (
    "Each difference is taken within one model, paired by seed, and averaged over no other model. LR½ is "
    "measured against the best loss of that model's own arms (half way from there to the unigram)."
)


def tables_section(results: Results, analysis: Analysis) -> str:
    """Arm × rate, arms, effects."""
    kinds = sorted({str(i.kind) for a in analysis.arms for e in a.estimates.values() if (i := e.interval)})
    kind = " or ".join(kinds) or f"none: fewer than {INFERENCE_SEEDS} seeds"
    return section(
        "tables",
        "Tables",
        "<h3>Losses and verdicts</h3>",
        _overview(results),
        paragraph(LOSSES, soft=True),
        details(
            "Every arm and rate in words", table_html(results_table(results)) + paragraph(WORDS, soft=True)
        ),
        "<h3>Where training breaks</h3>",
        table_html(edges_table(analysis), kind="edges"),
        paragraph(EDGES.format(kind=kind), soft=True),
        "<h3>Sensitivity to the rate, and losses</h3>",
        table_html(responses_table(analysis)),
        paragraph(PARTS.format(kind=kind), soft=True),
        _effects(analysis),
    )


def within_section(analysis: Analysis, figure: str) -> str:
    """The effects within each model, which a study of several asks for; nothing for other studies."""
    if not analysis.within:
        return ""
    tests = len(analysis.tested)
    family = (
        f"Detectable: Holm-adjusted p < 0.05 over all {tests} contrasts of this page, these and the others "
        "together, and beyond the noise floor where there is one."
        if tests
        else f"Fewer than {INFERENCE_SEEDS} seeds: no interval, no test; in brackets each seed."
    )
    every = "".join(
        f"<h4>{text(NAMES[r])}</h4>{table_html(effects_table(analysis, r, rows), kind='contrasts')}"
        for r in Response
        if (rows := analysis.within_of(r))
    )
    return section(
        "within",
        within_title(analysis),
        paragraph(f"{WITHIN} {family}"),
        table_html(within_table(analysis)),
        paragraph(signs_words([r.effect.estimate.bound for r in analysis.within]), soft=True),
        figure,
        details("The same in full, and LR sensitivity", every),
    )


def within_title(analysis: Analysis) -> str:
    """`Biases, model by model`."""
    factors = list(dict.fromkeys(r.contrast.of[0][0] for r in analysis.within))
    return f"{'Biases' if factors == ['bias'] else ', '.join(factors).capitalize()}, model by model"


def signs_words(bounds: Iterable[Bound]) -> str:
    """What the signs before a number mean, those that occur; empty if none does."""
    found = set(bounds)
    words = [f"{sign}: {meaning}" for bound, sign, meaning in MEANINGS if bound in found]
    return f"{'; '.join(words)}, because some edges lie beyond the rates tried." if words else ""


def floor_section(analysis: Analysis) -> str:
    """What is seen where there is nothing to find."""
    if analysis.placebos:
        pairs = "; ".join(f"{arm} for {like}" for arm, like in analysis.placebos[:LISTED])
        more = ", …" if len(analysis.placebos) > LISTED else ""
        words = (
            f"{plural(len(analysis.placebos), 'placebo arm')}, each computing what another arm does: "
            f"{pairs}{more}. They are in no contrast."
        )
    else:
        words = (
            "There is no placebo arm (model.bias=[k] beside none, without rotary positions and QK norm), "
            "so the noise of paired effects is not known; the unpaired floor is larger and no bound for "
            "them."
        )
    few = (
        paragraph(
            f"Bands need {INFERENCE_SEEDS} seeds; with fewer the differences are only listed.", soft=True
        )
        if not analysis.infers
        else paragraph("Bands: where 95 % of the means of so many seeds lie if nothing differs.", soft=True)
    )
    return section("floor", "Noise floor", paragraph(words), table_html(floor_table(analysis)), few)


def undetected_section(analysis: Analysis, command: str) -> str:
    """Honest zeros."""
    tab = undetected_table(analysis)
    if not analysis.rows:
        words = paragraph("Nothing is compared in this study.")
    elif not analysis.infers:
        words = note(
            f"Nothing was tested: {plural(analysis.seeds, 'complete seed')}. For an answer: {command}",
            "" if command == REPEAT else command,
        )
    elif not tab.rows:
        words = paragraph("Every contrast that was tested is detectable.")
    else:
        words = paragraph(
            f"{plural(len(tab.rows), 'contrast')} that could not be told from no difference at this scale, "
            "with the least difference that would have been seen with power 0.8. No difference is shown to "
            "be zero."
        )
    return section("undetected", "What was not detectable", words, table_html(tab) if tab.rows else "")


def runs_section(results: Results) -> str:
    """Every run, to be searched and sorted."""
    tab = runs_table(results)
    search = (
        '<label class="choice">Search '
        '<input id="search" type="search" placeholder="stable, 0.01, pre, …"></label>'
        f'<span class="soft" id="found">{plural(len(tab.rows), "run")}</span>'
    )
    body = search + table_html(tab, "runs-table")
    folded = details(f"All {len(tab.rows)} runs", body) if len(tab.rows) > MANY_RUNS else body
    return section("runs", "Every run", folded)


def _overview(results: Results) -> str:
    """Arms × rates: median loss and one mark a seed."""
    head = "".join(f'<th class="right">lr {number(lr, 6)}</th>' for lr in results.rates)
    states = sorted({run.state for run in results.runs if run.verdict is None})
    waiting = paragraph(f"·: no verdict ({', '.join(states)}).", soft=True) if states else ""
    rows = []
    for arm in results.arms:
        cells = {point.lr: _cell(point, results) for point in arm.points}
        middle = "".join(f'<td class="right">{cells.get(lr, "")}</td>' for lr in results.rates)
        best = number(arm.best_lr, 6)
        rows.append(
            f'<tr><td class="first">{text(arm.title)}</td>{middle}<td class="right">{text(best)}</td></tr>'
        )
    return (
        f'{key_html(verdict_key(results))}{waiting}<div class="scroll"><table><thead><tr>'
        f'<th class="first">arm</th>{head}'
        f'<th class="right">best lr</th></tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _cell(point: Point, results: Results) -> str:
    marks = []
    for run in point.runs:
        word = results.word(run)
        colour, glyph = verdict_glyph(word)
        title = f"seed {text(run.seed)}: {text(word)}"
        marks.append(f'<span class="glyph" style="color:{colour}" title="{title}">{glyph}</span>')
    return f'{text(loss(point.median_val()))} <span class="marks">{"".join(marks)}</span>'


def _effects(analysis: Analysis) -> str:
    if not analysis.rows:
        return ""
    kinds = sorted({str(i.kind) for r in analysis.rows if (i := r.effect.estimate.interval)})
    tests = len(analysis.tested)
    words = EFFECTS.format(kind=" or ".join(kinds), tests=tests) if tests else FEW_EFFECTS
    signs = signs_words(r.effect.estimate.bound for r in analysis.rows)
    parts = [f"<h4>{text(NAMES[response])}</h4>{_contrasts(analysis, response)}" for response in Response]
    notes = [paragraph(x, soft=True) for x in (words, signs, _averaged(analysis)) if x]
    return "\n".join(["<h3>Effects</h3>", *parts, *notes])


def _averaged(analysis: Analysis) -> str:
    """Which models the means over many are of."""
    found = dict.fromkeys(models for r in analysis.rows if len(models := models_of(r)) > NAMED)
    return " ".join(f"Mean over {len(models)} models: {', '.join(models)}." for models in found)


def _contrasts(analysis: Analysis, response: Response) -> str:
    """The effects on one response; of many contrasts the interactions folded."""
    rows = analysis.of_response(response)
    if len(rows) <= MANY:
        return table_html(effects_table(analysis, response, rows), kind="contrasts")
    crossed = [r for r in rows if not r.main and r.contrast.blocks]
    mains, others = (
        table_html(effects_table(analysis, response, part), kind="contrasts")
        for part in ([r for r in rows if r.main], crossed)
    )
    gone = sum(not r.main for r in rows) - len(crossed)
    left = paragraph(f"{plural(gone, 'interaction')} without values: an arm or a seed is missing.", soft=True)
    folded = details(plural(len(crossed), "interaction"), others) if crossed else ""
    return mains + folded + (left if gone else "")
