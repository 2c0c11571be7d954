"""Where runs are mirrored to: resolved once, without a prompt and without a request."""

import netrc
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ablate.config import TrackerMode, UserError

ENVIRONMENT = "WANDB_MODE"
# What W&B's own users write there.
_WORDS = {
    "online": TrackerMode.online,
    "run": TrackerMode.online,
    "shared": TrackerMode.online,
    "offline": TrackerMode.offline,
    "dryrun": TrackerMode.offline,
    "disabled": TrackerMode.off,
    "off": TrackerMode.off,
    "auto": TrackerMode.auto,
}


@dataclass(frozen=True)
class Resolved:
    """`mode` is never auto; `why`: who said so."""

    mode: TrackerMode
    why: str


def resolve_mode(
    configured: TrackerMode, asked: bool = False, environ: Mapping[str, str] = os.environ
) -> Resolved:
    """The mode: the command line's (`asked`), then WANDB_MODE, then the configuration's.

    `auto` is online where a key is found, else offline. Raises UserError for an unknown WANDB_MODE, and for
    online without a key.
    """
    word = environ.get(ENVIRONMENT, "").strip().lower()
    if asked or not word:
        mode, who = configured, "tracker.mode"
    elif word in _WORDS:
        mode, who = _WORDS[word], ENVIRONMENT
    else:
        raise UserError(f"{ENVIRONMENT}={word}", allowed="online, offline, disabled", hint=f"unset {ENVIRONMENT}")
    if mode is TrackerMode.auto:
        if has_key(environ):
            return Resolved(TrackerMode.online, "an API key was found")
        return Resolved(TrackerMode.offline, "no API key was found")
    if mode is TrackerMode.online:
        require_key(environ)
    return Resolved(mode, f"{who}={mode}")


def require_key(environ: Mapping[str, str] = os.environ) -> None:
    """Raise UserError if no key is found."""
    if not has_key(environ):
        raise UserError(
            "no W&B API key was found (WANDB_API_KEY, or what `wandb login` leaves)",
            hint="wandb login, or tracker.mode=offline",
        )


def has_key(environ: Mapping[str, str] = os.environ) -> bool:
    """Is there an API key: in WANDB_API_KEY, or in netrc for the service's host? Opens no socket."""
    if environ.get("WANDB_API_KEY", "").strip():
        return True
    files = [path for path in _netrc_files(environ) if path.is_file()]
    if not files:
        return False
    host = urlsplit(base_url(environ)).hostname
    return host is not None and any(_names(path, host) for path in files)


def base_url(environ: Mapping[str, str] = os.environ) -> str:
    """The service's address: WANDB_BASE_URL, else W&B's own settings files and default (imports wandb)."""
    if said := environ.get("WANDB_BASE_URL", "").strip():
        return said
    import wandb

    return str(wandb.Settings().base_url)


def _netrc_files(environ: Mapping[str, str]) -> list[Path]:
    if said := environ.get("NETRC"):
        return [Path(said).expanduser()]
    home = Path(environ.get("HOME") or Path("~").expanduser())
    return [home / ".netrc", home / "_netrc"]


def _names(path: Path, host: str) -> bool:
    try:
        return netrc.netrc(str(path)).authenticators(host) is not None
    except (OSError, netrc.NetrcParseError):
        return False
