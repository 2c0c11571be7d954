"""`ablate sweep`: every combination of the given values."""

import argparse
import sys
from collections import Counter

from ablate.cli.codes import ALL_DONE, SOME_FAILED
from ablate.cli.planning import check_and_summarise, say_proof, show_plan
from ablate.cli.report import show_study
from ablate.cli.work import check_mode, mirrored, resume_command, work
from ablate.config import to_dict
from ablate.record import write_request
from ablate.sweep import (
    Plan,
    WorkerError,
    freeze,
    plan,
    prepare_data,
    request_facts,
    requested_factors,
    unrecorded,
)
from ablate.view import Analysis, Results, answer_command, plural, study_results, write_report


def run(args: argparse.Namespace) -> int:
    """Plan, say what there is to do, do it, print the study's table.

    Runs that another process is training are left to it and waited for.
    """
    the_plan = plan(args.overrides)
    _announce(the_plan)
    busy = [(cell, cell.folder) for cell in the_plan.busy if cell.folder is not None]
    code = ALL_DONE
    try:
        if args.plan:
            show_plan(the_plan)
            return ALL_DONE
        if the_plan.todo:
            check_and_summarise(the_plan)
    except WorkerError as error:
        print(f"error: {error}", file=sys.stderr)
        return SOME_FAILED
    if the_plan.todo or busy:
        check_mode(the_plan.base, args.overrides)
        prepare_data(the_plan, print)
        folders = freeze(the_plan, print)
        write_request(
            the_plan.root,
            the_plan.study,
            ["ablate", "sweep", *args.overrides],
            requested_factors(the_plan.axes),
            to_dict(the_plan.base),
            [c.run_id for c in the_plan.cells],
            request_facts(the_plan),
        )
        runs = [*zip(the_plan.todo, folders, strict=True), *busy]
        configs = {folder.name: cell.config for cell, folder in runs}
        resume = resume_command("sweep", args.overrides)
        with mirrored([folder for _, folder in runs], configs, args.overrides) as mirror:
            _, code = work([folder for _, folder in runs], configs, resume)
            mirror.over(code)
            _results(the_plan)
    else:
        _results(the_plan)
    return code


def _results(the_plan: Plan) -> None:
    _show(the_plan)
    say_proof(the_plan)


def _announce(the_plan: Plan) -> None:
    asked = len(the_plan.cells) + the_plan.duplicates
    words = [plural(asked, "run") + " asked for"]
    if the_plan.duplicates:
        words.append(f"{the_plan.duplicates} merged as duplicates")
    if the_plan.excluded:
        words.append(f"{plural(the_plan.excluded, 'combination')} excluded")
    if the_plan.skipped:
        words.append(f"{len(the_plan.skipped)} of them done already (skipped)")
    if the_plan.busy:
        words.append(f"{len(the_plan.busy)} being trained by another process, left to it and waited for")
    words.append(f"{len(the_plan.todo)} to train")
    print(f"{the_plan.root / the_plan.study}: {', '.join(words)}", flush=True)
    for cell in the_plan.skipped:
        if lacking := unrecorded(cell):
            print(
                f"{cell.run_id} was recorded without {', '.join(lacking)} (sweep.redo=true trains it again)"
            )


def _show(the_plan: Plan) -> None:
    """The tables of the runs asked for; the page shows the whole study."""
    whole = study_results(the_plan.root, the_plan.study)
    ids = [cell.run_id for cell in the_plan.cells]
    present = {run.run_id: run for run in whole.runs}
    asked = [present[run_id] for run_id in ids if run_id in present]
    results = whole if len(asked) == len(whole.runs) else Results.of(asked)
    command = answer_command(the_plan.root / the_plan.study, the_plan.study, whole.runs)
    analysis = Analysis.of(results)
    show_study(results, f"study {the_plan.study}", command, analysis)
    counts = Counter(r.verdict or r.state for r in asked)
    print(", ".join(f"{n} {word}" for word, n in sorted(counts.items())))
    try:
        page = write_report(the_plan.root, the_plan.study, whole, analysis if results is whole else None)
        print(f"page: {page}")
    except OSError as error:  # the runs are safe in their folders
        print(f"page not written: {error}", file=sys.stderr)
