"""A study's page: one HTML file with its table, its figures and plotly.js inside; it asks the network for nothing."""

import html
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ablate import __version__
from ablate.config import UserError, flatten, parse
from ablate.record import find_runs, find_studies, read_json
from ablate.view.configs import shown
from ablate.view.facts import RunFacts, read_facts
from ablate.view.figures import VERDICTS, growth_maps, map_figures, output_figures, rate_colours, rate_figures
from ablate.view.results import ArmResult, Point, Results
from ablate.view.study import answer_command, reading_notes, results_table, sensitivity_table
from ablate.view.table import Table
from ablate.view.text import clean, loss, number, one_line, plural

PAGE = "index.html"
HERE = Path(__file__).parent
# Whatever a name or a note may contain: the browser refuses every request and every script from elsewhere.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"


def write_report(root: Path, study: str) -> Path:
    """Write `<root>/<study>/index.html` from all runs of the study; the path.

    Raises UserError for a study without runs.
    """
    runs = study_runs(root, study)
    if not runs:
        known = ", ".join(find_studies(root)) or "none"
        raise UserError(f"no runs of a study {study!r} below {root}", allowed=known, hint="ablate ls")
    home = runs[0].folder.path.parent
    target = home / PAGE
    text = report_page(Results.of(runs), study, answer_command(home, study))
    draft = home / f".{PAGE}.{os.getpid()}"
    draft.write_text(text, encoding="utf-8")
    draft.replace(target)
    return target


def study_runs(root: Path, study: str) -> list[RunFacts]:
    """The facts of every run of a study, in the order in which sweeps asked for them."""
    folders = find_runs(root, study)
    order: dict[str, int] = {}
    for request in sorted((root / study / "requests").glob("*.json")):
        for run_id in _requested(request):
            order.setdefault(run_id, len(order))
    return [read_facts(f) for f in sorted(folders, key=lambda f: order.get(f.id, len(order)))]


def report_page(results: Results, study: str, command: str) -> str:
    """The page as text. `command` asks for more seeds."""
    from plotly.offline import get_plotlyjs

    rates = {f"rate-{i}": figure for i, figure in enumerate(rate_figures(results))}
    outputs = {f"out-{site}": figure for site, figure in output_figures(results).items()}
    entries, first = growth_maps(results)
    data = {"rates": rates, "outputs": outputs, "maps": {"runs": entries, "figures": map_figures()}}
    body = [
        _head(results, study, command),
        _overview(results),
        _rate_section(results, list(rates)),
        _output_section(results, list(outputs)),
        _map_section(entries, first, len(results.runs)),
        _table_section(results),
        f'<p class="foot soft">ablate {_text(__version__)}, page made {time.strftime("%Y-%m-%d %H:%M")} '
        f"from the run folders beside it.</p>",
    ]
    return "\n".join(
        [
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<link rel="icon" href="data:,">',
            f"<title>{_text(study)} · ablate</title>",
            f"<style>{(HERE / 'report.css').read_text(encoding='utf-8')}</style></head><body>",
            *body,
            f'<script type="application/json" id="data">{_json(data)}</script>',
            f"<script>{get_plotlyjs()}</script>",
            f"<script>{(HERE / 'report.js').read_text(encoding='utf-8')}</script></body></html>\n",
        ]
    )


def _head(results: Results, study: str, command: str) -> str:
    states = Counter(r.verdict or r.state for r in results.runs)
    finished = sum(r.verdict is not None for r in results.runs)
    arms = f"{plural(len(results.arms), 'arm')} × {plural(len(results.rates), 'learning rate')}"
    lines = [
        f"<h1>{_text(study)}</h1>",
        f"<p>{arms} × {plural(len(results.seeds), 'seed')}: {plural(len(results.runs), 'run')} "
        f"({_text(', '.join(f'{n} {word}' for word, n in states.most_common()))})</p>",
        _settings(results.runs),
    ]
    if finished < len(results.runs):
        lines.append(_note(f"{finished} of {len(results.runs)} runs have finished: what follows is partial."))
    lines += [_note(note) for note in reading_notes(results, command)]
    failed = [r for r in results.runs if r.state in ("failed", "killed")]
    if failed:
        items = "".join(
            f"<li>{_text(r.slug)} ({r.run_id}), {_text(r.state)}: {_text(one_line(r.reason or 'no reason known'), 300)}</li>"
            for r in failed[:20]
        )
        more = f"<li>and {len(failed) - 20} more</li>" if len(failed) > 20 else ""
        lines.append(f'<div class="note bad">{plural(len(failed), "run")} failed:<ul>{items}{more}</ul></div>')
    notes = dict.fromkeys(str(r.flat.get("run.notes") or "") for r in results.runs)
    lines += [f"<p>Notes: {_text(note, 2000)}</p>" for note in list(notes)[:5] if note]
    return "\n".join(lines)


