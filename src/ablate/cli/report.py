"""`ablate report`: a study's answer, its page, its tables as files, its figures as pictures."""

import argparse
import sys
from pathlib import Path

from ablate.cli.codes import ALL_DONE
from ablate.cli.overrides import thresholds
from ablate.cli.studies import meant_study
from ablate.config import UserError
from ablate.view import (
    Analysis,
    Results,
    answer,
    answer_command,
    clean,
    emit,
    export_figures,
    plates,
    reading_notes,
    results_table,
    sensitivity_table,
    study_results,
    value,
    write_markdown,
    write_report,
    write_tables,
)

TABLES = "tables"  # the folder inside the study that csv and parquet files are written to
ONE_FILE = {"html": "index.html", "md": "report.md"}  # formats that are written to one file, and its name
REJUDGED = "rejudged.html"  # the page with other thresholds: it does not replace the recorded verdicts'


def run(args: argparse.Namespace) -> int:
    """Print and write; runs that go on meanwhile are shown as far as they are."""
    changes = thresholds(args.overrides)
    root, study = meant_study(Path(args.root), args.study) or (Path(args.root), args.study)
    if args.figure_format is not None and args.figures is None:
        raise UserError("--figure-format without --figures", hint="--figures DIR --figure-format png")
    if args.format in ONE_FILE and args.out is not None and Path(args.out).is_dir():
        raise UserError(
            f"--out {args.out} is a folder",
            allowed="a file",
            hint=f"--out {Path(args.out) / ONE_FILE[args.format]}",
        )
    results = study_results(root, study, changes)
    analysis = Analysis.of(results)
    judged = " ".join(f"{key}={value(item)}" for key, item in changes.items())
    home, out = root / study, None if args.out is None else Path(args.out)
    if args.format == "html":
        page = out or (home / REJUDGED if judged else None)
        page = write_report(root, study, results, analysis, out=page, judged=judged)
        show_study(results, f"study {study}", answer_command(home, study, results.runs), analysis)
        print(f"page: {page}")
    elif args.format == "md":
        write_markdown(results, analysis, study, answer_command(home, study, results.runs), out, judged)
        if out is not None:
            print(f"tables: {out}")
    else:
        for path in write_tables(results, analysis, out or home / TABLES, args.format):
            print(path)
    if args.figures is not None:
        drawn = export_figures(plates(results, analysis), Path(args.figures), args.figure_format or "svg")
        for path in drawn:
            print(path, file=sys.stderr if args.format == "md" and out is None else sys.stdout)
    return ALL_DONE


def show_study(results: Results, title: str, command: str, analysis: Analysis) -> None:
    """The two tables of a study, the answer, and how to read them."""
    emit(results_table(results, title))
    print()
    emit(sensitivity_table(results))
    print()
    for sentence in answer(results, analysis, command):
        print(clean(sentence))
    for note in reading_notes(results):
        print(clean(note))
