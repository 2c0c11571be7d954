"""The summary of a W&B run: the record's own, finite throughout, and what charts need beside it."""

import math
from collections.abc import Mapping
from typing import Any

from ablate.record import Run
from ablate.verdict import Kind
from ablate.view import RunFacts, as_float, clean

KEPT = ("final/", "best/", "max/", "growth/", "measures/")
CAPPED = "final/loss_capped"
REASON_LENGTH = 1000


def run_summary(run: Run, facts: RunFacts) -> dict[str, Any]:
    """Finite numbers, booleans and strings.

    A key whose value is not finite is left out and named in `nonfinite`: it must stay a number in every run
    of a project. `final/val/loss` is only there if the run came to its end with an evaluation.
    `final/loss_capped` always is: final held-out loss, at most that at step 0, as LR sensitivity counts it.
    """
    summary = facts.summary
    words: dict[str, Any] = {
        "state": facts.state,
        "attempt": facts.attempt,
        "steps": facts.step or 0,
        "verdict": facts.verdict or "none",
        "diverged": facts.verdict == Kind.diverged,
    }
    if facts.reason:
        words["reason"] = clean(facts.reason, REASON_LENGTH)
    if reasons := summary.get("reasons"):
        assert isinstance(reasons, list)
        words["verdict_reasons"] = clean("; ".join(map(str, reasons)), REASON_LENGTH)
    if isinstance(step := summary.get("first_bad_step"), int):
        words["diverged_step"] = step
    numbers, lost = _numbers(summary)
    if facts.val is None or not math.isfinite(facts.val):
        numbers.pop("final/val/loss", None)
    if (capped := _capped(summary, facts)) is not None:
        numbers[CAPPED] = capped
    if lost:
        words["nonfinite"] = " ".join(lost)
    return {**words, **numbers, **_time(run)}


def _numbers(summary: Mapping[str, object]) -> tuple[dict[str, float], list[str]]:
    found, lost = {}, []
    for key, item in summary.items():
        number = as_float(item)
        if number is None or not key.startswith(KEPT):
            continue
        if math.isfinite(number):
            found[key] = number
        else:
            lost.append(key)
    return found, lost


def _capped(summary: Mapping[str, object], facts: RunFacts) -> float | None:
    start = as_float(summary.get("measures/l0"))
    if facts.val is None or start is None or not math.isfinite(start):
        return None
    return min(facts.val, start) if math.isfinite(facts.val) else start


def _time(run: Run) -> dict[str, float]:
    """Seconds of the last attempt's training loop, and its speed over the whole of it."""
    timing = run.series("timing")
    if not len(timing):
        return {}
    seconds = float(timing.column("seconds")[-1])
    return {"runtime_s": seconds, "cpu_s": float(timing.column("cpu_seconds")[-1])}
