"""The page about one run: what became of it and why, how it went, what it was."""

import shlex
from collections.abc import Sequence

from ablate.config import UserError, VerdictConfig, flatten, parse
from ablate.record import Run, State
from ablate.sweep import nearest_checkpoint
from ablate.verdict import Kind, Verdict
from ablate.view.accounting import model_words
from ablate.view.around import check_step, course_table, fastest_table, growth_around, probes_table
from ablate.view.configs import differences
from ablate.view.facts import RunFacts
from ablate.view.recorded import FACTS, all_facts, short_facts
from ablate.view.reruns import compared, original, reruns_table
from ablate.view.table import Table, table
from ablate.view.text import loss, one_line, value

UNSTABLE = (Kind.diverged, Kind.collapsed)
CLOSER = "(to begin closer, train with run.keep=ring and a small run.checkpoint_every: docs/rerun.md)"
OUTPUTS = 2  # linears whose outputs stand beside the probes


def run_page(
    run: Run,
    facts: RunFacts,
    *,
    replay: Table | None = None,
    step: int | None = None,
    everything: bool = False,
) -> list[Table]:
    """The tables of `ablate show`, in order; parts a run does not have (yet) are left out.

    `replay`: its verdict by other thresholds. `step`: look at the growth and the probes around this step; a
    repetition, which probes every step, is looked at where it went bad or ended if no step is given.
    Raises UserError for a step that is not recorded.
    """
    if step is not None:
        check_step(run, step)
    elif original(run.folder) is not None and len(run.series()):
        bad = _onset(facts)
        step = int(run.series().steps[-1]) if bad is None else bad
    names = [name for name, _ in growth_around(run, step)[0]]
    tables = [
        _outcome(run, facts),
        replay,
        fastest_table(run, facts.flat.get("optim.steps"), step) if names else None,
        course_table(run, names[0] if names else None),
        None if step is None else probes_table(run, step, names[:OUTPUTS]),
        differences(facts.flat, flatten(parse({}))),
        all_facts(run.meta) if everything else short_facts(run.meta),
        reruns_table(run),
        _where(facts),
    ]
    return [t for t in tables if t is not None and t.rows]


def replayed(before: Verdict, after: Verdict, thresholds: VerdictConfig, names: Sequence[str]) -> Table:
    """Two verdicts on one curve: with the recorded thresholds and with others."""
    changed = ", ".join(f"{n}={value(getattr(thresholds, n.rsplit('.', 1)[-1]))}" for n in names)
    rows = [
        ("recorded thresholds", before.kind, "; ".join(before.reasons)),
        (changed, after.kind, "; ".join(after.reasons)),
    ]
    return table(("thresholds", "verdict", "why"), rows, title="verdict, replayed")


def _outcome(run: Run, facts: RunFacts) -> Table:
    reasons = facts.summary.get("reasons")
    why = [str(r) for r in reasons] if isinstance(reasons, list) else []
    owner = facts.owner if facts.state == State.running else None
    repeated = original(run.folder)
    rows: list[tuple[str, object]] = [
        *([] if (model := _model(run)) is None else [("model", model)]),
        ("verdict", facts.verdict or "-"),
        *(("why", line) for line in why),
        *([] if (onset := _onset(facts)) is None else [("broke down", f"at step {onset}")]),
        ("final val", loss(facts.val)),
        ("state", facts.state + (f": {one_line(facts.reason)}" if facts.reason else "")),
        ("steps", f"{facts.step if facts.step is not None else 0} of {facts.flat.get('optim.steps', '?')}"),
        *([("attempt", facts.attempt)] if facts.attempt > 1 else []),
        *([("trained by", f"process {owner.pid} on {owner.host}")] if owner else []),
        *([("rows, compared", compared(Run(repeated), run.folder))] if repeated else []),
    ]
    return table(FACTS, rows, title=f"{facts.study}/{facts.folder.name}")


def _model(run: Run) -> str | None:
    """The preset that the model was made from, its scale and what was changed of it; None without one."""
    try:
        return None if run.config.model.preset is None else model_words(run.config)
    except UserError as error:
        return f"unknown: {error.problem}"


def _onset(facts: RunFacts) -> int | None:
    """The step at which the run broke down; None if it did not, or has not ended."""
    onset = facts.summary.get("onset_step", facts.summary.get("first_bad_step"))
    return onset if isinstance(onset, int) else None


def _again(facts: RunFacts) -> list[tuple[str, str]]:
    """The commands that repeat the run: the whole of it, and from before its breakdown."""
    repeat = f"ablate rerun {shlex.quote(str(facts.folder.path))}"
    if (onset := _onset(facts)) is None:
        if facts.verdict not in UNSTABLE:
            return [("repeat", repeat)]
        look = f"{repeat} --from-step 0"
        return [("repeat", repeat), ("look into it", look), ("", "(probes every step, from the start)")]
    before = max(0, onset - 1)
    start = nearest_checkpoint(facts.folder, before)
    begins = "step 0: no checkpoint remains" if start is None else f"the checkpoint of step {start}"
    return [
        ("repeat", repeat),
        ("look into it", f"{repeat} --from-step {before}"),
        ("", f"(probes every step; begins at {begins})"),
        *([("", CLOSER)] if start is None else []),
    ]


def _where(facts: RunFacts) -> Table:
    folder = facts.folder
    rows = [
        ("folder", str(folder.path)),
        ("log", str(folder.stdout)),
        *([] if original(folder) else _again(facts)),
    ]
    return table(("what", "where"), rows, title="paths", whole=("where",))
