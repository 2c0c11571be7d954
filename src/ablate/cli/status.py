"""`ablate status`: where a study stands."""

import argparse
import time
from pathlib import Path

from ablate.cli.codes import ALL_DONE
from ablate.cli.studies import existing_study
from ablate.config import UserError
from ablate.record import find_studies
from ablate.view import StudyStatus, emit, mirror_notes, read_study_status, status_lines, status_tables

QUIET_S = 30.0  # a launch takes some seconds to its first run, and between two tries of a run


def run(args: argparse.Namespace) -> int:
    """Print it once, or again and again until nothing runs."""
    if args.study is None:
        known = ", ".join(find_studies(Path(args.root))) or f"there are no studies below {args.root}"
        raise UserError("status of which study?", allowed=known, hint="ablate status STUDY")
    root, study = existing_study(Path(args.root), args.study)
    quiet = 0.0  # seconds since a run was last seen at work
    while True:
        status = read_study_status(root, study)
        _print(status)
        for note in mirror_notes(root, [study]):
            print(note)
        quiet = 0.0 if status.running else quiet + args.every
        if not args.watch or not (status.running or status.open):
            return ALL_DONE
        if quiet > QUIET_S:
            print(f"nothing has run for {QUIET_S:.0f} s")
            return ALL_DONE
        time.sleep(args.every)
        print(flush=True)


def _print(status: StudyStatus) -> None:
    for line in status_lines(status):
        print(line)
    for tab in status_tables(status):
        emit(tab)
