"""Where runs are mirrored to: resolved once, without a prompt and without a request."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ablate.config import TrackerMode, UserError

ENVIRONMENT = "WANDB_MODE"
ADDRESS, EXAMPLE = "WANDB_BASE_URL", "https://api.wandb.ai"
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

    `auto` is online where a key is found, else offline. Raises UserError for an unknown WANDB_MODE, for
    online without a key, and for a WANDB_BASE_URL that is no address.
    """
    word = environ.get(ENVIRONMENT, "").strip().lower()
    if asked or not word:
        mode, who = configured, f"tracker.mode={configured}"
    elif word in _WORDS:
        mode, who = _WORDS[word], f"{ENVIRONMENT}={word}"
    else:
        raise UserError(
            f"{ENVIRONMENT}={word}", allowed="online, offline, disabled", hint=f"unset {ENVIRONMENT}"
        )
    if mode is not TrackerMode.off:  # wandb itself refuses to start with one, offline too
        check_address(environ)
    if mode is TrackerMode.auto:
        if has_key(environ):
            return Resolved(TrackerMode.online, "an API key was found")
        return Resolved(TrackerMode.offline, "no API key was found")
    if mode is TrackerMode.online:
        require_key(environ, "wandb login, or tracker.mode=offline")
    return Resolved(mode, who)


def check_address(environ: Mapping[str, str] = os.environ) -> None:
    """Raise UserError for a WANDB_BASE_URL that is no http(s) address."""
    said = environ.get(ADDRESS, "").strip()
    if not said:
        return
    try:
        parts = urlsplit(said)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, brackets that do not fit
        fits = False
    if not fits:
        raise UserError(
            f"{ADDRESS}={said}",
            allowed="the address of a W&B service, https://…",
            hint=f"{ADDRESS}={EXAMPLE}",
        )


def require_key(
    environ: Mapping[str, str] = os.environ, hint: str = "wandb login, or WANDB_API_KEY=…"
) -> None:
    """Raise UserError, with `hint`, if no key is found, or WANDB_BASE_URL says no service it could be for."""
    check_address(environ)
    if not has_key(environ):
        raise UserError(
            "no W&B API key was found (WANDB_API_KEY, or what `wandb login` leaves)",
            hint=hint,
        )


def has_key(environ: Mapping[str, str] = os.environ) -> bool:
    """Is there an API key? Opens no socket and never prompts."""
    return api_key(environ) is not None


def api_key(environ: Mapping[str, str] = os.environ) -> str | None:
    """The key in WANDB_API_KEY, or what `wandb login` left in netrc for the service's host.

    wandb is only imported where there is a netrc file to look into. Raises UserError for a key that W&B
    would not take.
    """
    if said := environ.get("WANDB_API_KEY", "").strip():
        return said
    if not any(path.is_file() for path in _netrc_files(environ)):
        return None
    import wandb
    from wandb.sdk.lib import wbauth

    try:
        found = wbauth.read_netrc_auth(host=base_url(environ))
    except wandb.errors.AuthenticationError as error:
        raise UserError(
            f"the W&B API key in netrc is not valid: {error}", hint="wandb login --relogin"
        ) from None
    return str(found) if found else None


def base_url(environ: Mapping[str, str] = os.environ) -> str:
    """The service's address: WANDB_BASE_URL, else W&B's own settings files and default (imports wandb)."""
    if said := environ.get(ADDRESS, "").strip():
        return said
    import wandb

    return str(wandb.Settings().base_url)


def _netrc_files(environ: Mapping[str, str]) -> list[Path]:
    if said := environ.get("NETRC"):
        return [Path(said).expanduser()]
    home = Path(environ.get("HOME") or Path("~").expanduser())
    return [home / ".netrc", home / "_netrc"]
