"""The sections of a study's page as HTML. Everything that comes from a record passes through `text`."""

import html
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ablate.config import FieldClass, fields, flatten, parse
from ablate.view.arms import AXES, FOLLOWERS
from ablate.view.configs import shown
from ablate.view.facts import RunFacts
from ablate.view.figures import VERDICTS, rate_colours
from ablate.view.results import Point, Results
from ablate.view.study import reading_notes, results_table, sensitivity_table
from ablate.view.table import Table
from ablate.view.text import clean, loss, number, one_line, plural

SCALE = (
    "model.layers",
    "model.width",
    "model.context",
    "data.source",
    "data.vocab_size",
    "optim.steps",
    "optim.batch",
)
LISTED = 20  # failed runs named on the page
LOSSES = (
    "Median final held-out loss over the seeds (nats; one that is not finite counts as infinite), one "
    "sign a seed. LR sensitivity (Wortsman et al. 2023, section 2.2): mean over the rates of min(final "
    "val, loss at step 0) − the arm's best, per seed, then averaged; lower depends less on the rate. It "
    "is blind to the level of the loss."
)
RATES = (
    "one point each (seeds of a rate are set slightly apart); the line joins the medians, grey ones are "
    "the other arms'. ↑: at or above the loss at step 0, or not finite, drawn at that loss. Dashed: "
    "median loss at step 0; dotted: the unigram."
)
OUTPUTS = (
    "Output L2 (‖y‖ / √tokens) of every linear at each step, the largest over the blocks, one line an arm "
    "and rate (n = 1: its first seed), largest value of each stretch. A line ends where the output is no "
    "longer finite."
)
GROWTH = (
    "n = 1: one run beside its stable twin (same arm and seed, at the arm's best rate). Rows are linears, "
    "site by site from the first block to the last. Growth is the output L2 over the twin's at the same "
    "step, its colours span 98 % of its values; white gaps are not finite, or beyond either's last row."
)
WORDS = (
    "Departs first: the site whose output is the first to rise above twice its stable twin's for good. It "
    "tells less than it seems: o and down start near zero and move with the rate from the first step on. "
    "Grown most: the linear furthest above its twin over the last tenth; without a twin, the fastest-"
    "growing linear's rate."
)
NO_ROWS = "<p>No run has recorded outputs yet.</p>"


def heading(results: Results, study: str, command: str) -> str:
    states = Counter(r.verdict or r.state for r in results.runs)
    finished = sum(r.verdict is not None for r in results.runs)
    arms = f"{plural(len(results.arms), 'arm')} × {plural(len(results.rates), 'learning rate')}"
    lines = [
        f"<h1>{text(study)}</h1>",
        f"<p>{arms} × {plural(len(results.seeds), 'seed')}: {plural(len(results.runs), 'run')} "
        f"({text(', '.join(f'{n} {word}' for word, n in states.most_common()))})</p>",
        _settings(results.runs),
    ]
    if finished < len(results.runs):
        lines.append(_note(f"{finished} of {len(results.runs)} runs have finished: what follows is partial."))
    lines += [_note(note, command) for note in reading_notes(results, command)]
    lines.append(_failures([r for r in results.runs if r.state in ("failed", "killed")]))
    notes = dict.fromkeys(str(r.flat.get("run.notes") or "") for r in results.runs)
    lines += [f"<p>Notes: {text(note, 2000)}</p>" for note in list(notes)[:5] if note]
    return "\n".join(lines)


def _failures(failed: Sequence[RunFacts]) -> str:
    if not failed:
        return ""
    items = [
        f"<li>{text(r.slug)} ({r.run_id}), {r.state}: {text(one_line(r.reason or 'unknown'), 300)}</li>"
        for r in failed[:LISTED]
    ]
    if len(failed) > LISTED:
        items.append(f"<li>and {len(failed) - LISTED} more</li>")
    return (
        f'<div class="note bad">{plural(len(failed), "run")} failed or killed:<ul>{"".join(items)}</ul></div>'
    )


def _settings(runs: Sequence[RunFacts]) -> str:
    """What defines all runs alike: the scale in any case, and what is not the default."""
    whole = [r.flat for r in runs if r.flat]
    if not whole:
        return ""
    defaults = flatten(parse({}))
    names = [f.key for f in fields() if f.klass is FieldClass.science and f.key not in (*FOLLOWERS, *AXES)]
    shared = [k for k in names if all(flat.get(k) == whole[0].get(k) for flat in whole)]
    told = [k for k in shared if k in SCALE or whole[0].get(k) != defaults.get(k)]
    words = ", ".join(f"{k}={shown(whole[0], k)}" for k in told)
    return f'<p class="soft">All runs share {text(words, 1200)}.</p>' if told else ""


def overview(results: Results) -> str:
    """Arms × rates: median loss and one glyph a seed; sensitivity and best rate beside it."""
    sensitivity = {row[0]: row for row in sensitivity_table(results).rows}
    head = "".join(f'<th class="right">lr {number(lr, 6)}</th>' for lr in results.rates)
    rows = []
    for arm in results.arms:
        cells = {point.lr: _cell(point, results) for point in arm.points}
        middle = "".join(f'<td class="right">{cells.get(lr, "")}</td>' for lr in results.rates)
        _, best, _, total, below, above, n = sensitivity[clean(arm.name)]
        rows.append(
            f'<tr><td class="first">{text(arm.title)}</td>{middle}<td class="right">{text(best)}</td>'
            f'<td class="right" title="below best {text(below)}, above best {text(above)}, n = {text(n)}">'
            f"{text(total)}</td></tr>"
        )
    return (
        "<h2>Losses and verdicts</h2>"
        f'<div class="scroll"><table><tr><th class="first">arm</th>{head}<th class="right">best lr</th>'
        f'<th class="right">LR sensitivity</th></tr>{"".join(rows)}</table></div>{_verdict_key(results)}'
        f'<p class="soft">{LOSSES}</p>'
    )


