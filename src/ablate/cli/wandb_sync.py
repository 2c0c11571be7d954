"""`ablate wandb sync`: bring what is missing to W&B, and ask W&B whether it arrived."""

import argparse
import os
import sys
from pathlib import Path

from ablate.cli.codes import ALL_DONE, SOME_FAILED
from ablate.cli.studies import existing_study
from ablate.config import UserError
from ablate.record import Claimed, find_studies

SHOWN = 10


def run(args: argparse.Namespace) -> int:
    """Sync one study, or every study that was mirrored before. 1 if something is not up in the end."""
    from ablate.mirror import require_key, wandb_home

    root = Path(args.root)
    if args.study is not None:
        root, study = existing_study(root, args.study)
        wanted = [study]
    else:
        wanted = [s for s in find_studies(root) if wandb_home(root, s).is_dir()]
    require_key()
    if not wanted:
        raise UserError(f"no study below {root} was mirrored", hint="ablate wandb sync STUDY")
    codes, answers = [], True
    for study in wanted:
        code, answered = _sync(root, study, args.timeout)
        codes.append(code)
        answers = answers and answered
    if not answers:  # wandb's own exit would wait for the service again
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(SOME_FAILED)
    return max(codes)


def _sync(root: Path, study: str, seconds: float) -> tuple[int, bool]:
    """One study: exit code, and whether the service still answers."""
    from ablate.cli.wandb_mirror import say, tracker_of
    from ablate.mirror.sync import sync_study
    from ablate.view import clean

    try:
        done = sync_study(root, study, tracker_of(root, study).finish_timeout, seconds, say)
    except Claimed as error:
        say(f"{study}: not synced: {error.problem}")
        return SOME_FAILED, True
    say(f"{study}: {done.up} of {done.runs} runs are up, {done.compared} of them compared value by value")
    for name, why in sorted(done.troubles.items())[:SHOWN]:
        say(f"  degraded: {name}: {clean(why)}")
    if len(done.troubles) > SHOWN:
        say(f"  … and {len(done.troubles) - SHOWN} more (`ablate ls {study}` marks them)")
    return (SOME_FAILED if done.troubles else ALL_DONE), done.answers
