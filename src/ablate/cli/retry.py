"""`ablate retry`: launch again what failed, was killed or was stopped."""

import argparse
from collections import Counter
from pathlib import Path

from ablate.cli.codes import ALL_DONE, SOME_FAILED
from ablate.cli.planning import fits
from ablate.cli.studies import existing_study
from ablate.cli.work import mirrored, work
from ablate.record import State
from ablate.sweep import BROKEN, broken_runs, queue_again
from ablate.view import emit, plural, read_facts, study_table


def run(args: argparse.Namespace) -> int:
    """Launch them with the settings they were frozen with; print their table."""
    root, study = existing_study(Path(args.root), args.study)
    states = {State.failed} if args.failed else BROKEN
    runs = broken_runs(root, study, states)
    if not runs:
        print(f"{root / study}: nothing to launch again ({', '.join(sorted(states))}: none)")
        return ALL_DONE
    counts = Counter(run.state for run in runs)
    words = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    print(f"{root / study}: {plural(len(runs), 'run')} to launch again ({words})", flush=True)
    if not fits([run.config for run in runs], recorded=True):
        return SOME_FAILED
    folders = queue_again(runs, print)
    configs = {run.folder.name: run.config for run in runs}
    resume = ["ablate", "retry", study, *(["--root", str(root)] if root != Path("runs") else [])]
    with mirrored(folders, configs) as mirror:
        _, code = work(folders, configs, resume)
        mirror.over(code)
        emit(study_table([read_facts(folder) for folder in folders], title=f"study {study}"))
    return code