def _settings(runs: Sequence[RunFacts]) -> str:
    """What all runs share, where it is not the default, and the shape in any case."""
    whole = [r.flat for r in runs if r.flat]
    if not whole:
        return ""
    defaults = flatten(parse({}))
    always = ("model.layers", "model.width", "model.context", "data.source", "data.vocab_size")
    always += ("optim.steps", "optim.batch", "optim.schedule", "optim.warmup")
    names = [k for k in defaults if not k.startswith(("run.", "sweep.", "verdict.", "probe.")) and k != "study"]
    shared = [k for k in names if all(flat.get(k) == whole[0].get(k) for flat in whole)]
    told = [k for k in shared if k in always or whole[0].get(k) != defaults.get(k)]
    words = ", ".join(f"{k}={shown(whole[0], k)}" for k in told)
    return f'<p class="soft">All runs share {_text(words, 1200)}.</p>'


def _overview(results: Results) -> str:
    """Arms × rates: median loss and one glyph a seed; sensitivity and best rate beside it."""
    sensitivity = {row[0]: row for row in sensitivity_table(results).rows}
    head = "".join(f'<th class="right">lr {number(lr, 6)}</th>' for lr in results.rates)
    rows = []
    for arm in results.arms:
        cells = {point.lr: _cell(point, results) for point in arm.points}
        middle = "".join(f'<td class="right">{cells.get(lr, "")}</td>' for lr in results.rates)
        _, best, _, total, below, above, n = sensitivity[clean(arm.name)]
        rows.append(
            f'<tr><td class="first">{_text(arm.name)}</td>{middle}<td class="right">{_text(best)}</td>'
            f'<td class="right" title="below best {_text(below)}, above best {_text(above)}, n = {_text(n)}">'
            f"{_text(total)}</td></tr>"
        )
    return (
        "<h2>Losses and verdicts</h2>"
        f'<div class="scroll"><table><tr><th class="first">arm</th>{head}<th class="right">best lr</th>'
        f'<th class="right">LR sensitivity</th></tr>{"".join(rows)}</table></div>{_verdict_key(results)}'
        '<p class="soft">Median final held-out loss over the seeds (nats; one that is not finite counts as '
        "infinite), one sign a seed. LR sensitivity (Wortsman et al. 2023, section 2.2): mean over the rates of "
        "min(final val, loss at step 0) − the arm's best, per seed, then averaged; lower depends less on the "
        "rate. It is blind to the level of the loss.</p>"
    )


def _cell(point: Point, results: Results) -> str:
    glyphs = "".join(
        f'<span class="glyph" style="color:{colour}" title="seed {_text(run.seed)}: {_text(word)}">{glyph}</span>'
        for run in point.runs
        for word in (results.word(run),)
        for colour, _, glyph in (VERDICTS.get(word, ("#595959", "", "·")),)
    )
    return f"{_text(loss(point.median_val()))} {glyphs}"


def _verdict_key(results: Results) -> str:
    seen = {results.word(r) for r in results.runs}
    known = [(word, *style) for word, style in VERDICTS.items() if word in seen]
    items = [f'<li><span style="color:{colour}">{glyph}</span> {word}</li>' for word, colour, _, glyph in known]
    if seen - set(VERDICTS):
        items.append(f"<li>· {_text(', '.join(sorted(seen - set(VERDICTS))))}</li>")
    return f'<ul class="key">{"".join(items)}</ul>'


def _rate_section(results: Results, ids: Sequence[str]) -> str:
    panels = [_panel(name, arm.name) for name, arm in zip(ids, results.arms, strict=True)]
    finished = sum(r.verdict is not None for r in results.runs)
    return (
        f'<h2>Loss against learning rate</h2>{_verdict_key(results)}<div class="grid">{"".join(panels)}</div>'
        f"<p class=\"soft\">{plural(finished, 'finished run')}, one point each (seeds of a rate are set slightly "
        "apart); the line joins the medians, grey ones are the other arms'. ↑: at or above the loss at step 0, or "
        "not finite, drawn at that loss. Dashed: median loss at step 0; dotted: the unigram.</p>"
    )


