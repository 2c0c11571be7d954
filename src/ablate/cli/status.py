"""`ablate status`: where a study stands."""

import argparse
import time
from pathlib import Path

from ablate.cli.codes import ALL_DONE
from ablate.cli.studies import existing_study
from ablate.view import StudyStatus, emit, read_study_status, status_lines, status_tables


def run(args: argparse.Namespace) -> int:
    """Print it once, or again and again until nothing runs."""
    root, study = existing_study(Path(args.root), args.study)
    while True:
        status = read_study_status(root, study)
        _print(status)
        if not args.watch or not status.running:
            return ALL_DONE
        time.sleep(args.every)
        print()


def _print(status: StudyStatus) -> None:
    for line in status_lines(status):
        print(line)
    for tab in status_tables(status):
        emit(tab)
