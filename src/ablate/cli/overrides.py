"""Overrides of a recorded run: single values of single keys."""

from collections.abc import Sequence
from typing import Any

from ablate.config import UserError, fields, read_overrides


def changes(overrides: Sequence[str]) -> dict[str, Any]:
    """Dotted key to typed value. Raises UserError for a sweep, a group, or whatever the grammar refuses."""
    if not overrides:
        return {}  # and hydra stays unloaded
    keys = {f.key for f in fields()}
    found = {}
    for key, choices in read_overrides(overrides).items():
        if key not in keys:
            hint = f"ablate config --keys {key}"
            raise UserError(f"{key} is a group; a recorded run is changed key by key", hint=hint)
        if choices.swept:
            raise UserError(f"{key} is given {len(choices.values)} values", allowed="one value for each key")
        found[key] = choices.values[0]
    return found


def thresholds(overrides: Sequence[str]) -> dict[str, Any]:
    """Overrides of verdict.* alone. Raises UserError for other keys."""
    found = changes(overrides)
    for key in found:
        if not key.startswith("verdict."):
            hint = f"ablate rerun RUN {key}=…"
            raise UserError(f"{key}: show changes thresholds only", allowed="verdict.key=value", hint=hint)
    return found
