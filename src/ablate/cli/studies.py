"""Studies as people name them: by name, or by the folder that the shell completes."""

from pathlib import Path

from ablate.config import UserError
from ablate.record import RunFolder, check_study, find_run, find_studies


def meant_study(root: Path, text: str) -> tuple[Path, str] | None:
    """Root and name of the study that is meant; None if there is none."""
    name = text.rstrip("/")
    if name in find_studies(root):
        return root, name
    place = Path(text) if Path(text).name else Path.cwd()
    if text and place.is_dir() and place.name in find_studies(place.parent):
        return place.parent, place.name
    return None


def meant_run(root: Path, text: str, said: str) -> RunFolder:
    """The run that is meant; UserError for none, and for a study, whose runs are `said` one by one."""
    try:
        return find_run(root, text)
    except UserError:
        study = meant_study(root, text)
        if study is None:
            raise
    place = "" if study[0] == Path("runs") else f" --root {study[0]}"
    raise UserError(f"{text} is a study; its runs are {said} one by one", hint=f"ablate ls {study[1]}{place}")


def existing_study(root: Path, text: str) -> tuple[Path, str]:
    """The same; UserError with the nearest names for a study that is not there."""
    if (found := meant_study(root, text)) is not None:
        return found
    check_study(root, text)
    return root, text
