"""What a corpus is to the rest of the room: its identity, and its documents or its token streams."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Announce = Callable[[str], None]


def ignore(message: str) -> None:
    """An announcement that nobody asked for."""


def _trust(documents: Sequence[str]) -> None:
    """No check: the documents cannot change between the fingerprint and the reading."""


@dataclass(frozen=True)
class Texts:
    """A corpus of documents.

    `identity` is plain JSON and must change whenever the documents do; it is all that a fingerprint
    sees. `read` yields the documents in an order that depends on nothing but them. `verify` is called
    with the documents that were read and raises UserError if they are not those of `identity`.
    """

    identity: Mapping[str, Any]
    read: Callable[[], Iterator[str]]
    verify: Callable[[Sequence[str]], None] = _trust


@dataclass(frozen=True)
class Stream:
    """A corpus that is drawn as tokens: `draw` takes the number of different tokens and
    returns the training and the held-out stream."""

    identity: Mapping[str, Any]
    draw: Callable[[int], tuple[NDArray[np.int64], NDArray[np.int64]]]
    entropy_rate: float  # nats per token


Corpus = Texts | Stream


def take(texts: Iterable[str], max_bytes: int | None) -> list[str]:
    """The documents that are not empty, until `max_bytes` of UTF-8 have been read.

    Documents stay whole, so that the last one may pass the limit.
    """
    taken, size = [], 0
    for text in texts:
        if not text:
            continue
        taken.append(text)
        size += len(text.encode())
        if max_bytes is not None and size >= max_bytes:
            break
    return taken


def text_digest(text: str) -> str:
    """SHA-256 of a document's UTF-8 bytes."""
    return hashlib.sha256(text.encode()).hexdigest()
