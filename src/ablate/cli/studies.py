"""Which study is meant: a name below the root, or the path of a study's folder."""

from pathlib import Path

from ablate.record import find_studies


def named_study(root: Path, target: str) -> tuple[Path, str] | None:
    """Root and name of the study meant: by its name, or by the path of its folder; None if none is."""
    place = Path(target)
    if target.rstrip("/") in find_studies(root):
        return root, target.rstrip("/")
    if place.is_dir() and place.name in find_studies(place.parent):
        return place.parent, place.name
    return None
