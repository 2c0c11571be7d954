"""Rows and facts of runs as pandas frames, one observation a row and no index to know about."""

import difflib
import fnmatch
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ablate.config import UserError
from ablate.record import Run, RunFolder, Series
from ablate.view import Arms, RunFacts, as_float, readable, value
from ablate.view.arms import AXES, DATA
from ablate.view.arms import short_names as shortened

if TYPE_CHECKING:
    import pandas as pd

RUN, STEP = "run", "step"
COLUMNS = "names or shell patterns as text ('train/loss', 'out/*_down'), or None"
LONG = 60  # characters of an argument in a message
# What every run has beside its factors; a factor of the same short name keeps its whole key.
BEFORE = (RUN, "arm")
BEHIND = (
    "lr", "seed", "state", "verdict", "impaired", "final_val", "best_val", "first_bad_step", STEP,
    "loss_at_start", "unigram", "twin", "reason", "path",
)  # fmt: skip
WHOLE = {"seed", "first_bad_step", STEP, "attempt"}
NUMBERS = {
    "lr", "final_val", "best_val", "loss_at_start", "unigram", "best_lr", "mean", "sd", "low", "high",
    "flip_low", "flip_high", "p_t", "p_flip", "p_flip_attainable", "p_sign", "p_sign_attainable", "p", "mde",
    "p_holm", "noise_floor", "spread", "largest", "lr_half", "bracket_low", "bracket_high", "sensitivity",
    "sensitivity_below", "sensitivity_above", "share_unstable", "loss_at_best_lr",
}  # fmt: skip


class UnreadableRun(UserWarning):
    """A run whose series cannot be read was left out of a table of many runs."""


class CopiedRun(UserWarning):
    """A run folder with the id of another one of its study was left out: the first of them by name counts."""


def check_texts(what: str, items: Iterable[object], allowed: str) -> None:
    """Raise UserError for the first that is no text."""
    for item in items:
        if not isinstance(item, str):
            raise UserError(f"{what} {shown(item)} is no text", allowed=allowed)


def as_texts(what: str, asked: object, allowed: str) -> list[str]:
    """One text, or several, as a list. Raises UserError for anything else."""
    if isinstance(asked, str):
        return [asked]
    items = list(asked) if isinstance(asked, Iterable) else [asked]
    check_texts(what, items, allowed)
    return [str(item) for item in items]


def shown(item: object) -> str:
    """An argument as Python writes it, cut short."""
    text = repr(item)
    return text if len(text) <= LONG else f"{text[:LONG]}…"


def factor_names(arms: Arms) -> dict[str, str]:
    """Column of each factor that makes an arm, by its key: `bias` for `model.bias`."""
    short = shortened([f.key for f in arms.factors if f.key not in AXES])
    return {key: key if name in (*BEFORE, *BEHIND) else name for key, name in short.items()}


def levels(runs: Sequence[RunFacts], arms: Arms) -> dict[RunFolder, dict[str, object]]:
    """Each run's value of every factor that makes an arm, by column; biases as words where there is one."""
    names = factor_names(arms)
    flats = readable([r.flat for r in runs])
    found = {}
    for run, flat in zip(runs, flats, strict=True):
        known = {**flat, DATA: run.fingerprint}
        found[run.folder] = {name: _level(known.get(key)) for key, name in names.items()}
    return found


