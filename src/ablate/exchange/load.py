"""Weights of a Hugging Face folder for a model of ours: all of them, or every difference by name."""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from ablate.config import ModelConfig
from ablate.config.weights import printable
from ablate.exchange.folder import TYPES
from ablate.exchange.layout import Array
from ablate.exchange.match import Match, match, not_one

SEGMENTS = "segment.weight"


def load_weights(
    folder: Path, model: ModelConfig, vocab: int, announce: Callable[[str], None]
) -> dict[str, Array]:
    """Every parameter of a resolved model by name, float32, from a folder.

    `announce` is told which tensors of other heads are left out. Raises UserError that lists every missing,
    surplus, doubled or differently shaped tensor, and every fact of config.json that makes it another model;
    with the settings that config.json means.
    """
    matched = match(folder, model, vocab)
    untied, surplus = list(_untied(matched)), dict(_surplus(matched))
    if matched.found or untied or surplus:
        raise matched.refusal([*untied, *surplus.values()], _segments(matched, surplus))
    if matched.others:
        announce(f"left out, as no part of the model: {', '.join(map(printable, matched.others))}")
    ours: dict[str, Array] = {}
    for tensor in matched.wanted:
        if tensor.name in matched.theirs:
            pieces = tensor.split(matched.theirs[tensor.name].read())
            ours |= {part.name: pieces[part.name] for part in tensor.parts if part.present}
    return ours


def _untied(matched: Match) -> Iterable[str]:
    """Tied tensors of one shape that are not equal."""
    for copy, first in matched.ties:
        second, stored = matched.theirs[copy], matched.theirs[first]
        readable = second.shape == stored.shape and {second.kind, stored.kind} <= TYPES.keys()
        if readable and not np.array_equal(second.read(), stored.read()):
            yield not_one(copy, first)


def _surplus(matched: Match) -> Iterable[tuple[str, str]]:
    """What the model lacks, and is not zero in the folder, by our names."""
    for tensor in matched.wanted:
        stored = matched.theirs.get(tensor.name)
        if stored is None or stored.shape != tensor.shape or stored.kind not in TYPES:
            continue
        lacking = [part.name for part in tensor.parts if not part.present]
        pieces = tensor.split(stored.read()) if lacking else {}
        for name in lacking:
            if pieces[name].any():
                yield name, f"surplus: {tensor.name} is not zero, and this model has no {name}"


def _segments(matched: Match, surplus: dict[str, str]) -> list[str]:
    """To config.json one kind of segment is as good as none: a table that is not zero tells them apart."""
    one = SEGMENTS in surplus and matched.raw.get("type_vocab_size") == 1
    return ["model.segments=1"] if one else []
