"""The run folder: where everything a run is and leaves behind stands.

    <root>/<study>/requests/<time>-<id>.json      one per sweep
    <root>/<study>/<slug>-<id>/                   one per run: slug for people, id for identity

docs/records.md describes each file.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from ablate.config import UserError

ID_LENGTH = 12
_RUN_NAME = re.compile(rf"(?P<slug>[A-Za-z0-9._=+-]*)-(?P<id>[0-9a-f]{{{ID_LENGTH}}})")
_NAME = re.compile(r"[A-Za-z0-9_=+][A-Za-z0-9._=+-]*")


@dataclass(frozen=True, order=True)
class RunFolder:
    """Paths inside one run folder; nothing is read or made by asking for them."""

    path: Path

    def __hash__(self) -> int:
        return hash(self.path.name)  # a third of the time that the whole path takes; names hold ids

    @property
    def name(self) -> str:
        """`<slug>-<id>`; for a repetition `<slug>-<id>/reruns/<number>`."""
        if self.path.parent.name == "reruns":
            return str(self.path.relative_to(self.path.parents[2]))
        return self.path.name

    @property
    def study(self) -> str:
        home = self.path.parents[1] if self.path.parent.name == "reruns" else self.path
        return home.parent.name

    @property
    def id(self) -> str:
        """The run id in the folder's name (a repetition has the id of the run that it repeats)."""
        home = self.path.parents[1] if self.path.parent.name == "reruns" else self.path
        match = _RUN_NAME.fullmatch(home.name)
        if match is None:
            raise UserError(f"{self.path} is not the name of a run folder", allowed="<slug>-<12 hex digits>")
        return match["id"]

    @property
    def config(self) -> Path:
        return self.path / "config.yaml"

    @property
    def meta(self) -> Path:
        return self.path / "meta.json"

    @property
    def status(self) -> Path:
        return self.path / "status.json"

    @property
    def summary(self) -> Path:
        return self.path / "summary.json"

    @property
    def heartbeat(self) -> Path:
        return self.path / "heartbeat"

    @property
    def stdout(self) -> Path:
        return self.path / "stdout.log"

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint"

    @property
    def reruns(self) -> Path:
        return self.path / "reruns"

    def metrics(self, cadence: str = "") -> Path:
        """The series file of a cadence: "" every step, `val`, `probe`, …; `timing` has its own name."""
        if cadence == "timing":
            return self.path / "timing.jsonl"
        return self.path / (f"metrics.{cadence}.jsonl" if cadence else "metrics.jsonl")

    def claim(self, attempt: int) -> Path:
        """The claim file of an attempt (1, 2, …)."""
        return self.path / f"claim.{attempt}"


def study_path(root: Path, study: str) -> Path:
    """The folder of a study. Raises UserError for a name that is no plain folder name."""
    check_name("study", study)
    return root / study


def check_name(what: str, name: str) -> None:
    """Raise UserError unless `name` is a plain, visible file name in portable characters."""
    if not is_name(name):
        raise UserError(f"{what} = {name!r}", allowed="letters, digits and . _ = + - (not first: . -)")


def is_name(name: str) -> bool:
    """Is `name` a plain, visible file name in portable characters, and not that of the requests' folder?"""
    return _NAME.fullmatch(name) is not None and name != "requests"


def is_run_name(name: str) -> bool:
    """Has a folder of this name the form of a run folder?"""
    return _RUN_NAME.fullmatch(name) is not None
