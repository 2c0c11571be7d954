"""What can go wrong with a run folder that people should read as one clear message."""

from pathlib import Path

from ablate.config import UserError


class Claimed(UserError):
    """Another process is training this run."""


class Finished(UserError):
    """The run is done; there is nothing left to claim."""


class Superseded(UserError):
    """A newer attempt has taken this run over; the older one must stop and write nothing more."""


class DiskFull(UserError):
    """A write did not fit on the disk (or into a quota or size limit); no half-written line was left."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path}: the disk (or a quota) is full; what was written before is intact",
            hint="free some space, then start the same command again: the run resumes",
        )