def _output_section(results: Results, ids: Sequence[str]) -> str:
    if not ids:
        return "<h2>Output norms</h2><p>No run has recorded outputs yet.</p>"
    colours = rate_colours(results.rates)
    key = "".join(
        f'<li><span class="swatch" style="border-color:{colours[lr]}"></span>lr {number(lr, 6)}</li>'
        for lr in results.rates
    )
    choices = "".join(f'<option value="{i}">{_text(arm.name)}</option>' for i, arm in enumerate(results.arms))
    panels = "".join(_panel(name, name.removeprefix("out-")) for name in ids)
    return (
        "<h2>Output norms by site</h2>"
        f'<label>Arm: <select id="choose-arm"><option value="-1">all {len(results.arms)}</option>{choices}'
        f'</select></label><ul class="key">{key}</ul><div class="grid">{panels}</div>'
        '<p class="soft">Output L2 (‖y‖ / √tokens) of every linear at each step, the largest over the blocks, one '
        "line an arm and rate (n = 1: its first seed), largest value of each stretch. A line ends where the output "
        "is no longer finite.</p>"
    )


def _map_section(entries: Sequence[Mapping[str, Any]], first: str | None, runs: int) -> str:
    if not entries:
        return "<h2>Growth</h2><p>No run has recorded outputs yet.</p>"
    groups: dict[str, list[str]] = {}
    for e in entries:
        mark = " selected" if e["id"] == first else ""
        option = f'<option value="{e["id"]}"{mark}>{_text(e["label"])}</option>'
        groups.setdefault(str(e["arm"]), []).append(option)
    choices = "".join(f'<optgroup label="{_text(arm)}">{"".join(o)}</optgroup>' for arm, o in groups.items())
    left_out = f" {runs - len(entries)} of {runs} runs are left out for size or lack of rows." if len(entries) < runs else ""
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
        f'<p id="no-twin" hidden>This run has no stable twin, or is one.</p><div class="maps">{panels}</div>'
        '<p class="soft">n = 1: one run beside its stable twin (same arm and seed, at the arm\'s best rate). Rows are '
        "linears, site by site from the first block to the last. Growth is the output L2 over the twin's at the "
        "same step, colours end at 100 times and a hundredth; white gaps are not finite, or beyond either's last row."
        f"{left_out}</p>"
    )


def _table_section(results: Results) -> str:
    return (
        "<h2>Table</h2>"
        f"<details><summary>Every arm and rate</summary>{_table(results_table(results))}</details>"
        f"<details><summary>LR sensitivity in parts</summary>{_table(sensitivity_table(results))}</details>"
        '<p class="soft">Departs first: the site whose output is the first to rise above twice its stable twin\'s for '
        "good. Grown most: the linear furthest above its twin over the last tenth; without a twin, the "
        "fastest-growing linear's rate.</p>"
    )


def _table(tab: Table) -> str:
    def cells(row: Sequence[str], tag: str) -> str:
        return "".join(
            f'<{tag} class="{"first" if i == 0 else ""}{"right" if tab.columns[i] in tab.right else ""}">'
            f"{_text(cell)}</{tag}>"
            for i, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in tab.rows)
    return f'<div class="scroll"><table><tr>{cells(tab.columns, "th")}</tr>{body}</table></div>'


def _panel(name: str, title: str) -> str:
    return f'<div class="panel"><h3>{_text(title)}</h3><div class="plot" id="{name}"></div></div>'


def _note(text: str) -> str:
    before, colon, command = text.partition("For an answer: ")
    shown_command = f"<code>{_text(command)}</code>" if command else ""
    return f'<div class="note">{_text(before)}{colon}{shown_command}</div>'


def _requested(request: Path) -> list[str]:
    try:
        return [str(run_id) for run_id in read_json(request)["run_ids"]]
    except (OSError, ValueError, KeyError, TypeError, UserError):
        return []


def _json(data: object) -> str:
    """JSON that cannot end its script element; what is not finite becomes null."""
    import orjson

    return orjson.dumps(data).decode().replace("<", "\\u003c")


def _text(item: object, limit: int | None = None) -> str:
    return html.escape(clean(item, limit))
