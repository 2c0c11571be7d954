"""`ablate show`: one run, with its verdict under other thresholds too; or a study's table."""

import argparse
import difflib
import shlex
from collections import Counter
from pathlib import Path

from ablate.cli.codes import ALL_DONE
from ablate.cli.overrides import thresholds
from ablate.cli.studies import meant_study
from ablate.config import UserError, replace
from ablate.record import Run, RunFolder, find_run, find_runs, find_studies
from ablate.view import (
    Results,
    clean,
    emit,
    read_facts,
    reading_notes,
    replayed,
    results_table,
    run_page,
    select,
)


def run(args: argparse.Namespace) -> int:
    """Print the page of a run; for the name or the folder of a study its table."""
    changes = thresholds(args.overrides)
    if (study := meant_study(Path(args.root), args.target)) is not None:
        if args.step is not None:
            raise UserError(f"{args.target} is a study: --step looks into one run", hint="ablate show RUN")
        if changes:
            place = [] if args.root == "runs" else ["--root", args.root]
            again = shlex.join(["ablate", "report", args.target, *args.overrides, *place])
            raise UserError(f"{args.target} is a study: its report judges all of its runs again", hint=again)
        _show_study(*study)
        return ALL_DONE
    folder = _find(Path(args.root), args.target)
    record, replay = Run(folder), None
    if changes:
        judged = replace(record.config, changes).verdict
        replay = replayed(record.verdict(), record.verdict(judged), judged, list(changes))
    page = run_page(record, read_facts(folder), replay=replay, step=args.step, everything=args.all)
    for number, tab in enumerate(page):
        if number:
            print()
        emit(tab)
    return ALL_DONE


def _find(root: Path, target: str) -> RunFolder:
    """The run; the error for an unknown one names the study that may be meant."""
    try:
        return find_run(root, target)
    except UserError as error:
        near = difflib.get_close_matches(target, find_studies(root), n=1, cutoff=0.7)
        if not near:
            raise
        hint = f"ablate show {near[0]} (a study)"
        raise UserError(error.problem, allowed=f"{error.allowed}; or a study", hint=hint) from None


def _show_study(root: Path, study: str) -> None:
    runs = select([read_facts(folder) for folder in find_runs(root, study)])
    results = Results.of(runs)
    emit(results_table(results, f"study {study}"))
    counts = Counter(run.verdict or run.state for run in runs)
    print(", ".join(f"{count} {word}" for word, count in sorted(counts.items())))
    for note in reading_notes(results):
        print(clean(note))
