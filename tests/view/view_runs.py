"""Made-up runs for the tests of tables."""

from pathlib import Path

from ablate.config import flatten, parse
from ablate.record import RunFolder
from ablate.view import RunFacts


def made_run(
    number: int,
    changes: dict[str, object] | None = None,
    *,
    state: str = "done",
    verdict: str | None = "stable",
    val: object = 3.0,
    growth: dict[str, float] | None = None,
    fingerprint: str | None = "f" * 64,
    study: str = "s",
) -> RunFacts:
    """A run whose configuration is the default with `changes` (dotted keys)."""
    raw: dict[str, dict[str, object] | object] = {}
    for key, item in (changes or {}).items():
        section, _, name = key.rpartition(".")
        if section:
            raw.setdefault(section, {})[name] = item
        else:
            raw[name] = item
    identity = f"{number:012x}"
    summary: dict[str, object] = {}
    if verdict is not None:
        summary = {"verdict": verdict, "reasons": ["because"], "final/val/loss": val, "steps": 200}
        summary |= {"final/val/step": 200, "planned_steps": 200}
        summary |= {f"growth/{name}": rate for name, rate in (growth or {}).items()}
    return RunFacts(
        folder=RunFolder(Path("runs") / study / f"made-{identity}"),
        run_id=identity,
        study=study,
        slug="made",
        state=state,
        reason=None,
        attempt=1,
        owner=None,
        flat=flatten(parse(raw)),
        summary=summary,
        fingerprint=fingerprint,
        step=200,
    )
