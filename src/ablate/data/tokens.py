"""The prepared data of a run: token files, facts, held-out windows.

Shapes: N held-out windows, T tokens of a window, V vocabulary, S tokens of a stream.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ablate.config import DataConfig, Objective, UserError
from ablate.data.batches import Batches
from ablate.data.examples import Examples, Task
from ablate.data.mixing import HELD_OUT, keys, start_of

TRAIN, VAL, COUNTS, TOKENIZER = "train.bin", "val.bin", "counts.bin", "tokenizer.json"


@dataclass(frozen=True)
class DataFacts:
    """What a run records about its data."""

    source: str
    fingerprint: str
    documents: int
    bytes: int  # UTF-8 bytes of the documents
    vocab_size: int
    train_tokens: int
    val_tokens: int  # the whole held-out stream; an evaluation reads data.val_tokens of it at most
    tokens_sha256: str  # of the digests of train.bin and val.bin
    tokenizer_sha256: str | None  # None for a source of tokens
    unigram_entropy: float  # u: nats per evaluated target under the unigram of the training targets
    entropy_rate: float | None  # nats per token, where it is known


@dataclass(frozen=True, eq=False)
class TokenData:
    """Training tokens (memory-mapped) and the fixed examples of every evaluation."""

    facts: DataFacts
    context: int
    train: NDArray[np.unsignedinteger]  # S
    task: Task
    val: Examples  # N of them
    unigram_V: NDArray[np.float64]  # −ln p of a target, in nats
    tokenizer: Path | None

    def batches(self, batch: int, data_seed: int) -> Batches:
        """The batches of `batch` windows in the order that `data_seed` gives."""
        return Batches(self.train, self.unigram_V, self.context, batch, data_seed, self.task)


def open_tokens(folder: Path, facts: dict[str, Any], data: DataConfig, context: int) -> TokenData:
    """The token data of a complete cache entry, for windows of `context` tokens.

    What the evaluation hides depends on `data.split_seed` and the windows' numbers alone.
    Raises UserError where a side has too few tokens for one window.
    """
    train, val = (_map(folder / name, facts["dtype"]) for name in (TRAIN, VAL))
    _require(len(train), len(val), data, context)
    counts_V = np.fromfile(folder / COUNTS, dtype="<i8")
    task = Task.of(data, context, facts.get("mask"))
    unigram_V = _unigram(counts_V, task)
    windows = max(1, min(data.val_tokens, len(val) - 1) // context)
    start_N1 = np.arange(windows)[:, None] * context
    windows_NT1 = val[start_N1 + np.arange(context + 1)].astype(np.int64)
    key_N = keys(start_of(data.split_seed, HELD_OUT), np.arange(windows))
    held_out = task.examples(windows_NT1, key_N)
    return TokenData(
        facts=DataFacts(
            source=data.source.value,
            fingerprint=facts["fingerprint"],
            documents=facts["documents"],
            bytes=facts["bytes"],
            vocab_size=len(counts_V),
            train_tokens=len(train),
            val_tokens=len(val),
            tokens_sha256=facts["tokens_sha256"],
            tokenizer_sha256=facts["tokenizer_sha256"],
            unigram_entropy=float(unigram_V[held_out.targets_BM].mean()),
            entropy_rate=facts["entropy_rate"],
        ),
        context=context,
        train=train,
        task=task,
        val=held_out,
        unigram_V=unigram_V,
        tokenizer=folder / TOKENIZER if facts["tokenizer_sha256"] else None,
    )


def _unigram(counts_V: NDArray[np.int64], task: Task) -> NDArray[np.float64]:
    """−ln p of each token as a target, in nats: the add-one unigram of the training tokens.

    With objective span, each window's K sentinels are targets beside its H hidden tokens: each sentinel has
    1/(H + K) of the targets, and the unigram the rest.
    """
    unigram_V: NDArray[np.float64] = np.log(counts_V.sum() + len(counts_V)) - np.log1p(counts_V)
    if task.objective is not Objective.span:
        return unigram_V
    targets = task.hidden.tokens + task.hidden.spans
    p_V = np.exp(-unigram_V) * (task.hidden.tokens / targets)
    p_V[-task.hidden.spans :] += 1 / targets
    return -np.log(p_V)


def _map(path: Path, dtype: str) -> NDArray[np.unsignedinteger]:
    if path.stat().st_size == 0:
        return np.empty(0, dtype=dtype)  # an empty file cannot be mapped
    return np.memmap(path, dtype=dtype, mode="r")


def _require(train: int, val: int, data: DataConfig, context: int) -> None:
    if min(train, val) > context:
        return
    short = "training" if train <= context else "held-out"
    raise UserError(
        f"the corpus is too small: {train:,} training and {val:,} held-out tokens "
        f"(data.val_fraction = {data.val_fraction}) are too few {short} tokens for one window",
        allowed=f"at least {context + 1:,} on each side (model.context + 1)",
        hint="more text, a shorter model.context, or another data.val_fraction",
    )
