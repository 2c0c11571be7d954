"""`ablate rerun`: a recorded run once more, compared row by row."""

import argparse
import shlex
from pathlib import Path

from ablate.cli.codes import ALL_DONE, SOME_FAILED
from ablate.cli.overrides import changes
from ablate.cli.planning import fits
from ablate.cli.studies import meant_run
from ablate.cli.work import work
from ablate.config import UserError, load, replace
from ablate.record import Run, RunFolder, State
from ablate.sweep import Repetition, check_weights, compare_runs, prepare_rerun
from ablate.view import clean, comparison_lines


def run(args: argparse.Namespace) -> int:
    """Train the repetition and compare. 0 if exact or overridden, 1 if rows differ otherwise."""
    source = meant_run(Path(args.root), args.target, "repeated")
    overrides = changes(args.overrides)
    original = Run(source)
    if not len(original.series()):
        raise UserError(f"{source.path} holds no rows to compare with", hint=f"ablate show {source.id}")
    recorded = load(source.config)
    asked = replace(recorded, overrides) if overrides else recorded
    check_weights([asked])
    if not fits([asked], recorded=True):
        return SOME_FAILED
    repetition = prepare_rerun(source, overrides, args.from_step)
    _announce(source, repetition, args.from_step)
    resume = ["python", "-m", "ablate.worker", str(repetition.folder.path)]
    _, code = work([repetition.folder], {repetition.folder.name: repetition.config}, resume)
    if code != ALL_DONE:
        return code
    partial = args.from_step is not None or bool(overrides) or original.status.state is not State.done
    comparison = compare_runs(original, Run(repetition.folder), repetition.start, shared_only=partial)
    for line in comparison_lines(comparison, repetition):
        print(clean(line))
    print(f"folder: {repetition.folder.path}")
    if args.from_step is not None:
        look = ["ablate", "show", str(repetition.folder.path), "--step", str(args.from_step)]
        print(f"the probes around step {args.from_step}: {shlex.join(look)}")
    return ALL_DONE if comparison.exact or overrides else SOME_FAILED


def _announce(source: RunFolder, repetition: Repetition, from_step: int | None) -> None:
    print(f"repeating {source.path} under {repetition.folder.name.partition('/')[2]}", flush=True)
    if not repetition.same:
        print("the overrides make it another experiment: rows are expected to differ")
    if from_step is None:
        return
    if repetition.start:
        print(f"beginning at the checkpoint of step {repetition.start}, probing every step")
    else:
        print(f"no checkpoint remains at or before step {from_step}: beginning at step 0, probing every step")
