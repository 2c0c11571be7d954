"""A study's page: one HTML file with tables, figures and plotly.js inside; nothing is fetched."""

import os
import time
from pathlib import Path

from ablate import __version__
from ablate.config import UserError
from ablate.record import find_runs, find_studies, read_json
from ablate.view.facts import RunFacts, read_facts
from ablate.view.figures import growth_maps, map_figures, output_figures, rate_figures
from ablate.view.results import Results
from ablate.view.sections import (
    heading,
    map_section,
    output_section,
    overview,
    rate_section,
    table_section,
    text,
)
from ablate.view.study import answer_command

PAGE = "index.html"
HERE = Path(__file__).parent
# Whatever a name or a note may contain: the browser refuses every request and every script from elsewhere.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"


def write_report(root: Path, study: str, results: Results | None = None) -> Path:
    """Write `<root>/<study>/index.html` from all runs of the study (`results`, where they are at hand).

    Returns its path. Raises UserError for a study without runs.
    """
    found = results or study_results(root, study)
    home = found.runs[0].folder.path.parent
    target = home / PAGE
    page = report_page(found, study, answer_command(home, study))
    draft = home / f".{PAGE}.{os.getpid()}"
    try:
        draft.write_text(page, encoding="utf-8")
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return target


def study_results(root: Path, study: str) -> Results:
    """The results of all runs of a study. Raises UserError when it has none."""
    runs = study_runs(root, study)
    if not runs:
        known = ", ".join(find_studies(root)) or "none"
        raise UserError(f"no runs of a study {study!r} below {root}", allowed=known, hint="ablate ls")
    return Results.of(runs)


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
        heading(results, study, command),
        overview(results),
        rate_section(results, list(rates)),
        output_section(results, list(outputs)),
        map_section(entries, first, len(results.runs)),
        table_section(results),
        f'<p class="foot soft">ablate {text(__version__)}, page made {time.strftime("%Y-%m-%d %H:%M")} '
        f"from the run folders beside it.</p>",
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


def _requested(request: Path) -> list[str]:
    try:
        return [str(run_id) for run_id in read_json(request)["run_ids"]]
    except (OSError, ValueError, KeyError, TypeError, UserError):
        return []


def _json(data: object) -> str:
    """JSON that cannot end its script element; what is not finite becomes null."""
    import orjson

    return orjson.dumps(data).decode().replace("<", "\\u003c")
