"""One run as a flat row of facts, from whatever its folder holds: running, killed or half written."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ablate.config import FieldClass, UserError, fields, flatten
from ablate.record import Owner, Run, RunFolder, read_status
from ablate.view.arms import BIAS, DATA, Factor, arm_label, bias_words, factors, with_bias_words
from ablate.view.follow import last_row
from ablate.view.text import as_float, one_line, value

T = TypeVar("T")


@dataclass(frozen=True)
class RunFacts:
    """What is known of one run. `flat`: its configuration by dotted key; `summary`: its results so far."""

    folder: RunFolder
    run_id: str
    study: str
    slug: str
    state: str
    reason: str | None
    attempt: int
    owner: Owner | None
    flat: Mapping[str, object]
    summary: Mapping[str, object]
    fingerprint: str | None
    step: int | None  # steps completed

    @property
    def verdict(self) -> str | None:
        word = self.summary.get("verdict")
        return None if word is None else str(word)

    @property
    def lr(self) -> float | None:
        return as_float(self.flat.get("optim.lr"))

    @property
    def seed(self) -> object:
        return self.flat.get("seed")

    @property
    def val(self) -> float | None:
        return final_val(self.summary)


def final_val(summary: Mapping[str, object]) -> float | None:
    """Held-out loss at the end of a run; NaN for one that was stopped before because it was not finite."""
    if "verdict" not in summary:
        return None
    ended = summary.get("final/val/step") == summary.get("planned_steps")
    return as_float(summary.get("final/val/loss")) if ended else math.nan


def read_facts(folder: RunFolder) -> RunFacts:
    """Everything a table needs of one run; an unreadable part is absent, the rest stands."""
    run = Run(folder)
    status = read_status(folder)
    meta = _lenient(lambda: run.meta) or {}
    summary = _lenient(lambda: run.summary) or {}
    flat = meta.get("config") or _lenient(lambda: flatten(run.config)) or {}
    return RunFacts(
        folder=folder,
        run_id=folder.id,
        study=folder.study,
        slug=folder.name.replace(f"-{folder.id}", "", 1),
        state=str(status.state),
        reason=status.reason,
        attempt=status.attempt,
        owner=status.owner,
        flat=flat,
        summary=summary,
        fingerprint=(meta.get("data") or {}).get("fingerprint"),
        step=_steps(folder, summary),
    )


@dataclass(frozen=True)
class Arms:
    """The factors of a set of runs, and each run's arm by its folder."""

    factors: tuple[Factor, ...]
    labels: Mapping[RunFolder, str]

    @classmethod
    def of(cls, runs: Sequence[RunFacts]) -> "Arms":
        """Compare the runs; data that differ count as a factor where no key tells them apart."""
        whole = [r for r in runs if r.flat]
        flats = with_bias_words([r.flat for r in whole])
        keys = [f.key for f in fields() if f.klass is FieldClass.science]
        if len({r.fingerprint for r in whole} - {None}) > 1:
            keys = [*(f.key for f in fields() if f.sweepable), DATA]
            flats = [{**flat, DATA: r.fingerprint} for flat, r in zip(flats, whole, strict=True)]
        varied = factors(flats, keys)
        labels = {r.folder: arm_label(flat, varied) for flat, r in zip(flats, whole, strict=True)}
        return cls(varied, labels)

    def label(self, run: RunFacts) -> str:
        """The run's arm; `-` when only learning rate and seed vary, `?` without a readable config."""
        return self.labels.get(run.folder, "?")


COLUMNS: Mapping[str, Callable[[RunFacts, Arms], object]] = {
    "id": lambda run, _: run.run_id,
    "study": lambda run, _: run.study,
    "slug": lambda run, _: run.slug,
    "state": lambda run, _: run.state,
    "verdict": lambda run, _: run.verdict,
    "arm": lambda run, arms: arms.label(run),
    "lr": lambda run, _: run.lr,
    "seed": lambda run, _: run.seed,
    "step": lambda run, _: run.step,
    "loss": lambda run, _: run.val,
    "attempt": lambda run, _: run.attempt,
    "reason": lambda run, _: None if run.reason is None else one_line(run.reason),
    "path": lambda run, _: str(run.folder.path),
}


def lookup(run: RunFacts, key: str, arms: Arms) -> object:
    """A column, configuration key or summary key of a run; None when it has none."""
    if key in COLUMNS:
        return COLUMNS[key](run, arms)
    return run.flat[key] if key in run.flat else run.summary.get(key)


def check_keys(keys: Iterable[str], runs: Sequence[RunFacts]) -> None:
    """Refuse a column or filter that no run knows. Raises UserError with the nearest names."""
    import difflib

    settings = {*COLUMNS, *(f.key for f in fields())}
    for key in keys:
        if key in settings or any(key in run.summary for run in runs):
            continue
        known = {*settings, *(k for r in runs for k in r.summary)}
        if key not in known:
            near = difflib.get_close_matches(key, sorted(known), n=3)
            raise UserError(
                f"no run has {key!r}",
                allowed=f"{', '.join(COLUMNS)}, any configuration key, any summary key",
                hint=" or ".join(near) or "ablate config --keys",
            )


def matches(run: RunFacts, key: str, wanted: str, arms: Arms) -> bool:
    """Does the run's value read as `wanted`? Numbers by value (3e-4 is 0.0003), the rest by their words."""
    item = lookup(run, key, arms)
    if isinstance(item, int | float) and not isinstance(item, bool):
        return as_float(wanted) == float(item)
    words = bias_words(run.flat) if key == BIAS else []
    return wanted in {*words, value(item), str(item)}


def _steps(folder: RunFolder, summary: Mapping[str, object]) -> int | None:
    known = summary.get("steps")
    if isinstance(known, int):
        return known
    row = last_row(folder.metrics())
    return None if row is None else row.step + 1


def _lenient(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except (OSError, ValueError, KeyError):
        return None
