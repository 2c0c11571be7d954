"""`ablate report`: a study's tables and its page."""

import argparse
from pathlib import Path

from ablate.cli.codes import ALL_DONE
from ablate.cli.studies import meant_study
from ablate.view import (
    Results,
    answer_command,
    clean,
    emit,
    reading_notes,
    results_table,
    sensitivity_table,
    study_results,
    write_report,
)


def run(args: argparse.Namespace) -> int:
    """Print and write; runs that go on meanwhile are shown as far as they are."""
    root = Path(args.root)
    root, study = meant_study(root, args.study) or (root, args.study)
    results = study_results(root, study)
    page = write_report(root, study, results)
    show_study(results, f"study {study}", answer_command(page.parent, study))
    print(f"page: {page}")
    return ALL_DONE


def show_study(results: Results, title: str, command: str) -> None:
    """The two tables of a study, and what they are not."""
    emit(results_table(results, title))
    print()
    emit(sensitivity_table(results))
    for note in reading_notes(results, command):
        print(clean(note))
