"""`ablate show`: one run, and its verdict under other thresholds."""

import argparse
from pathlib import Path

from ablate.cli.codes import ALL_DONE
from ablate.cli.overrides import thresholds
from ablate.config import replace
from ablate.record import Run, find_run
from ablate.view import emit, read_facts, replayed, run_page


def run(args: argparse.Namespace) -> int:
    """Print the page; with overrides the replayed verdict last."""
    folder = find_run(Path(args.root), args.target)
    record = Run(folder)
    changes = thresholds(args.overrides)
    for number, tab in enumerate(run_page(record, read_facts(folder))):
        if number:
            print()
        emit(tab)
    if changes:
        judged = replace(record.config, changes).verdict
        print()
        emit(replayed(record.verdict(), record.verdict(judged), judged, list(changes)))
    return ALL_DONE
