"""The held-out split, by documents."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from ablate.config import UserError
from ablate.data.corpus import Announce, text_digest


@dataclass(frozen=True)
class Split:
    train: tuple[str, ...]
    val: tuple[str, ...]


def split_documents(documents: Sequence[str], fraction: float, seed: int, announce: Announce) -> Split:
    """Hold out `fraction` of the distinct documents: at least one, and never all.

    A document's place depends on its content and the seed alone, not on the order of `documents`; equal
    documents go to the same side. A single document is cut in two near its end.
    """
    keyed = sorted((_key(text, seed), text) for text in documents)
    keys = list(dict.fromkeys(key for key, _ in keyed))
    if len(keys) == 1:
        announce("the corpus is a single document: its end is held out")
        return _cut(keyed[0][1], fraction)
    held_out = min(max(1, round(fraction * len(keys))), len(keys) - 1)
    last = keys[held_out - 1]
    return Split(
        train=tuple(text for key, text in keyed if key > last),
        val=tuple(text for key, text in keyed if key <= last),
    )


def _key(text: str, seed: int) -> str:
    return hashlib.sha256(f"{seed}:{text_digest(text)}".encode()).hexdigest()


def _cut(text: str, fraction: float) -> Split:
    """Cut at the line boundary nearest to the target, if one is near, else at the character."""
    if len(text) < 2:
        raise UserError(
            "the corpus is a single character: nothing can be held out", hint="a corpus with more text"
        )
    target = min(max(1, round((1 - fraction) * len(text))), len(text) - 1)
    ends = (text.rfind("\n", 0, target) + 1, text.find("\n", target - 1) + 1)
    reach = max(1, (len(text) - target) // 2)
    near = [end for end in ends if 0 < end < len(text) and abs(end - target) <= reach]
    cut = min(near, key=lambda end: abs(end - target), default=target)
    return Split(train=(text[:cut],), val=(text[cut:],))
