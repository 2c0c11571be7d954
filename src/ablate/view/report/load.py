"""A study's runs from their folders, judged as they were or by other thresholds."""

from collections.abc import Mapping
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

from ablate.config import UserError, replace
from ablate.record import Run, find_runs, find_studies
from ablate.view.comparable import requested, requests
from ablate.view.facts import RunFacts, read_facts
from ablate.view.results import Results


def study_results(root: Path, study: str, thresholds: Mapping[str, Any] | None = None) -> Results:
    """The results of all runs of a study. Raises UserError when it has none.

    `thresholds`: values of `verdict.*` keys by which every recorded curve is judged again.
    """
    runs = study_runs(root, study)
    if not runs:
        known = ", ".join(name for name in find_studies(root) if find_runs(root, name)) or "none"
        raise UserError(f"no runs of a study {study!r} below {root}", allowed=known, hint="ablate ls")
    return Results.of([judged_again(run, thresholds) for run in runs] if thresholds else runs)


def study_runs(root: Path, study: str) -> list[RunFacts]:
    """The facts of every run of a study, in the order in which sweeps asked for them."""
    folders = find_runs(root, study)
    order: dict[str, int] = {}
    for request in requests(root / study):
        for run_id in requested(request):
            order.setdefault(run_id, len(order))
    return [read_facts(f) for f in sorted(folders, key=lambda f: order.get(f.id, len(order)))]


def judged_again(run: RunFacts, thresholds: Mapping[str, Any]) -> RunFacts:
    """The run with the verdict that other thresholds give its recorded curve; one without a verdict stays so.

    Raises UserError for a threshold out of range, or a record that cannot be judged.
    """
    if run.verdict is None:
        return run
    record = Run(run.folder)
    verdict = record.verdict(replace(record.config, thresholds).verdict)
    summary = {
        **run.summary,
        "verdict": str(verdict.kind),
        "reasons": list(verdict.reasons),
        "first_bad_step": verdict.step,
        **{f"measures/{name}": x for name, x in verdict.measures.items()},
    }
    return changed(run, summary=summary)
