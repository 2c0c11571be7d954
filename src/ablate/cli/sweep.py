"""`ablate sweep`: every combination of the given values."""

import argparse
from collections import Counter

from ablate.cli.codes import ALL_DONE, SOME_FAILED
from ablate.cli.work import resume_command, work
from ablate.config import to_dict
from ablate.record import find_runs, write_request
from ablate.sweep import Plan, freeze, plan, prepare_data, requested_factors, unrecorded
from ablate.view import emit, plan_table, plural, read_facts, study_table


def run(args: argparse.Namespace) -> int:
    """Plan, say what there is to do, do it, print the study's table.

    Runs that another process is training are left to it; as they are not done, the exit code is 1.
    """
    the_plan = plan(args.overrides)
    _announce(the_plan)
    if args.plan:
        emit(plan_table(the_plan))
        return ALL_DONE
    todo = the_plan.todo
    code = ALL_DONE
    if todo:
        prepare_data(the_plan, print)
        folders = freeze(the_plan, print)
        write_request(
            the_plan.root,
            the_plan.study,
            ["ablate", "sweep", *args.overrides],
            requested_factors(the_plan.axes),
            to_dict(the_plan.base),
            [c.run_id for c in the_plan.cells],
        )
        configs = {f.name: c.config for c, f in zip(todo, folders, strict=True)}
        _, code = work(folders, configs, resume_command("sweep", args.overrides))
    _show(the_plan)
    return code or (SOME_FAILED if the_plan.busy else ALL_DONE)


def _announce(the_plan: Plan) -> None:
    asked = len(the_plan.cells) + the_plan.duplicates
    words = [plural(asked, "run") + " asked for"]
    if the_plan.duplicates:
        words.append(f"{the_plan.duplicates} merged as duplicates")
    if the_plan.skipped:
        words.append(f"{len(the_plan.skipped)} of them done already (skipped)")
    if the_plan.busy:
        words.append(f"{len(the_plan.busy)} being trained by another process, left to it")
    words.append(f"{len(the_plan.todo)} to train")
    print(f"{the_plan.root / the_plan.study}: {', '.join(words)}", flush=True)
    for cell in the_plan.skipped:
        if lacking := unrecorded(cell):
            print(
                f"{cell.run_id} was recorded without {', '.join(lacking)} (sweep.redo=true trains it again)"
            )


def _show(the_plan: Plan) -> None:
    present = {folder.id: folder for folder in find_runs(the_plan.root, the_plan.study)}
    runs = [read_facts(present[c.run_id]) for c in the_plan.cells if c.run_id in present]
    emit(study_table(runs, title=f"study {the_plan.study}"))
    counts = Counter(r.verdict or r.state for r in runs)
    print(", ".join(f"{n} {word}" for word, n in sorted(counts.items())))
