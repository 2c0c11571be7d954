"""Whether W&B shows a study as its record has it: from what the mirror has noted, one small file a study."""

from collections.abc import Iterable
from pathlib import Path

import orjson

from ablate.view.text import clean, plural

SHOWN = 3  # causes that are listed


def mirror_notes(root: Path, studies: Iterable[str]) -> list[str]:
    """A line for each study some of whose runs are not, or not wholly, in W&B; with the causes."""
    notes = []
    for study in studies:
        troubles = _troubles(root / study / "wandb" / "mirror.json")
        if troubles:
            causes = list(dict.fromkeys(clean(why, 120) for why in troubles.values()))
            more = f"; and {len(causes) - SHOWN} more causes" if len(causes) > SHOWN else ""
            notes.append(
                f"W&B lacks {plural(len(troubles), 'run')} of {clean(study)}, or parts of them "
                f"({'; '.join(causes[:SHOWN])}{more}): ablate wandb sync {clean(study)}"
            )
    return notes


def _troubles(path: Path) -> dict[str, str]:
    try:
        found = orjson.loads(path.read_bytes()).get("troubles") or {}
        return {str(name): str(why) for name, why in found.items()}
    except (OSError, ValueError, AttributeError):
        return {}
