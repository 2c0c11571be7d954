"""Everything that can be read of one run, and its summary.

Legend: R recorded rows, E evaluations.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ablate.config import Config, UserError, VerdictConfig, load
from ablate.record.cache import read_rows
from ablate.record.claim import read_status
from ablate.record.disk import finite, read_json
from ablate.record.folder import RunFolder
from ablate.record.labels import over_layers
from ablate.record.read import Series
from ablate.record.series import REDO
from ablate.record.state import Status
from ablate.verdict import Curve, Verdict, growth_rate, judge

GROWTH_SHARE = 20  # the last window for growth: steps / 20, at least GROWTH_ROWS
GROWTH_ROWS = 5
_MAXIMA = ("attn", "resid", "logit")  # groups of probe columns whose largest value the summary keeps
_SECTIONS = ("config", "data", "environment", "model")  # of meta.json


@dataclass(frozen=True)
class Run:
    """A reader of one run folder. Nothing is read before it is asked for; what was read once is kept.

    `status` alone is read anew each time.
    """

    folder: RunFolder
    _series: dict[str, Series] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def config(self) -> Config:
        """The configuration. Raises ConfigError naming the file."""
        return load(self.folder.config)

    @cached_property
    def meta(self) -> dict[str, Any]:
        """meta.json; empty if the run has not begun. Raises UserError for a damaged one."""
        meta = _json_or_nothing(self.folder.meta) or {}
        for section in _SECTIONS:
            if not isinstance(meta.get(section, {}), Mapping):
                raise UserError(f"{self.folder.meta} is damaged: {section} = {str(meta[section])[:40]}")
        return meta

    @property
    def status(self) -> Status:
        """Where the run stands now."""
        return read_status(self.folder)

    @cached_property
    def summary(self) -> dict[str, Any] | None:
        """summary.json; None if the run has not ended. Raises UserError for a damaged one."""
        return _json_or_nothing(self.folder.summary)

    def series(self, cadence: str = "") -> Series:
        """The rows of a cadence ("" every step, `val`, `probe`, `timing`); none if there is no such file."""
        if cadence not in self._series:
            self._series[cadence] = read_rows(self.folder, cadence)
        return self._series[cadence]

    def curve(self) -> Curve:
        """What a verdict is made of. Raises UserError if the record begins late or has gaps."""
        rows, val, steps = self.series(), self.series("val"), self.config.optim.steps
        if not np.array_equal(rows.steps, np.arange(len(rows))):
            first = int(rows.steps[0])
            raise UserError(
                f"{self.folder.path}: no verdict on a record that "
                + (f"begins at step {first}" if first else "has gaps"),
                hint=REDO,
            )
        val_step_E = val.steps
        return Curve(
            steps=steps,
            warmup=int(self.config.optim.warmup),
            loss_R=_column(rows, "train/loss"),
            unigram_R=_column(rows, "train/unigram"),
            grad_R=_column(rows, "grad/norm"),
            val_step_E=val_step_E,
            val_loss_E=_column(val, "val/loss"),
            unigram=_unigram(self.meta),
            complete=len(rows) == steps and bool(np.any(val_step_E == steps)),
        )

    def verdict(self, thresholds: VerdictConfig | None = None) -> Verdict:
        """What became of the run, by its own thresholds or by others."""
        return judge(self.curve(), self.config.verdict if thresholds is None else thresholds)


def summarise(run: Run) -> dict[str, Any]:
    """The content of summary.json: the verdict and the numbers that tables show, finite or as strings.

    `final/*` are the last values (`final/train/loss`: mean over the last tenth of the rows), `best/*` the
    lowest held-out loss and its step, `max/*` the largest value over steps and layers (NaN if one was NaN),
    `growth/*` the growth rate (log per step) of every linear's output over the last window, fastest first.
    """
    curve, verdict = run.curve(), run.verdict()
    rows = len(curve.loss_R)
    tail_R = curve.loss_R[-max(1, rows // 10) :]
    summary = {
        "schema": 1,
        "verdict": str(verdict.kind),
        "reasons": list(verdict.reasons),
        "first_bad_step": verdict.step,
        "onset_step": verdict.onset,
        "steps": rows,
        "planned_steps": curve.steps,
        "complete": curve.complete,
        "final/train/loss": float(np.mean(tail_R)) if rows else None,
        **_held_out(curve),
        **_maxima(run, curve),
        **{f"growth/{name}": rate for name, rate in _growth(run.series()).items()},
        **{f"measures/{name}": value for name, value in verdict.measures.items()},
    }
    return dict(finite(summary))


def _held_out(curve: Curve) -> dict[str, Any]:
    """The last evaluation and the best one; NaN never counts as best."""
    if len(curve.val_loss_E) == 0:
        return {"final/val/loss": None, "final/val/step": None, "best/val/loss": None, "best/val/step": None}
    loss_E = np.where(np.isnan(curve.val_loss_E), np.inf, curve.val_loss_E)
    best = int(np.argmin(loss_E))
    return {
        "final/val/loss": float(curve.val_loss_E[-1]),
        "final/val/step": int(curve.val_step_E[-1]),
        "best/val/loss": float(curve.val_loss_E[best]),
        "best/val/step": int(curve.val_step_E[best]),
    }


def _maxima(run: Run, curve: Curve) -> dict[str, float]:
    """Largest values; over an empty series there is none."""
    found = {}
    if len(curve.grad_R):
        found["max/grad/norm"] = float(np.max(curve.grad_R))
    if len(curve.loss_R):
        found["max/train/loss"] = float(np.max(curve.loss_R))
    probe = run.series("probe")
    for name in probe.columns if len(probe) else ():
        if name.partition("/")[0] in _MAXIMA:
            key = f"max/{over_layers(name)}"
            # Unlike max(), np.maximum keeps a NaN.
            found[key] = float(np.maximum(found.get(key, -np.inf), np.max(probe.column(name))))
    return found


def _growth(rows: Series) -> dict[str, float]:
    """Growth rate by linear over the last window of its finite outputs, fastest first."""
    window = max(GROWTH_ROWS, len(rows) // GROWTH_SHARE)
    rates = {name: growth_rate(rows.column(name), window) for name in rows.columns if name.startswith("out/")}
    known = {name.removeprefix("out/"): rate for name, rate in rates.items() if math.isfinite(rate)}
    return dict(sorted(known.items(), key=lambda item: -item[1]))


def _column(series: Series, name: str) -> Any:
    """A column, or nothing at all if there are no rows (a file not yet written has no columns)."""
    return series.column(name) if len(series) else np.empty(0)


def _unigram(meta: Mapping[str, Any]) -> float:
    """u from the data facts; NaN ("not known") before they are written."""
    found = meta.get("data", {}).get("unigram_entropy", "NaN")
    try:
        return float(found)
    except (TypeError, ValueError):
        raise UserError(f"meta.json is damaged: data.unigram_entropy = {str(found)[:40]}") from None


def _json_or_nothing(path: Path) -> dict[str, Any] | None:
    try:
        found = read_json(path)
    except FileNotFoundError:
        return None
    if not isinstance(found, dict):
        raise UserError(f"{path} is damaged: it holds no mapping")
    return found
