"""The study's own W&B run: its page, tables and figures, and the numbers of each arm."""

import hashlib
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from ablate.config import TrackerConfig, TrackerMode
from ablate.mirror import offline, online, server, service
from ablate.mirror.facts import ALL_RUNS, ID_LENGTH, NAME_LENGTH, STUDY_JOB, Facts
from ablate.mirror.ledger import Condition, Ledger, Sent
from ablate.record import finite
from ablate.view import (
    Analysis,
    Results,
    RunFacts,
    Table,
    answer_command,
    clean,
    plates,
    report_page,
    results_table,
    sensitivity_table,
)
from ablate.view.figures import composed

NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class StudyPage:
    """What goes up for a study. `digest`: of the runs' states and results, of which it was made."""

    facts: Facts
    summary: Mapping[str, Any]
    tables: Mapping[str, Table]
    digest: str


def study_id(study: str) -> str:
    """The W&B id of a study's own run."""
    return f"study-{NOT_IN_NAMES.sub('-', study)}"[:ID_LENGTH].rstrip("-_.")


def study_page(results: Results, root: Path, study: str, tracker: TrackerConfig) -> StudyPage:
    """Pure: everything but the page and the figures, which are drawn when they are sent."""
    command = answer_command(root / study, study, results.runs)
    facts = Facts(
        id=study_id(study),
        project=tracker.project or study,
        entity=tracker.entity,
        group=STUDY_JOB,
        job_type=STUDY_JOB,
        name=clean(f"study {study}", NAME_LENGTH),
        notes=f"page, tables and figures of the whole study\n\nmore seeds: {command}",
        tags=("study", *tracker.tags),
        config={
            "study": study,
            "arms": len(results.arms),
            "rates": list(results.rates),
            "seeds": list(results.seeds),
        },
    )
    tables = {"results": results_table(results), "lr_sensitivity": sensitivity_table(results)}
    return StudyPage(facts, _summary(results), tables, _digest(results))


def _summary(results: Results) -> dict[str, Any]:
    """Counts, and of each arm its best rate and loss there (medians over seeds)."""
    words: dict[str, Any] = {"runs": len(results.runs)}
    for run in results.runs:
        key = f"verdicts/{results.word(run).replace(' ', '_')}"
        words[key] = words.get(key, 0) + 1
    for arm in results.arms:
        name = NOT_IN_NAMES.sub("-", ALL_RUNS if arm.name == "-" else arm.name)
        best = next((p for p in arm.points if p.lr == arm.best_lr and p.lr is not None), None)
        if arm.best_lr is not None and best is not None:
            words[f"best_lr/{name}"] = arm.best_lr
            words[f"best_val/{name}"] = best.median_val()
        if arm.sensitivities:
            total = sum(found.total for found in arm.sensitivities.values()) / len(arm.sensitivities)
            words[f"lr_sensitivity/{name}"] = total
    return {key: item for key, item in finite(words).items() if isinstance(item, int | float)}


def _digest(results: Results) -> str:
    said = [_state(run) for run in results.runs]
    return hashlib.sha256(orjson.dumps(finite(said))).hexdigest()[:16]


def _state(run: RunFacts) -> list[Any]:
    return [run.folder.name, run.state, run.attempt, run.verdict, run.val]


def send(
    page: StudyPage, results: Results, root: Path, ledger: Ledger, mode: TrackerMode, finish_timeout: float
) -> Sent:
    """Make the study's run anew (offline), or add a version to it (online). Raises Trouble."""
    home = root / page.facts.config["study"] / "wandb"
    build = home / ".mirror" / "build"
    before = ledger.of(mode)
    version = before.rows if before is not None and mode is TrackerMode.online else 0
    opened = service.open_run(page.facts, mode, build, finish_timeout, resume=mode is TrackerMode.online)
    if mode is TrackerMode.online:
        held = server.held(opened.run.entity, opened.run.project, page.facts.id)
        version = max(version, -1 if held is None or held.last_step is None else held.last_step) + 1
    opened.log_media(_media(page, results, root), version)
    opened.finish(page.summary, 0)
    if mode is TrackerMode.online:
        where = opened.url
        online.drop_files(opened)
    else:
        where = offline.place(opened, page.facts.id, 1, home)
    return Sent(Condition.clean, None, 1, version, version, page.digest, page.digest, where, {}, time.time())


def _media(page: StudyPage, results: Results, root: Path) -> dict[str, Any]:
    """The page, the tables and the page's figures, as wandb wants them."""
    import wandb

    study = str(page.facts.config["study"])
    analysis = Analysis.of(results)
    text = report_page(results, analysis, study, answer_command(root / study, study, results.runs))
    tables = {
        f"tables/{name}": wandb.Table(columns=list(tab.columns), data=[list(row) for row in tab.rows])
        for name, tab in page.tables.items()
    }
    figures = {f"figures/{plate.name}": _figure(composed(plate)) for plate in plates(results, analysis)}
    return {"page/study": wandb.Html(text, inject=False), **tables, **figures}


def _figure(figure: Mapping[str, Any]) -> Any:
    import plotly.graph_objects as go
    import wandb

    return wandb.Plotly(go.Figure(data=figure.get("data"), layout=figure.get("layout")))
