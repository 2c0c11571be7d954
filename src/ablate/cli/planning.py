"""What `ablate sweep` says and checks before anything is launched."""

import sys
from collections.abc import Sequence

from ablate.config import Config
from ablate.sweep import (
    Descriptions,
    Duration,
    Plan,
    WorkerError,
    check_confounds,
    check_memory,
    check_weights,
    describe_models,
    estimate_time,
    need_words,
    needs,
    paired_proof,
)
from ablate.view import (
    arms_table,
    cost_words,
    emit,
    factor_words,
    number,
    plan_table,
    planned_arms,
    plural,
    shape_words,
    time_words,
)


def show_plan(the_plan: Plan) -> None:
    """The whole plan: every run, every arm, the cost. Raises UserError for weights that are not the model,
    before; for confounded arms, in the end.
    """
    check_weights(cell.config for cell in the_plan.todo)
    arms = planned_arms(the_plan)
    descriptions = describe_models([arm.config for arm in arms], say)
    emit(plan_table(the_plan, arms))
    print()
    emit(arms_table(the_plan, arms, descriptions))
    print(f"factors: {factor_words(the_plan)}")
    print(f"to train: {plural(len(the_plan.todo), 'run')}, {time_words(_time(the_plan))}")
    _say_memory(the_plan, descriptions)
    check_confounds(the_plan, descriptions)


def _say_memory(the_plan: Plan, descriptions: Descriptions) -> None:
    """The memory of the largest runs at once by part, and whether a launch would be refused."""
    configs = [cell.config for cell in the_plan.todo]
    for need in needs(configs, descriptions) if configs else ():
        print(need_words(need))
        if not need.fits:
            print("that does not fit: begun all the same (run.force=true)" if need.forced else
                  "that does not fit: it would be refused, unless run.force=true")  # fmt: skip
    sys.stdout.flush()


def check_and_summarise(the_plan: Plan) -> None:
    """The plan in a few lines. Raises UserError for confounded arms, for weights that are not the model, and
    for too little memory, before.
    """
    check_weights(cell.config for cell in the_plan.todo)
    arms = planned_arms(the_plan)
    descriptions = describe_models([arm.config for arm in arms], say)
    check_confounds(the_plan, descriptions)
    check_memory([cell.config for cell in the_plan.todo], say, descriptions)
    print(f"{shape_words(the_plan, arms)}; factors: {factor_words(the_plan)}")
    print(cost_words(the_plan, arms, descriptions, _time(the_plan)), flush=True)


def fits(configs: Sequence[Config], recorded: bool = False) -> bool:
    """Raise UserError where memory will not do for these runs (see `check_memory`); False where the worker
    that describes their models died, which is said.
    """
    try:
        check_memory(configs, say, recorded=recorded)
    except WorkerError as error:
        say(f"error: {error}")
        return False
    return True


def say_proof(the_plan: Plan) -> None:
    """Whether runs that differ only in zero-initialised biases began with equal losses."""
    proof = paired_proof(the_plan)
    if not proof.groups:
        return
    if not proof.broken:
        print(
            f"paired: {plural(proof.groups, 'set')} of runs that differ only in their biases begin with the "
            f"same loss (largest difference {number(proof.largest)} nats)"
        )
        return
    print(
        f"WARNING: {len(proof.broken)} of {plural(proof.groups, 'set')} of runs that differ only in biases "
        f"that start at zero do NOT begin with the same loss (by up to {number(proof.largest)} nats): they "
        "are no pairs, do not compare them",
        file=sys.stderr,
    )
    for runs in proof.broken:
        print(f"  {' '.join(runs)}", file=sys.stderr)


def _time(the_plan: Plan) -> Duration:
    return estimate_time(the_plan.root, [cell.config for cell in the_plan.todo])


def say(text: str) -> None:
    """Announce something that takes a moment."""
    print(text, file=sys.stderr, flush=True)
