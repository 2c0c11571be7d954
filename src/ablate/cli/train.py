"""`ablate train`: one run."""

import argparse

from ablate.cli.codes import ALL_DONE, SOME_FAILED
from ablate.cli.planning import fits
from ablate.cli.work import check_mode, mirrored, resume_command, work
from ablate.config import UserError, compose
from ablate.mirror import is_agents
from ablate.record import Run, RunFolder, State, read_status
from ablate.sweep import check_weights, freeze, plan_cells, prepare_data
from ablate.view import clean, final_val, loss


def run(args: argparse.Namespace) -> int:
    """Freeze the run's folder, train it, say what became of it."""
    config = compose(args.overrides)
    the_plan = plan_cells(config, (), [config])
    (cell,) = the_plan.cells
    if cell.state is State.running:
        assert cell.folder is not None
        raise _busy(cell.folder)
    if cell.done and not the_plan.redo:
        assert cell.folder is not None
        print(f"already done (sweep.redo=true trains it again): {cell.folder.path}")
        if is_agents():  # the agent's run shows the record that is there
            with mirrored([cell.folder], {cell.folder.name: cell.config}, args.overrides):
                pass
        _outcome(cell.folder)
        return ALL_DONE
    check_mode(config, args.overrides)
    check_weights([config])
    if not fits([config]):
        return SOME_FAILED
    prepare_data(the_plan, print)
    (folder,) = freeze(the_plan, print)
    resume = resume_command("train", args.overrides)
    configs = {folder.name: cell.config}
    with mirrored([folder], configs, args.overrides) as mirror:
        results, code = work([folder], configs, resume, wait=False)
        mirror.over(code)
        if any(result.state is State.running for result in results):
            raise _busy(folder)
        if code in (ALL_DONE, SOME_FAILED):
            _outcome(folder)
    return code


def _busy(folder: RunFolder) -> UserError:
    """The error for a run that another process has; its claim may not say (yet) which one."""
    owner = read_status(folder).owner
    who = "another process" if owner is None else f"process {owner.pid} on {owner.host}"
    return UserError(f"{folder.path} is being trained by {who}", hint=f"ablate show {folder.id}")


def _outcome(folder: RunFolder) -> None:
    summary = Run(folder).summary
    if summary:
        print(f"verdict: {clean(summary['verdict'])}")
        for reason in summary["reasons"]:
            print(f"  {clean(reason)}")
        print(f"final val: {loss(final_val(summary))}")
    print(f"folder: {folder.path}")
