"""`ablate wandb mirror`: a study's run folders as W&B runs."""

import argparse
import os
from pathlib import Path

from ablate.cli.studies import existing_study
from ablate.config import TrackerConfig, TrackerMode, UserError
from ablate.record import Run, find_runs


def run(args: argparse.Namespace) -> int:
    """Mirror once, or as long as something is at work. 1 if some run is not in W&B in the end."""
    from ablate.mirror import resolve_mode
    from ablate.mirror.command import LAUNCHED_NICE, mirror_study

    root, study = existing_study(Path(args.root), args.study)
    if args.launched:
        os.nice(LAUNCHED_NICE)
    tracker = tracker_of(root, study)
    asked = args.mode is not None
    resolved = resolve_mode(TrackerMode(args.mode) if asked else tracker.mode, asked)
    if resolved.mode is TrackerMode.off:
        raise UserError(f"nothing is mirrored: {resolved.why}", hint="--mode offline, or --mode online")
    if not args.launched:
        print(f"W&B: {resolved.mode} ({resolved.why})", flush=True)
    patience = tracker.finish_timeout if args.finish_timeout is None else args.finish_timeout
    return mirror_study(root, study, resolved.mode, patience, args.watch, args.launched, say)


def tracker_of(root: Path, study: str) -> TrackerConfig:
    """The settings that the study's newest run was frozen with."""
    for folder in reversed(find_runs(root, study)):
        try:
            return Run(folder).config.tracker
        except (UserError, OSError):
            continue
    return TrackerConfig()


def say(text: str) -> None:
    """One line, at once; what folders and the service say is made harmless."""
    from ablate.view import clean

    print(clean(text), flush=True)
