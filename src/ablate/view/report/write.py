"""A study's page: one HTML file with tables, figures and plotly.js inside; nothing is fetched."""

import errno
import os
import stat
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ablate import __version__
from ablate.view.analysis import Analysis
from ablate.view.answer import answer
from ablate.view.figures import (
    Figure,
    Plate,
    bias_plate,
    biased_arms,
    course_plate,
    edge_plate,
    effect_plate,
    growth_maps,
    growth_plate,
    map_figures,
    rate_plate,
    within_plate,
)
from ablate.view.figures.maps import CAPTION as MAP_CAPTION
from ablate.view.report.design import design_section, heading
from ablate.view.report.html import choice, paragraph, plate_html, section, text
from ablate.view.report.load import study_results
from ablate.view.report.methods import methods_section
from ablate.view.report.overview import (
    floor_section,
    runs_section,
    signs_words,
    tables_section,
    undetected_section,
    within_section,
)
from ablate.view.report.provenance import Provenance
from ablate.view.results import Results
from ablate.view.study import REPEAT, answer_command

PAGE = "index.html"
HERE = Path(__file__).parent
# Whatever a name or a note may contain: the browser refuses every request and every script from elsewhere.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
CONTENTS = (
    ("question", "Question"), ("answer", "Answer"), ("within", "Model by model"), ("tables", "Tables"),
    ("figures", "Figures"),
    ("floor", "Noise floor"), ("undetected", "Not detectable"), ("methods", "Methods"), ("runs", "Runs"),
)  # fmt: skip


def write_report(
    root: Path,
    study: str,
    results: Results | None = None,
    analysis: Analysis | None = None,
    *,
    out: Path | None = None,
    judged: str = "",
) -> Path:
    """Write the page of all runs of a study (`results` and `analysis`, where they are at hand).

    To `<root>/<study>/index.html`, or to `out`; returns the path. `judged` names thresholds that took the
    recorded ones' place. Raises UserError for a study without runs, OSError where nothing can be written.
    """
    found = results or study_results(root, study)
    home = root / study
    target = out or home / PAGE
    command = answer_command(home, study, found.runs)
    page = report_page(found, analysis or Analysis.of(found), study, command, judged)
    _put(page, target)
    return target


def report_page(results: Results, analysis: Analysis, study: str, command: str, judged: str = "") -> str:
    """The page as text. `command` asks for more seeds."""
    from plotly.offline import get_plotlyjs

    provenance = Provenance.of(results)
    within = within_plate(analysis)
    figures, data = _figures(results, analysis, within)
    signs = signs_words(r.effect.estimate.bound for r in (*analysis.rows, *analysis.within))
    sentences = "".join(f"<p>{_with_code(s, command)}</p>" for s in answer(results, analysis, command))
    contents = "".join(
        f'<a href="#{name}">{title}</a>' for name, title in CONTENTS if name != "within" or analysis.within
    )
    body = [
        heading(results, study, judged),
        f"<nav>{contents}</nav>",
        design_section(results, provenance),
        section(
            "answer",
            "The answer",
            f'<div class="answer">{sentences}</div>',
            *([paragraph(signs, soft=True)] if signs else []),
        ),
        within_section(analysis, plate_html(within) if within is not None else ""),
        tables_section(results, analysis),
        figures,
        floor_section(analysis),
        undetected_section(analysis, command),
        methods_section(provenance),
        runs_section(results),
        f'<p class="foot soft">ablate {text(__version__)}, page made {time.strftime("%Y-%m-%d %H:%M")} '
        f"from the run folders of {text(study)}.</p>",
    ]
    return "\n".join(
        [
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<link rel="icon" href="data:,">',
            f"<title>{text(study)} · ablate</title>",
            f"<style>{(HERE / 'report.css').read_text(encoding='utf-8')}</style></head><body>",
            *body,
            f'<script type="application/json" id="data">{_json(data)}</script>',
            f"<script>{get_plotlyjs()}</script>",
            f"<script>{(HERE / 'report.js').read_text(encoding='utf-8')}</script></body></html>\n",
        ]
    )


