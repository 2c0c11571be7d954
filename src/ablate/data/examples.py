"""Examples of an objective: what a model reads, and what it is to predict from that.

B windows, T tokens of a window (and of what the last stack reads), S tokens an encoder reads beside it, M
targets of a window; H hidden tokens in K spans.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ablate.config import DataConfig, Hidden, Objective, hidden, reserved_tokens
from ablate.data.mixing import Words, choose, draws, shares

Tokens = NDArray[np.int64]

PLACES, FATES, SUBSTITUTES, HIDDEN_CUTS, VISIBLE_CUTS = range(1, 6)  # streams of a window's key
MASKED, SUBSTITUTED = 0.8, 0.1  # of the chosen tokens; the rest stays (Devlin et al. 2018, section 3.1)


@dataclass(frozen=True, eq=False)
class Examples:
    """B examples of one objective. M and S are the same for all examples of a run."""

    inputs_BT: Tokens  # what the (last) stack reads
    targets_BM: Tokens  # what is to be predicted
    positions_BM: Tokens | None = None  # where in inputs_BT, ascending; None: at every position, M = T
    source_BS: Tokens | None = None  # what the encoder reads in front of a decoder; else None

    def __len__(self) -> int:
        return len(self.inputs_BT)

    def rows(self, first: int, end: int) -> "Examples":
        """The examples from `first` up to `end`, all fields alike."""
        return Examples(
            self.inputs_BT[first:end],
            self.targets_BM[first:end],
            None if self.positions_BM is None else self.positions_BM[first:end],
            None if self.source_BS is None else self.source_BS[first:end],
        )

    def split(self, parts: int) -> Iterator["Examples"]:
        """All examples in `parts` parts of equal size."""
        share, rest = divmod(len(self), parts)
        assert rest == 0, f"{len(self)} examples in {parts} parts"
        return (self.rows(start, start + share) for start in range(0, len(self), share))


@dataclass(frozen=True)
class Task:
    """How the windows of a run become examples.

    `hidden`: what is hidden of each; `special`: the id of the first reserved token (`<mask>`, or `<begin>`
    with the sentinels behind it); `ordinary`: ids below it stand in for a hidden token at random.
    """

    objective: Objective
    hidden: Hidden
    special: int
    ordinary: int

    @classmethod
    def of(cls, data: DataConfig, context: int, mask: int | None = None) -> "Task":
        """The task of a resolved configuration whose windows have `context` tokens.

        `mask`: the mask token that a given tokenizer has of its own; its other ids may stand in at random
        (where it is not the last one it may itself, as in google-research/bert).
        """
        first = data.vocab_size - len(reserved_tokens(data, context))
        special = first if mask is None else mask
        ordinary = special if special == first else data.vocab_size
        return cls(data.objective, hidden(data, context), special, ordinary)

    def examples(self, windows_BT1: Tokens, key_B: Words) -> Examples:
        """The examples of windows of T + 1 tokens: a pure function of each window and its key."""
        return _MAKERS[self.objective](self, windows_BT1, key_B)


NEXT = Task(Objective.next, Hidden(0, 0), 0, 0)


def _next(_: Task, windows_BT1: Tokens, __: Words) -> Examples:
    return Examples(windows_BT1[:, :-1], windows_BT1[:, 1:])


def _masked(task: Task, windows_BT1: Tokens, key_B: Words) -> Examples:
    inputs_BT = windows_BT1[:, :-1].copy()
    count = task.hidden.tokens
    positions_BM = choose(draws(key_B, PLACES, inputs_BT.shape[1]), count)
    targets_BM = np.take_along_axis(inputs_BT, positions_BM, axis=1)
    fate_BM = shares(draws(key_B, FATES, count))
    substitute_BM = (draws(key_B, SUBSTITUTES, count) % np.uint64(task.ordinary)).astype(np.int64)
    kept_BM = np.where(fate_BM < MASKED + SUBSTITUTED, substitute_BM, targets_BM)
    np.put_along_axis(inputs_BT, positions_BM, np.where(fate_BM < MASKED, task.special, kept_BM), axis=1)
    return Examples(inputs_BT, targets_BM, positions_BM)


def _prefix(task: Task, windows_BT1: Tokens, _: Words) -> Examples:
    half = (windows_BT1.shape[1] - 1) // 2
    targets_BM = windows_BT1[:, half:-1]
    return Examples(_behind_begin(task, targets_BM), targets_BM, source_BS=windows_BT1[:, :half])


def _span(task: Task, windows_BT1: Tokens, key_B: Words) -> Examples:
    """Visible and hidden spans take turns, a visible one first; sentinel k stands for hidden span k in the
    source, and before its tokens in the targets (Raffel et al. 2020, section 3.1.4).
    """
    window_BT = windows_BT1[:, :-1]
    batch, tokens = window_BT.shape
    turn_BT = _turns(task.hidden, tokens, key_B)
    hidden_BT = turn_BT % 2 == 1
    first_BT = hidden_BT & (np.diff(turn_BT, axis=1, prepend=0) == 1)
    sentinel_BT = task.special + 1 + turn_BT // 2
    source_BS = np.where(first_BT, sentinel_BT, window_BT)[first_BT | ~hidden_BT].reshape(batch, -1)
    pairs_BT2 = np.stack([sentinel_BT, window_BT], axis=2)
    targets_BM = pairs_BT2[np.stack([first_BT, hidden_BT], axis=2)].reshape(batch, -1)
    return Examples(_behind_begin(task, targets_BM), targets_BM, source_BS=source_BS)


def _turns(hidden: Hidden, tokens: int, key_B: Words) -> Tokens:
    """turn_BT: the number of each token's span, counting visible (even) and hidden (odd) ones from 0.

    Each side's lengths are a random composition: every way to cut it into K parts of one token or more is
    equally likely (random_spans_noise_mask of Raffel et al. 2020).
    """
    visible_BK = _lengths(tokens - hidden.tokens, hidden.spans, key_B, VISIBLE_CUTS)
    hidden_BK = _lengths(hidden.tokens, hidden.spans, key_B, HIDDEN_CUTS)
    ends_BK2 = np.cumsum(np.stack([visible_BK, hidden_BK], axis=2).reshape(len(key_B), -1), axis=1)
    starts_BT = np.zeros((len(key_B), tokens), dtype=np.int64)
    np.put_along_axis(starts_BT, ends_BK2[:, :-1], 1, axis=1)
    return np.cumsum(starts_BT, axis=1)


def _lengths(tokens: int, spans: int, key_B: Words, stream: int) -> Tokens:
    """length_BK: `tokens` cut at spans − 1 of the tokens − 1 places between them."""
    cuts = choose(draws(key_B, stream, tokens - 1), spans - 1) + 1
    return np.diff(cuts, axis=1, prepend=0, append=tokens)


def _behind_begin(task: Task, targets_BM: Tokens) -> Tokens:
    """What a decoder reads to predict the targets: the begin token, then all targets but the last."""
    begin_B1 = np.full((len(targets_BM), 1), task.special, dtype=np.int64)
    return np.concatenate([begin_B1, targets_BM[:, :-1]], axis=1)


_MAKERS: dict[Objective, Callable[[Task, Tokens, Words], Examples]] = {
    Objective.next: _next,
    Objective.masked: _masked,
    Objective.prefix: _prefix,
    Objective.span: _span,
}
