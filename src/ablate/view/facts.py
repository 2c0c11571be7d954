"""One run as a flat row of facts, from whatever its folder holds: running, killed or half written."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

from ablate.config import FieldClass, fields, flatten, parse
from ablate.record import Owner, Run, RunFolder, read_status
from ablate.view.arms import AXES, DATA, Factor, arm_label, arm_rank, columns, factors, readable
from ablate.view.follow import last_row
from ablate.view.shared import changed
from ablate.view.text import Rank, as_float, as_mapping, one_line, rank

T = TypeVar("T")
SHORT = 8  # hex digits of an id or a fingerprint that tell people enough


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
    flat = as_mapping(meta.get("config")) or _lenient(lambda: flatten(run.config)) or {}
    fingerprint = as_mapping(meta.get("data")).get("fingerprint")
    return RunFacts(
        folder=folder,
        run_id=folder.id,
        study=folder.study,
        slug=folder.name.replace(f"-{folder.id}", "", 1),
        state=str(status.state),
        reason=status.reason,
        attempt=status.attempt,
        owner=status.owner,
        flat=with_later_keys(flat),
        summary=summary,
        fingerprint=fingerprint if isinstance(fingerprint, str) else None,
        step=_steps(folder, summary),
    )


def with_later_keys(flat: Mapping[str, object]) -> Mapping[str, object]:
    """A recorded configuration with the settings that were added after it, at the value for "as before".

    So runs of one study that were recorded before and after do not differ by them.
    """
    missing = [key for key in _later_keys() if key not in flat] if flat else []
    return {**flat, **{key: _later_keys()[key] for key in missing}} if missing else flat


@cache
def _later_keys() -> Mapping[str, object]:
    defaults = flatten(parse({}))
    later = [f.key for f in fields() if "neutral" in f.rules or f.klass is FieldClass.control]
    return {key: defaults[key] for key in later if key in defaults}


@dataclass(frozen=True)
class Arms:
    """The factors of a set of runs, and each run's arm (its label and its rank) by its folder."""

    factors: tuple[Factor, ...]
    labels: Mapping[RunFolder, str]
    ranks: Mapping[RunFolder, tuple[Rank, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, runs: Sequence[RunFacts]) -> "Arms":
        """Compare the runs; data that differ count as a factor where no key tells them apart."""
        whole = [r for r in runs if r.flat]
        flats = readable([r.flat for r in whole])
        keys = [f.key for f in fields() if f.klass is FieldClass.science]
        prints = {r.fingerprint for r in whole if r.fingerprint is not None}
        if len(prints) > 1:
            keys.append(DATA)
            short = _beginnings(prints)
            shown = [short.get(r.fingerprint, "?") for r in whole]
            flats = [changed(flat, {DATA: digits}) for flat, digits in zip(flats, shown, strict=True)]
        varied = factors(flats, keys)
        told = columns(flats, [f.key for f in varied if f.key not in AXES]).values()
        arms = [*zip(*(map(repr, column) for column in told), strict=True)] or [()] * len(whole)
        named: dict[tuple[str, ...], tuple[str, tuple[Rank, ...]]] = {}  # many runs share an arm
        labels, ranks = {}, {}
        for run, flat, arm in zip(whole, flats, arms, strict=True):
            if arm not in named:
                named[arm] = arm_label(flat, varied), arm_rank(flat, varied)
            labels[run.folder], ranks[run.folder] = named[arm]
        return cls(varied, labels, ranks)

    @classmethod
    def by_study(cls, runs: Sequence[RunFacts]) -> "Arms":
        """Each study's runs compared among themselves: a run's arm does not depend on other studies."""
        studies: dict[str, list[RunFacts]] = {}
        for run in runs:
            studies.setdefault(run.study, []).append(run)
        found = [cls.of(group) for group in studies.values()]
        if len(found) == 1:
            return found[0]
        return cls(
            tuple(factor for arms in found for factor in arms.factors),
            {folder: label for arms in found for folder, label in arms.labels.items()},
            {folder: ranks for arms in found for folder, ranks in arms.ranks.items()},
        )

    def label(self, run: RunFacts) -> str:
        """The run's arm; `-` when only learning rate and seed vary, `?` without a readable config."""
        return self.labels.get(run.folder, "?")

    def order(self, run: RunFacts) -> tuple[object, ...]:
        """Sorts runs by study, arm, learning rate and seed; those without a readable config last."""
        known = self.ranks.get(run.folder)
        return run.study, known is None, known or (), rank(run.lr), rank(run.seed)


def _beginnings(prints: Iterable[str]) -> dict[str | None, str]:
    """Fingerprints by as many of their first digits as tell them apart, at least `SHORT`."""
    whole = set(prints)
    digits = SHORT
    while len({text[:digits] for text in whole}) < len(whole):
        digits += 1
    return {text: text[:digits] for text in whole}


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
    "final_val": lambda run, _: run.val,
    "attempt": lambda run, _: run.attempt,
    "data": lambda run, _: run.fingerprint,
    "reason": lambda run, _: None if run.reason is None else one_line(run.reason),
    "path": lambda run, _: str(run.folder.path),
}


def column(runs: Iterable[RunFacts], key: str, arms: Arms) -> list[object]:
    """`lookup` of the same key for many runs."""
    if key in COLUMNS:
        read = COLUMNS[key]
        return [read(run, arms) for run in runs]
    return [run.flat[key] if key in run.flat else run.summary.get(key) for run in runs]


def lookup(run: RunFacts, key: str, arms: Arms) -> object:
    """A column, configuration key or summary key of a run; None when it has none."""
    return column((run,), key, arms)[0]


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