def _put(page: str, target: Path) -> None:
    """Replace a file at once, the one that a link leads to; write into a device or pipe as it is."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if not stat.S_ISREG(mode):
        target.write_text(page, encoding="utf-8")
        return
    whole = target.resolve()
    whole.parent.mkdir(parents=True, exist_ok=True)
    draft = whole.with_name(f".{whole.name}.{os.getpid()}")
    try:
        draft.write_text(page, encoding="utf-8")
        draft.replace(whole)
    finally:
        draft.unlink(missing_ok=True)


def _figures(results: Results, analysis: Analysis, within: Plate | None) -> tuple[str, Mapping[str, Any]]:
    """The section of figures, and what the page's script draws."""
    course, bias = course_plate(results), bias_plate(results)
    entries, first = growth_maps(results)
    every = range(len(results.arms))
    shown = [
        (rate_plate(results) if results.arms else None, ""),
        (edge_plate(analysis, results), ""),
        (effect_plate(analysis), ""),
        (growth_plate(results), ""),
        (course, _arm_choice("course-arm", results, every) if course else ""),
    ]
    parts = [plate_html(plate, control) for plate, control in shown if plate is not None]
    parts.append(_maps(results, entries, first) if entries else paragraph("No run has recorded outputs yet."))
    if bias is not None:
        parts.append(plate_html(bias, _arm_choice("bias-arm", results, biased_arms(results))))
    plates = [within, *(plate for plate, _ in shown), bias]
    data = {
        "figures": _by_id([plate for plate in plates if plate is not None]),
        "arms": {"course-arm": _ids(course), "bias-arm": _ids(bias)},
        "maps": {"runs": entries, "figures": map_figures()},
    }
    return section("figures", "Figures", *parts), data


def _arm_choice(name: str, results: Results, places: Sequence[int]) -> str:
    options = [(str(place), results.arms[place].title) for place in places]
    if len(options) > 1:
        options.append(("-1", f"all {len(options)} arms"))
    return choice(name, "Arm:", options, options[0][0])


def _maps(results: Results, entries: Sequence[Mapping[str, Any]], first: str | None) -> str:
    groups: dict[str, list[str]] = {}
    for e in entries:
        mark = " selected" if e["id"] == first else ""
        option = f'<option value="{e["id"]}"{mark}>{text(e["label"])}</option>'
        groups.setdefault(str(e["arm"]), []).append(option)
    menu = "".join(f'<optgroup label="{text(arm)}">{"".join(o)}</optgroup>' for arm, o in groups.items())
    missing = len(results.runs) - len(entries)
    left_out = (
        f" {missing} of {len(results.runs)} runs are left out for size or lack of rows." if missing else ""
    )
    panels = "".join(
        f'<div class="panel" id="panel-{name}"><h4>{title}</h4><div class="plot" id="map-{name}"></div></div>'
        for name, title in (
            ("growth", "growth: run / stable twin"),
            ("run", 'run: <span id="run-name"></span>'),
            ("twin", 'stable twin: <span id="twin-name"></span>'),
        )
    )
    return (
        '<figure id="figure-growth_map"><h3 class="plate">Growth, layer by layer</h3>'
        f'<label class="choice">Run: <select id="choose-run">{menu}</select></label>'
        '<p id="no-twin" hidden>This run has no stable twin, or is one.</p>'
        f'<div class="maps">{panels}</div><figcaption>{text(MAP_CAPTION + left_out)}</figcaption></figure>'
    )


def _by_id(plates: Sequence[Plate]) -> dict[str, Figure]:
    return {panel.id: panel.figure for plate in plates for panel in plate.panels}


def _ids(plate: Plate | None) -> list[str]:
    return [] if plate is None else [panel.id for panel in plate.panels]


def _with_code(sentence: str, command: str) -> str:
    if command == REPEAT:
        return text(sentence)
    return text(sentence).replace(text(command), f"<code>{text(command)}</code>")


def _json(data: object) -> str:
    """JSON that cannot end its script element; what is not finite becomes null."""
    import orjson

    return orjson.dumps(data).decode().replace("<", "\\u003c")
