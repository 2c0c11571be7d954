"""What has been mirrored: `mirror.json` in each run folder, and one for the study in its `wandb` folder.

runs/<study>/<run>/mirror.json     {"schema": 1, "wandb_id": …, "offline": {…} | null, "online": {…} | null}
runs/<study>/wandb/mirror.json     the same for the study's own W&B run, and the runs that are in trouble
runs/<study>/wandb/offline-run-*   whole offline W&B runs, nothing else
runs/<study>/wandb/.mirror/        the mirror's claim, heartbeat and log; what is being built
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from ablate.config import TrackerMode, UserError
from ablate.record import RunFolder, read_json, write_json

SCHEMA = 1
NAME = "mirror.json"
OFFLINE_RUN = re.compile(r"wandb/offline-run-[^/]+")
SOURCES = (
    "config.yaml",
    "meta.json",
    "status.json",
    "summary.json",
    "metrics.jsonl",
    "metrics.val.jsonl",
    "metrics.probe.jsonl",
)


class Condition(StrEnum):
    """How well W&B shows what the record says."""

    clean = "clean"  # everything, finished
    partial = "partial"  # under way, or cut short: the mirror goes on with it
    degraded = "degraded"  # given up, `why` says for what reason; `ablate wandb sync` tries again


@dataclass(frozen=True)
class Sent:
    """What of a run is in W&B.

    `rows`, `last_step`, `digest`: of the rows that were sent; `facts`: digest of configuration, names and
    summary; `sources`: time stamp and size of each file of the record as it was read; `where`: the run's
    address, or its folder below the study's; `generation`: how often it was begun under another id, because
    rows that the service keeps were voided.
    """

    state: Condition
    why: str | None
    attempt: int
    rows: int
    last_step: int | None
    digest: str
    facts: str
    where: str | None
    sources: Mapping[str, tuple[int, int]]
    updated: float
    generation: int = 0


@dataclass(frozen=True)
class Ledger:
    """The content of a mirror.json. `project`, `entity`, `sweep`: where a W&B agent wants the run."""

    wandb_id: str
    offline: Sent | None = None
    online: Sent | None = None
    project: str | None = None
    entity: str | None = None
    sweep: str | None = None
    troubles: Mapping[str, str] = field(default_factory=dict)  # in the study's own: runs that are not clean

    def of(self, mode: TrackerMode) -> Sent | None:
        """What was sent in this mode."""
        return self.online if mode is TrackerMode.online else self.offline

    def having(self, mode: TrackerMode, sent: Sent | None) -> "Ledger":
        """The ledger with this sent in this mode."""
        return replace(self, online=sent) if mode is TrackerMode.online else replace(self, offline=sent)


def wandb_home(root: Path, study: str) -> Path:
    """The folder of a study that `wandb leet` and `wandb sync` look into."""
    return root / study / "wandb"


def read_ledger(folder: Path) -> Ledger | None:
    """The mirror.json in a folder; None if there is none or it cannot be understood (it is made anew)."""
    try:
        raw = read_json(folder / NAME)
        if raw["schema"] != SCHEMA or not _text(raw["wandb_id"]):
            return None
        return Ledger(
            wandb_id=raw["wandb_id"],
            offline=_sent(raw["offline"], _is_offline_run),
            online=_sent(raw["online"], _is_online_run),
            project=_text(raw.get("project")),
            entity=_text(raw.get("entity")),
            sweep=_text(raw.get("sweep")),
            troubles={str(name): str(why) for name, why in dict(raw.get("troubles") or {}).items()},
        )
    except (FileNotFoundError, NotADirectoryError, UserError, KeyError, TypeError, ValueError):
        return None


def write_ledger(folder: Path, ledger: Ledger) -> None:
    """Replace the mirror.json of a folder. Raises DiskFull, OSError."""
    raw: dict[str, Any] = {"schema": SCHEMA, **asdict(ledger)}
    if not ledger.troubles:
        del raw["troubles"]
    write_json(folder / NAME, raw)


def stamps(folder: RunFolder) -> dict[str, tuple[int, int]]:
    """Modification time (ns) and size of the files that a mirror is made from; absent ones left out."""
    found = {}
    for name in SOURCES:
        try:
            stat = (folder.path / name).stat()
        except FileNotFoundError:
            continue
        found[name] = (stat.st_mtime_ns, stat.st_size)
    return found


def run_address(where: str | None) -> tuple[str, str, str] | None:
    """Entity, project and id of an online run, from its address; None for anything else."""
    try:
        parts = urlsplit(where or "")
    except ValueError:
        return None
    path = [unquote(part) for part in parts.path.split("/") if part]
    if parts.scheme not in ("http", "https") or not parts.netloc or len(path) < 4 or path[-2] != "runs":
        return None
    return path[-4], path[-3], path[-1]


def _is_online_run(where: str) -> bool:
    return run_address(where) is not None


def _is_offline_run(where: str) -> bool:
    return OFFLINE_RUN.fullmatch(where) is not None


def _sent(raw: Any, is_run: Callable[[str], bool]) -> Sent | None:
    """What was sent; None where that cannot be understood. A run at no W&B address is looked for again."""
    try:
        sources = {str(name): (int(stamp[0]), int(stamp[1])) for name, stamp in raw["sources"].items()}
        counts = [raw["attempt"], raw["rows"], raw.get("generation", 0), raw["last_step"] or 0]
        texts, where = [raw["digest"], raw["facts"]], raw["where"]
        if not all(type(n) is int and n >= 0 for n in counts) or None in map(_text, texts):
            return None
        known = {"state": Condition(raw["state"]), "why": _text(raw["why"]), "updated": float(raw["updated"])}
        sent = Sent(**{**raw, **known, "sources": sources})
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return None
    if where is None or (isinstance(where, str) and is_run(where)):
        return sent
    state = Condition.partial if sent.state is Condition.clean else sent.state
    return replace(sent, state=state, where=None)


def _text(raw: Any) -> str | None:
    return raw if isinstance(raw, str) else None
