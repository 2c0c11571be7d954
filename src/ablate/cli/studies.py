"""Studies as people name them: by name, or by the folder that the shell completes."""

from pathlib import Path

from ablate.record import check_study, find_studies


def meant_study(root: Path, text: str) -> tuple[Path, str] | None:
    """Root and name of the study that is meant; None if there is none."""
    name = text.rstrip("/")
    if name in find_studies(root):
        return root, name
    place = Path(text) if Path(text).name else Path.cwd()
    if text and place.is_dir() and place.name in find_studies(place.parent):
        return place.parent, place.name
    return None


def existing_study(root: Path, text: str) -> tuple[Path, str]:
    """The same; UserError with the nearest names for a study that is not there."""
    if (found := meant_study(root, text)) is not None:
        return found
    check_study(root, text)
    return root, text
