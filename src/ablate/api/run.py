"""One recorded run: what it was, what became of it, its rows, its repetitions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ablate.api.frames import series_frame, whole
from ablate.config import UserError, VerdictConfig, nearest
from ablate.record import Run
from ablate.verdict import Verdict
from ablate.view import RunFacts, read_facts
from ablate.view.reruns import original, repetitions

if TYPE_CHECKING:
    import pandas as pd


class RecordedRun:
    """A run of a study, or a repetition of one (`name` is `<id>/reruns/001` then)."""

    def __init__(self, facts: RunFacts, arm: str) -> None:
        self._facts, self.arm = facts, arm
        self._run = Run(facts.folder)

    @property
    def name(self) -> str:
        """The run's id; for a repetition with its number behind."""
        _, slash, number = self._facts.folder.name.partition("/")
        return self._facts.run_id + slash + number

    @property
    def path(self) -> Path:
        """Its folder."""
        return self._facts.folder.path

    @property
    def state(self) -> str:
        """queued, running, done, failed, preempted or killed, when it was read."""
        return self._facts.state

    @property
    def verdict(self) -> str | None:
        """What became of it; None as long as it has not ended."""
        return self._facts.verdict

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it has this verdict."""
        found = self._facts.summary.get("reasons") or ()
        return tuple(map(str, found)) if isinstance(found, list | tuple) else ()

    @property
    def lr(self) -> float | None:
        """Its peak learning rate."""
        return self._facts.lr

    @property
    def seed(self) -> int | None:
        """Its seed."""
        return whole(self._facts.seed)

    @property
    def final_val(self) -> float | None:
        """Held-out loss at its end, nats; NaN if it was stopped before, None if it has not ended."""
        return self._facts.val

    @property
    def first_bad_step(self) -> int | None:
        """First step whose loss or gradient is not finite."""
        return whole(self._facts.summary.get("first_bad_step"))

    @property
    def config(self) -> Mapping[str, object]:
        """The whole configuration by dotted key; empty if it cannot be read."""
        return self._facts.flat

    @property
    def summary(self) -> Mapping[str, object]:
        """summary.json (docs/records.md lists its keys); empty as long as it has not ended."""
        return self._facts.summary

    @cached_property
    def meta(self) -> Mapping[str, Any]:
        """meta.json: versions, machine, facts of the data and of the built model. Empty before it began."""
        return self._run.meta

    @property
    def from_step(self) -> int:
        """The step at which a repetition began (`ablate rerun --from-step`); 0 for any other run."""
        repeats = original(self._facts.folder) is not None
        return (whole(self.meta.get("from_step")) or 0) if repeats else 0

    def series(self, columns: Sequence[str] | str | None = None) -> "pd.DataFrame":
        """A row a step: `run`, `step`, and all columns, or those that names and patterns mean.

        Raises UserError for unknown columns and for a file that cannot be read.
        """
        return self._rows("", columns)

    def val(self) -> "pd.DataFrame":
        """A row an evaluation: `run`, `step`, `val/loss`."""
        return self._rows("val", None)

    def probes(self, columns: Sequence[str] | str | None = None) -> "pd.DataFrame":
        """A row a step at which the costlier probes measured."""
        return self._rows("probe", columns)

    def judge(self, **thresholds: float | int) -> Verdict:
        """The verdict with other thresholds (`cap=0.1` for `verdict.cap`), from the recorded rows.

        Raises UserError for an unknown threshold, and for a record with gaps.
        """
        known = self._run.config.verdict
        for name in thresholds:
            if not hasattr(known, name):
                hint = nearest(name, list(vars(VerdictConfig())))
                raise UserError(f"no threshold {name!r}", allowed="ablate config --keys verdict", hint=hint)
        return self._run.verdict(replace(known, **thresholds))  # type: ignore[arg-type]  # checked above, by name

    @property
    def reruns(self) -> tuple["RecordedRun", ...]:
        """Its repetitions (`ablate rerun`), oldest first, read anew each time."""
        return tuple(RecordedRun(read_facts(folder), self.arm) for folder in repetitions(self._facts.folder))

    def __repr__(self) -> str:
        return f"<run {self.name}: {self.arm} lr={self.lr} seed={self.seed}, {self.verdict or self.state}>"

    def _rows(self, cadence: str, columns: Sequence[str] | str | None) -> "pd.DataFrame":
        self._run.series(cadence)  # raises where a table of many runs would leave this one out
        return series_frame([(self.name, self._facts.folder)], cadence, columns)