def _cell(point: Point, results: Results) -> str:
    glyphs = []
    for run in point.runs:
        word = results.word(run)
        colour, _, glyph = VERDICTS.get(word, ("#595959", "", "·"))
        title = f"seed {text(run.seed)}: {text(word)}"
        glyphs.append(f'<span class="glyph" style="color:{colour}" title="{title}">{glyph}</span>')
    return f"{text(loss(point.median_val()))} {''.join(glyphs)}"


def _verdict_key(results: Results) -> str:
    seen = {results.word(r) for r in results.runs}
    known = [(word, *style) for word, style in VERDICTS.items() if word in seen]
    items = [
        f'<li><span style="color:{colour}">{glyph}</span> {word}</li>' for word, colour, _, glyph in known
    ]
    if seen - set(VERDICTS):
        items.append(f"<li>· {text(', '.join(sorted(seen - set(VERDICTS))))}</li>")
    return f'<ul class="key">{"".join(items)}</ul>'


def rate_section(results: Results, ids: Sequence[str]) -> str:
    panels = [_panel(name, arm.title) for name, arm in zip(ids, results.arms, strict=True)]
    finished = sum(r.verdict is not None for r in results.runs)
    return (
        f'<h2>Loss against learning rate</h2>{_verdict_key(results)}<div class="grid">{"".join(panels)}</div>'
        f'<p class="soft">{plural(finished, "finished run")}, {RATES}</p>'
    )


def output_section(results: Results, ids: Sequence[str]) -> str:
    if not ids:
        return "<h2>Output norms by site</h2>" + NO_ROWS
    colours = rate_colours(results.rates)
    key = "".join(
        f'<li><span class="swatch" style="border-color:{colours[lr]}"></span>lr {number(lr, 6)}</li>'
        for lr in results.rates
    )
    choices = "".join(f'<option value="{i}">{text(arm.title)}</option>' for i, arm in enumerate(results.arms))
    panels = "".join(_panel(name, name.removeprefix("out-")) for name in ids)
    return (
        "<h2>Output norms by site</h2>"
        f'<label>Arm: <select id="choose-arm"><option value="-1">all {len(results.arms)}'
        f'</option>{choices}</select></label><ul class="key">{key}</ul><div class="grid">{panels}</div>'
        f'<p class="soft">{OUTPUTS}</p>'
    )


def map_section(entries: Sequence[Mapping[str, Any]], first: str | None, runs: int) -> str:
    if not entries:
        return "<h2>Growth, layer by layer</h2>" + NO_ROWS
    groups: dict[str, list[str]] = {}
    for e in entries:
        mark = " selected" if e["id"] == first else ""
        option = f'<option value="{e["id"]}"{mark}>{text(e["label"])}</option>'
        groups.setdefault(str(e["arm"]), []).append(option)
    choices = "".join(f'<optgroup label="{text(arm)}">{"".join(o)}</optgroup>' for arm, o in groups.items())
    left_out = (
        f" {runs - len(entries)} of {runs} runs are left out for size or lack of rows."
        if len(entries) < runs
        else ""
    )
    panels = "".join(
        f'<div class="panel" id="panel-{name}"><h3>{title}</h3><div class="plot" id="map-{name}"></div></div>'
        for name, title in (
            ("growth", "growth: run / stable twin"),
            ("run", 'run: <span id="run-name"></span>'),
            ("twin", 'stable twin: <span id="twin-name"></span>'),
        )
    )
    return (
        f'<h2>Growth, layer by layer</h2><label>Run: <select id="choose-run">{choices}</select></label>'
        f'<p id="no-twin" hidden>This run has no stable twin, or is one.</p>'
        f'<div class="maps">{panels}</div>'
        f'<p class="soft">{GROWTH}{left_out}</p>'
    )


def table_section(results: Results) -> str:
    return (
        "<h2>Table</h2>"
        f"<details><summary>Every arm and rate</summary>{_table(results_table(results))}</details>"
        f"<details><summary>LR sensitivity in parts</summary>{_table(sensitivity_table(results))}</details>"
        f'<p class="soft">{WORDS}</p>'
    )


def _table(tab: Table) -> str:
    def cells(row: Sequence[str], tag: str) -> str:
        return "".join(
            f'<{tag} class="{"first" if i == 0 else ""}{"right" if tab.columns[i] in tab.right else ""}">'
            f"{text(cell)}</{tag}>"
            for i, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in tab.rows)
    return f'<div class="scroll"><table><tr>{cells(tab.columns, "th")}</tr>{body}</table></div>'


def _panel(name: str, title: str) -> str:
    return f'<div class="panel"><h3>{text(title)}</h3><div class="plot" id="{name}"></div></div>'


def _note(sentence: str, command: str = "") -> str:
    words = text(sentence)
    if command:
        words = words.replace(text(command), f"<code>{text(command)}</code>")
    return f'<div class="note">{words}</div>'


def text(item: object, limit: int | None = None) -> str:
    """Any text made harmless in HTML, on one line."""
    return html.escape(clean(item, limit))
