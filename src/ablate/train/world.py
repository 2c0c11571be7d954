"""Where this process stands among those that train one run together."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ablate.config import UserError


@dataclass(frozen=True)
class World:
    """A rank among `size` processes. Batches are global; each rank computes its own rows of them."""

    rank: int = 0
    size: int = 1

    def __post_init__(self) -> None:
        assert 0 <= self.rank < self.size
        if self.size > 1:
            raise UserError(
                f"{self.size} processes for one run",
                allowed="1: a run trains in one process; several runs of a sweep train side by side",
            )

    @property
    def records(self) -> bool:
        """Only the first rank claims a run and writes its record."""
        return self.rank == 0

    def rows(self, batch_BT1: NDArray[np.int64]) -> NDArray[np.int64]:
        """This rank's windows of the global batch."""
        share = len(batch_BT1) // self.size
        return batch_BT1[self.rank * share : (self.rank + 1) * share]
