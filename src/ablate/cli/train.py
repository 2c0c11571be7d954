"""`ablate train`: one run."""

import argparse

from ablate.cli.codes import ALL_DONE, SOME_FAILED
from ablate.cli.work import resume_command, work
from ablate.config import UserError, compose
from ablate.record import Run, RunFolder, State
from ablate.sweep import Cell, freeze, plan_cells, prepare_data
from ablate.view import clean, final_val, loss


def run(args: argparse.Namespace) -> int:
    """Freeze the run's folder, train it, say what became of it."""
    config = compose(args.overrides)
    the_plan = plan_cells(config, (), [config])
    (cell,) = the_plan.cells
    _refuse_busy(cell)
    if cell.done and not the_plan.redo:
        assert cell.folder is not None
        print(f"already done (sweep.redo=true trains it again): {cell.folder.path}")
        _outcome(cell.folder)
        return ALL_DONE
    prepare_data(the_plan, print)
    (folder,) = freeze(the_plan, print)
    _, code = work([folder], {folder.name: cell.config}, resume_command("train", args.overrides))
    if code in (ALL_DONE, SOME_FAILED):
        _outcome(folder)
    return code


def _refuse_busy(cell: Cell) -> None:
    if cell.state is State.running and cell.owner is not None:
        assert cell.folder is not None
        raise UserError(
            f"{cell.folder.path} is being trained by process {cell.owner.pid} on {cell.owner.host}",
            hint=f"ablate show {cell.run_id}",
        )


def _outcome(folder: RunFolder) -> None:
    summary = Run(folder).summary
    if summary:
        print(f"verdict: {clean(summary['verdict'])}")
        for reason in summary["reasons"]:
            print(f"  {clean(reason)}")
        print(f"final val: {loss(final_val(summary))}")
    print(f"folder: {folder.path}")
