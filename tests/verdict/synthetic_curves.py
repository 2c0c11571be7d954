"""Synthetic training curves with the noise that real ones have.

The text of a batch is easier or harder than the average; an untrained model's loss does not feel that, a
trained one's does. On top comes noise of its own. Numbers are those of a byte-level BPE of 512 words.

Legend: R rows.
"""

from collections.abc import Callable

import numpy as np

from ablate.verdict import Curve

L0, U, FLOOR = 6.24, 5.75, 4.1
GAP = L0 - U

Level = Callable[[np.ndarray], np.ndarray]  # position in the run (0 … 1) -> loss without noise


def curve(
    level: Level,
    steps: int = 200,
    seed: int = 0,
    noise: float = 0.04,
    text: float = 0.05,
    warmup: float = 0.1,
    val_offset: float = -0.03,
    evaluations: int = 4,
    spikes: Callable[[np.ndarray], np.ndarray] | None = None,
    rows: int | None = None,
    complete: bool = True,
) -> Curve:
    """A curve along `level`; `spikes` (by step number) are added to the training loss only."""
    rng = np.random.default_rng(seed)
    steps_R = np.arange(steps)
    level_R = level(steps_R / steps)
    felt_R = _felt(level_R)
    text_R = rng.normal(0, text, steps)
    loss_R = level_R + felt_R * (text_R + rng.normal(0, noise, steps)) + rng.normal(0, 0.002, steps)
    if spikes is not None:
        loss_R = loss_R + spikes(steps_R)
    grad_R = rng.lognormal(0, 0.2, steps)
    val_step_E = np.unique(np.linspace(0, steps, evaluations + 1).astype(np.int64))
    val_loss_E = level(val_step_E / steps)
    val_loss_E = val_loss_E + val_offset * _felt(val_loss_E)
    kept = steps if rows is None else rows
    seen = val_step_E <= kept if rows is None else val_step_E < kept
    return Curve(
        steps=steps,
        warmup=round(warmup * steps),
        loss_R=loss_R[:kept],
        unigram_R=(U + text_R)[:kept],
        grad_R=grad_R[:kept],
        val_step_E=val_step_E[seen],
        val_loss_E=val_loss_E[seen],
        unigram=U + val_offset,
        complete=complete,
    )


def _felt(level: np.ndarray) -> np.ndarray:
    """How much of a text's difficulty shows in the loss: nothing at the start, all from the unigram on."""
    return np.clip(np.abs(L0 - level) / GAP, 0, 1)


def healthy(floor: float = FLOOR, pace: float = 6.0) -> Level:
    """Warm-up, then an exponential descent to the floor."""
    return lambda x: floor + (L0 - floor) * np.exp(-pace * np.maximum(0, x - 0.03))


def flat(height: float) -> Level:
    return lambda x: np.full_like(np.asarray(x, float), height)


def joined(before: Level, after: Level, at: float) -> Level:
    return lambda x: np.where(np.asarray(x) < at, before(x), after(x))


def towards(start: float, end: float, begin: float = 0.0, pace: float = 10.0) -> Level:
    """From one height to another, exponentially, from `begin` on."""
    return lambda x: end + (start - end) * np.exp(-pace * np.maximum(0, np.asarray(x) - begin))


def ramp(start: float, end: float, begin: float, until: float = 1.0) -> Level:
    return lambda x: start + (end - start) * np.clip((np.asarray(x) - begin) / (until - begin), 0, 1)


def bump(at: float, width: float, height: float) -> Level:
    return lambda x: height * np.exp(-(((np.asarray(x) - at) / width) ** 2))


def plus(*parts: Level) -> Level:
    return lambda x: np.sum([part(np.asarray(x, float)) for part in parts], axis=0)
