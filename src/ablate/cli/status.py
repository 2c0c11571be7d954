"""`ablate status`: where a study stands."""

import argparse
import time
from pathlib import Path

from ablate.cli.codes import ALL_DONE
from ablate.config import UserError, nearest
from ablate.record import find_studies
from ablate.view import StudyStatus, emit, mirror_notes, read_study_status, status_lines, status_tables


def run(args: argparse.Namespace) -> int:
    """Print it once, or again and again until nothing runs."""
    root = Path(args.root)
    existing_study(root, args.study)
    while True:
        status = read_study_status(root, args.study)
        _print(status)
        for note in mirror_notes(root, [args.study]):
            print(note)
        if not args.watch or not status.running:
            return ALL_DONE
        time.sleep(args.every)
        print()


def existing_study(root: Path, study: str) -> None:
    """Raise UserError with the nearest name for a study that is not there."""
    known = find_studies(root)
    if study not in known:
        close = nearest(study, known)
        raise UserError(f"no study {study!r} below {root}", hint=close or "ablate ls")


def _print(status: StudyStatus) -> None:
    for line in status_lines(status):
        print(line)
    for tab in status_tables(status):
        emit(tab)
