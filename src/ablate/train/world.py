"""Where this process stands among those that train one run together."""

from dataclasses import dataclass

from ablate.config import UserError
from ablate.data import Examples


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

    def rows(self, examples: Examples) -> Examples:
        """This rank's examples of the global batch."""
        share = len(examples) // self.size
        return examples.rows(self.rank * share, (self.rank + 1) * share)
