"""How one of their tensors is made of ours, and back. Every step is exact: rows and columns change places.

Rope turns pairs of channels. Ours are neighbours (2i, 2i + 1), theirs are halves (i, i + R/2), R channels of
a head being turned: rows of q and k, their biases and gains are put in another order, head by head.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Part:
    """One of our parameters, as it goes into one of their tensors.

    `head_dim`: rows of one head; `turned`: how many of them, the first, rope turns (0: none). `present`: the
    model has it; else it stands as zeros on their side.
    """

    name: str
    shape: tuple[int, ...]
    head_dim: int
    turned: int
    present: bool

    def halves(self, ours: Array) -> Array:
        """Rows in their order."""
        return self._reorder(ours, _order(self.head_dim, self.turned)) if self.turned else ours

    def pairs(self, theirs: Array) -> Array:
        """Rows in our order."""
        return (
            self._reorder(theirs, np.argsort(_order(self.head_dim, self.turned))) if self.turned else theirs
        )

    def _reorder(self, rows: Array, order_E: NDArray[np.int64]) -> Array:
        return rows.reshape(-1, self.head_dim, *self.shape[1:])[:, order_E].reshape(self.shape)


@dataclass(frozen=True)
class Tensor:
    """One of their tensors. Several parts lie one after the other, or, with `heads`, head by head.

    `transposed`: a matrix is stored as [inputs, outputs] (GPT-2's Conv1D).
    """

    name: str
    parts: tuple[Part, ...]
    heads: int = 0
    transposed: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape on their side."""
        rows = sum(part.shape[0] for part in self.parts)
        shape = (rows, *self.parts[0].shape[1:])
        return shape[::-1] if self.transposed else shape

    def of(self, ours: Mapping[str, Array]) -> Array:
        """Their tensor, contiguous, from our parameters by name."""
        arrays = [
            part.halves(ours[part.name]) if part.present else np.zeros(part.shape, np.float32)
            for part in self.parts
        ]
        if self.heads:
            arrays = [array.reshape(self.heads, -1, *array.shape[1:]) for array in arrays]
            joined = np.concatenate(arrays, axis=1)
            joined = joined.reshape(-1, *joined.shape[2:])
        else:
            joined = np.concatenate(arrays)
        return np.ascontiguousarray(joined.T if self.transposed else joined)

    def split(self, theirs: Array) -> dict[str, Array]:
        """Our parameters from their tensor, also those that the model lacks."""
        rows = theirs.T if self.transposed else theirs
        ends = np.cumsum([part.shape[0] // (self.heads or 1) for part in self.parts])[:-1]
        if self.heads:
            rows = rows.reshape(self.heads, -1, *rows.shape[1:])
        pieces = np.split(rows, ends, axis=1 if self.heads else 0)
        return {
            part.name: np.ascontiguousarray(part.pairs(piece.reshape(part.shape)))
            for part, piece in zip(self.parts, pieces, strict=True)
        }


def _order(head_dim: int, turned: int) -> NDArray[np.int64]:
    """Which of our channels stands at each of theirs."""
    even, odd, rest = np.arange(0, turned, 2), np.arange(1, turned, 2), np.arange(turned, head_dim)
    return np.concatenate((even, odd, rest))
