"""What a sweep would run."""

from ablate.config import flatten
from ablate.record import RunFolder
from ablate.sweep import Cell, Plan
from ablate.view.facts import Arms, RunFacts
from ablate.view.table import Table, table
from ablate.view.text import number, plural, value


def plan_table(plan: Plan) -> Table:
    """One row a run: id, arm, learning rate, seed, and whether it is done, missing or at work."""
    runs = [_planned(plan, cell) for cell in plan.cells]
    arms = Arms.of(runs)
    todo = {cell.run_id for cell in plan.todo}
    rows = [
        (
            r.run_id,
            arms.label(r),
            number(r.lr, 6),
            value(r.seed),
            r.state,
            "yes" if r.run_id in todo else "no",
        )
        for r in runs
    ]
    title = " × ".join(
        plural(len(set(values)), word)
        for values, word in (
            ([arms.label(r) for r in runs], "arm"),
            ([r.lr for r in runs], "learning rate"),
            ([r.seed for r in runs], "seed"),
        )
    )
    return table(("id", "arm", "lr", "seed", "state", "to train"), rows, title=title, right=("lr", "seed"))


def _planned(plan: Plan, cell: Cell) -> RunFacts:
    folder = cell.folder or RunFolder(plan.root / plan.study / f"planned-{cell.run_id}")
    return RunFacts(
        folder=folder,
        run_id=cell.run_id,
        study=plan.study,
        slug="planned",
        state="missing" if cell.state is None else str(cell.state),
        reason=None,
        attempt=0,
        owner=None,
        flat=flatten(cell.config),
        summary={},
        fingerprint=cell.fingerprint,
        step=None,
    )