def series_frame(
    runs: Iterable[tuple[str, RunFolder]],
    cadence: str,
    columns: Sequence[str] | str | None,
    wide: bool = True,
) -> "pd.DataFrame":
    """The rows of several runs of one cadence: `run`, `step` and the columns asked for.

    Runs whose file cannot be read are left out with a warning. Raises UserError for a column that no run has.
    """
    import pandas as pd

    asked = None if columns is None else as_texts("column", columns, COLUMNS)
    read: dict[str, Series] = {}
    known: dict[str, None] = {}
    for run, folder in runs:
        try:
            series = Run(folder).series(cadence)
        except (OSError, UserError) as error:
            message = f"run {run} is left out: {str(error).splitlines()[0]}"
            warnings.warn(message, UnreadableRun, stacklevel=3)
            continue
        known |= dict.fromkeys(series.columns[1:])
        read[run] = _kept(series, asked)
    names = chosen_columns(list(known), asked)
    parts = [_part(run, series, names, wide) for run, series in read.items() if len(series)]
    if parts:
        return pd.concat(parts, ignore_index=True)
    empty = {RUN: pd.Series(dtype=object), STEP: pd.Series(dtype=np.int64)}
    rest = names if wide else ("value",)
    middle = {} if wide else {"column": pd.Series(dtype=object)}
    return pd.DataFrame({**empty, **middle, **{n: pd.Series(dtype=np.float64) for n in rest}})


def chosen_columns(known: Sequence[str], asked: Sequence[str] | None) -> list[str]:
    """The columns that names and shell patterns (`out/*_down`) mean, of those that some run has.

    All of them for None. Raises UserError, with the nearest names, for one that means none; not where no run
    has a row.
    """
    if asked is None:
        return list(known)
    if not known:
        return [name for name in asked if not _is_pattern(name)]
    found: list[str] = []
    for text in asked:
        hits = [n for n in known if fnmatch.fnmatchcase(n, text)] if _is_pattern(text) else [text]
        if not hits or hits[0] not in known:
            near = difflib.get_close_matches(text, known, n=3)
            groups = dict.fromkeys(f"{n.partition('/')[0]}/*" for n in known)
            hint = " or ".join(near) or None
            raise UserError(f"no column {text!r}", allowed=f"any of {', '.join(groups)}", hint=hint)
        found += [name for name in hits if name not in found]
    return found


def whole(number: object) -> int | None:
    """A whole number behind a record's value."""
    known = as_float(number)
    return int(known) if known is not None and math.isfinite(known) and known == int(known) else None


def nullable(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> "pd.DataFrame":
    """Rows as a frame; numbers stay numbers where all of them are absent, whole ones become nullable."""
    import pandas as pd

    frame = pd.DataFrame(list(rows), columns=list(columns))
    for name in WHOLE & {*columns}:
        if all(x is None or isinstance(x, int) for x in frame[name]):
            frame[name] = frame[name].astype("Int64")
    for name in NUMBERS & {*columns}:
        frame[name] = frame[name].astype(np.float64)
    if "impaired" in columns:
        frame["impaired"] = frame["impaired"].astype("boolean")
    return frame


def _kept(series: Series, asked: Sequence[str] | None) -> Series:
    """A copy of the columns that can be meant, so that the others' memory can go."""
    if asked is None:
        return series
    places = [0] + [
        place
        for place, name in enumerate(series.columns)
        if place
        and any(name == text or (_is_pattern(text) and fnmatch.fnmatchcase(name, text)) for text in asked)
    ]
    return Series(tuple(series.columns[i] for i in places), series.values_RC[:, places], series.torn)


def _part(run: str, series: Series, names: Sequence[str], wide: bool) -> "pd.DataFrame":
    import pandas as pd

    missing = np.full(len(series), math.nan)
    own = [n for n in names if n in series.columns]
    values = {n: series.column(n) if n in series.columns else missing for n in names}
    if wide:
        return pd.DataFrame({RUN: run, STEP: series.steps, **values})
    return pd.DataFrame(
        {
            RUN: run,
            STEP: np.tile(series.steps, len(own)),
            "column": np.repeat(np.array(own, dtype=object), len(series)),
            "value": np.concatenate([values[n] for n in own]) if own else missing[:0],
        }
    )


def _is_pattern(text: str) -> bool:
    return any(mark in text for mark in "*?[")


def _level(item: object) -> object:
    return value(item) if isinstance(item, list | tuple) else item
