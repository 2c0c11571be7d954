"""A study as tidy tables: runs, arms, rows, effects."""

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, Union

from ablate.api.arguments import alternatives, check_word, without_option
from ablate.api.frames import (
    BEFORE,
    BEHIND,
    RUN,
    CopiedRun,
    as_texts,
    check_texts,
    factor_names,
    levels,
    nullable,
    series_frame,
    whole,
)
from ablate.api.run import RecordedRun
from ablate.api.together import Together
from ablate.config import UserError, nearest
from ablate.record import RunFolder
from ablate.view import Arms, RunFacts, as_float, lookup, parse_filters, plural, resolve, select, value
from ablate.view.analysis import Analysis
from ablate.view.comparable import first_of_each
from ablate.view.configs import shown
from ablate.view.frames import Frame, frames
from ablate.view.results import Results
from ablate.view.text import one_line

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 8
AN_ID = "the beginning of an id in the column `run` of study.runs"
EFFECTS = {
    "response": ("ln_lr_half", "sensitivity", "unstable", "best_loss"),
    "kind": ("main", "interaction"),
}
# Runs of a study: an id or the beginning of one, several, or a table with a column `run`; None: all.
Chosen: TypeAlias = Union[str, Iterable[str], "pd.DataFrame", None]


class Study:
    """What `load_study` found in a study's folder at that moment.

    Tables are pandas frames without an index; `run` (the run's id) joins them. Frames are made anew at each
    call, so they can be changed freely.
    """

    def __init__(self, path: Path, facts: Sequence[RunFacts]) -> None:
        self.path, self.name = path, path.name
        firsts, copies = first_of_each(facts)
        for why in copies.values():
            warnings.warn(f"a copy is left out: {why}", CopiedRun, stacklevel=3)
        self._arms = Arms.of(firsts)
        self._facts = {run.run_id: run for run in sorted(firsts, key=self._arms.order)}

    @property
    def factors(self) -> dict[str, list[object]]:
        """What the study varies (learning rate and seed aside): column → its values."""
        found: dict[str, dict[str, object]] = {name: {} for name in factor_names(self._arms).values()}
        for own in self._levels.values():
            for name, item in own.items():
                found[name].setdefault(repr(item), item)
        return {name: list(items.values()) for name, items in found.items()}

    @property
    def rates(self) -> list[float]:
        """Every learning rate that a run has, upwards."""
        return sorted({r.lr for r in self._facts.values() if r.lr is not None})

    @property
    def seeds(self) -> list[int]:
        """Every seed that a run has, upwards."""
        return sorted({s for r in self._facts.values() if (s := whole(r.seed)) is not None})

    @property
    def runs(self) -> "pd.DataFrame":
        """One row a run, by arm, learning rate and seed.

        `run`, `arm`, a column for each factor, `lr`, `seed`, `state`, `verdict` (absent before it has ended),
        `impaired`, `final_val` (NaN: stopped as not finite, or not ended), `best_val`, `first_bad_step`,
        `step` (steps completed), `loss_at_start`, `unigram` (held-out level of the unigram), `twin` (id of
        its stable twin), `reason` (of a failure), `path`. What is absent is `isna()`.
        """
        rows = [self._row(run) for run in self._facts.values()]
        names = factor_names(self._arms).values()
        return nullable(rows, (*BEFORE, *names, *BEHIND))

    def facts(self, *keys: str) -> "pd.DataFrame":
        """`run` and any columns of `ablate ls`, configuration keys or summary keys (`max/grad/norm`).

        The end of a configuration key is enough (`beta2`). Raises UserError for a key that no run has.
        """
        check_texts("key", keys, "columns of `ablate ls`, configuration keys, summary keys")
        runs = list(self._facts.values())
        whole_keys = {key: resolve(key, runs) for key in keys}
        rows = [{RUN: r.run_id, **{k: self._plain(r, full) for k, full in whole_keys.items()}} for r in runs]
        return nullable(rows, (RUN, *keys))

    def select(self, *conditions: str, **levels: object) -> "pd.DataFrame":
        """The rows of `runs` that meet every condition.

        Conditions are those of `ablate ls --filter` (`"lr>1e-3"`, `"verdict!=stable"`); keywords compare for
        equality, a list gives alternatives: `select("lr>=0.01", bias=["none", "all"], seed=0)`. Raises
        UserError for an unknown key, and for a value that no run can have.
        """
        check_texts("condition", conditions, "'lr>1e-3', 'verdict!=stable', …, and key=value as keywords")
        words = [f"{key}={alternatives(item)}" for key, item in levels.items()]
        try:
            chosen = select(list(self._facts.values()), parse_filters([*conditions, *words]), arms=self._arms)
        except UserError as error:
            raise without_option(error) from None
        ids = {run.run_id for run in chosen}
        runs = self.runs
        return runs[runs[RUN].isin(ids)].reset_index(drop=True)

    def series(
        self, columns: Sequence[str] | str | None = None, runs: Chosen = None, *, long: bool = False
    ) -> "pd.DataFrame":
        """What was measured at every step (docs/metrics.md): one row a run and step.

        `columns`: names or shell patterns (`"out/*_down"`), None for all. A column that a run did not record
        is NaN there. `long`: one row a run, step and column (`run`, `step`, `column`, `value`), without what
        was not recorded. Runs that cannot be read are left out with a warning. Raises UserError for a column
        that no run has.
        """
        return series_frame(self._folders(runs), "", columns, wide=not long)

    def val(self, runs: Chosen = None) -> "pd.DataFrame":
        """Held-out losses: one row a run and evaluation."""
        return series_frame(self._folders(runs), "val", None)

    def probes(
        self, columns: Sequence[str] | str | None = None, runs: Chosen = None, *, long: bool = False
    ) -> "pd.DataFrame":
        """What the costlier probes measured on their cadence, as `series`."""
        return series_frame(self._folders(runs), "probe", columns, wide=not long)

    @property
    def arms(self) -> "pd.DataFrame":
        """One row an arm and response, over its seeds, as in the report.

        `arm`, `best_lr`, `response` (`ln_lr_half`, `sensitivity`, `unstable`, `best_loss`, and `lr50`, in
        rates), `n`, `mean`, `sd`, `low` and `high` (95 % interval, absent for fewer than 5 seeds), `interval`
        (its kind), `bound`, `n_capped`, `n_censored`, `n_missing`, `notes`. docs/statistics.md defines each.
        """
        return self._table("arms")

    @property
    def by_seed(self) -> "pd.DataFrame":
        """One row an arm and seed: LR½ (`lr_half`, `bound`, `bracket_*`), LR sensitivity with its parts, …"""
        return self._table("seeds")

    @property
    def floor(self) -> "pd.DataFrame":
        """The noise floor of each response: placebo pairs where there are some, and disjoint seeds."""
        return self._table("floor")

    def effects(self, response: str | None = None, kind: str | None = None) -> "pd.DataFrame":
        """Main effects and two-way interactions of the factors, paired by seed, as in the report.

        `response` and `kind` (`main`, `interaction`) choose rows; `p_holm` is over the whole family anyway.
        Columns: `response`, `contrast`, `kind`, those of `arms` from `n` on, `flip_low`, `flip_high`, the p
        of each test with the smallest one attainable, `p`, `mde`, `p_holm`, `noise_floor` (half-width of its
        band), `detected`, `blocks_left_out`. Raises UserError for a response or kind that there is not.
        """
        effects = self._table("effects")
        for name, wanted in (("response", response), ("kind", kind)):
            if wanted is not None:
                check_word(name, wanted, EFFECTS[name])
                effects = effects[effects[name] == wanted].reset_index(drop=True)
        return effects

    def run(self, run: str) -> RecordedRun:
        """One run, by its id or the beginning of it; `<id>/reruns/001` is a repetition.

        Raises UserError if none fits, or several do.
        """
        check_texts("run", [run], AN_ID)
        text, slash, number = run.partition("/reruns/")
        facts = self._fact(text)
        found = RecordedRun(facts, self._arms.label(facts))
        if not slash:
            return found
        again = {r.name.rpartition("/")[2]: r for r in found.reruns}
        if number not in again:
            allowed = ", ".join(again) or "it was never repeated"
            raise UserError(f"no repetition {number!r} of {facts.run_id}", allowed=allowed)
        return again[number]

    def twin(self, run: str) -> RecordedRun:
        """The stable twin: same arm and seed, at the arm's best learning rate, where that run is stable.

        Raises UserError, saying why, for a run that has none.
        """
        check_texts("run", [run], AN_ID)
        facts = self._fact(run)
        twin = self._together.study.twins.get(facts.run_id)
        if twin is None:
            raise UserError(f"run {facts.run_id} has no stable twin: {self._together.why_no_twin(facts)}")
        return self.run(twin)

    def __repr__(self) -> str:
        states = Counter(r.state for r in self._facts.values())
        counted = ", ".join(f"{n} {state}" for state, n in states.items()) or "none"
        arms = len({self._arms.label(r) for r in self._facts.values() if r.flat})
        return (
            f"<study {self.name}: {plural(len(self._facts), 'run')} ({counted}), {plural(arms, 'arm')}, "
            f"{plural(len(self.rates), 'rate')}, {plural(len(self.seeds), 'seed')}>"
        )

    @cached_property
    def _levels(self) -> Mapping[str, Mapping[str, object]]:
        runs = list(self._facts.values())
        found = levels(runs, self._arms)
        return {r.run_id: found[r.folder] for r in runs if r.flat}

    @cached_property
    def _together(self) -> Together:
        return Together.of(list(self._facts.values()))

    @cached_property
    def _tables(self) -> Mapping[str, Frame]:
        results = Results.of(list(self._facts.values()))
        return {frame.name: frame for frame in frames(results, Analysis.of(results))}

    def _table(self, name: str) -> "pd.DataFrame":
        frame = self._tables[name]
        rows: list[dict[str, object]] = [dict(zip(frame.columns, row, strict=True)) for row in frame.rows]
        for row in rows:
            if "seed" in row:
                row["seed"] = whole(row["seed"])
        return nullable(rows, frame.columns)

    def _row(self, run: RunFacts) -> dict[str, object]:
        ended = run.verdict is not None
        return {
            RUN: run.run_id,
            "arm": self._arms.label(run) if run.flat else None,
            **self._levels.get(run.run_id, {}),
            "lr": run.lr,
            "seed": whole(run.seed),
            "state": run.state,
            "verdict": run.verdict,
            "impaired": run.run_id in self._together.impaired if ended else None,
            "final_val": run.val,
            "best_val": as_float(run.summary.get("best/val/loss")),
            "first_bad_step": whole(run.summary.get("first_bad_step")),
            "step": run.step,
            "loss_at_start": as_float(run.summary.get("measures/l0")),
            "unigram": as_float(run.summary.get("measures/u")),
            "twin": self._together.study.twins.get(run.run_id),
            "reason": None if run.reason is None else one_line(run.reason),
            "path": str(run.folder.path),
        }

    def _plain(self, run: RunFacts, key: str) -> object:
        """A fact for a cell: numbers as they are (NaN is a word in records), lists as one types them."""
        item = lookup(run, key, self._arms)
        if isinstance(item, list | tuple):
            return shown(run.flat, key) if key in run.flat else value(item)
        return as_float(item) if item in ("NaN", "Infinity", "-Infinity") else item

    def _folders(self, runs: Chosen) -> list[tuple[str, RunFolder]]:
        if runs is None:
            ids: Iterable[str] = self._facts
        elif isinstance(runs, str):
            ids = [runs]
        elif (columns := getattr(runs, "columns", None)) is not None:
            if RUN not in columns:
                raise UserError("a table of runs has a column `run`", hint="study.select(...)")
            ids = runs[RUN]  # type: ignore[index]  # a frame: pandas is not imported only to say so
        else:
            ids = runs
        ids = as_texts("run", ids, f"{AN_ID}, several of them, or a table with a column `run`")
        facts = {(found := self._fact(text)).run_id: found for text in ids}
        return [(run_id, found.folder) for run_id, found in facts.items()]

    def _fact(self, text: str) -> RunFacts:
        found = [run_id for run_id in self._facts if text and run_id.startswith(text)]
        if len(found) == 1:
            return self._facts[found[0]]
        if found:
            raise UserError(f"{text!r} fits {len(found)} runs", allowed=", ".join(found[:SHOWN]))
        by_name = [r.run_id for r in self._facts.values() if r.folder.name == text]
        if by_name:
            return self._facts[by_name[0]]
        near = nearest(text, self._facts)
        raise UserError(f"no run {text!r} in study {self.name}", allowed=AN_ID, hint=near)
