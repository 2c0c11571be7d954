"""The report's tables as files: Markdown for people, CSV and Parquet for other programs."""

import sys
from collections.abc import Sequence
from pathlib import Path

from ablate.stats import Response
from ablate.view.analysis import Analysis
from ablate.view.answer import answer
from ablate.view.frames import csv_text, frames, write_parquet
from ablate.view.report.tables import (
    edges_table,
    effects_table,
    floor_table,
    responses_table,
    runs_table,
    undetected_table,
    within_table,
)
from ablate.view.results import Results
from ablate.view.study import reading_notes, results_table
from ablate.view.table import Table
from ablate.view.text import clean

ESCAPED = str.maketrans({c: f"\\{c}" for c in "\\`*_[]<>|#~"})


def write_markdown(
    results: Results, analysis: Analysis, study: str, command: str, out: Path | None, judged: str = ""
) -> None:
    """The answer and the tables as Markdown, to `out` or to standard output."""
    page = markdown(results, analysis, study, command, judged)
    if out is None:
        sys.stdout.write(page)
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(page, encoding="utf-8")


def markdown(results: Results, analysis: Analysis, study: str, command: str, judged: str = "") -> str:
    """The answer and the tables; the same for the same records."""
    tables = [
        *([within_table(analysis)] if analysis.within else []),
        results_table(results, "Losses and verdicts"),
        edges_table(analysis),
        responses_table(analysis),
        *(effects_table(analysis, response) for response in Response),
        floor_table(analysis),
        undetected_table(analysis),
        runs_table(results),
    ]
    lines = [f"# {_safe(study)}", ""]
    lines += [f"Judged again with {_safe(judged)}.", ""] if judged else []
    for sentence in answer(results, analysis, command):
        lines += [_safe(sentence), ""]
    for sentence in reading_notes(results):
        lines += [_safe(sentence), ""]
    for tab in tables:
        if tab.rows:
            lines += [f"## {_safe(tab.title or '')}", "", *_pipes(tab), ""]
    return "\n".join(lines)


def write_tables(results: Results, analysis: Analysis, folder: Path, kind: str) -> list[Path]:
    """One file a table, `csv` or `parquet`; the same bytes for the same records."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for frame in frames(results, analysis):
        path = folder / f"{frame.name}.{kind}"
        if kind == "csv":
            path.write_text(csv_text(frame), encoding="utf-8")
        else:
            write_parquet(frame, path)
        paths.append(path)
    return paths


def _pipes(tab: Table) -> list[str]:
    head = f"| {' | '.join(map(_safe, tab.columns))} |"
    rule = f"| {' | '.join('---:' if name in tab.right else '---' for name in tab.columns)} |"
    return [head, rule, *(_row(row) for row in tab.rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_safe, cells))} |"


def _safe(words: str) -> str:
    """Text that stays text in Markdown and in the HTML it becomes."""
    return clean(words).translate(ESCAPED)
