"""Opening a study by its folder."""

import difflib
import os
from pathlib import Path

from ablate.api.frames import shown
from ablate.api.study import Study
from ablate.config import UserError
from ablate.record import find_studies
from ablate.record.folder import is_run_name
from ablate.view import read_all_facts

SHOWN = 8


def load_study(path: str | os.PathLike[str]) -> Study:
    """The study recorded in a folder, as it stands now; load it again to see more of one that still runs.

    `path` is the study's folder, `runs/<study>`. Facts of every run are read at once, rows when they are
    asked for. Raises UserError for a folder that holds no study, naming those that are near.
    """
    if not isinstance(path, str | os.PathLike):
        raise UserError(f"no path: {shown(path)}", allowed="a study's folder, as text or path")
    home = Path(os.path.abspath(path))  # `..` and `.` have no name
    try:
        there = home.is_dir()
    except OSError as error:  # too long a name, no permission
        raise UserError(f"no study at {shown(str(path))}: {error.strerror}", **_near(home)) from None
    if not there:
        raise UserError(f"no study at {path}", **_near(home))
    if is_run_name(home.name):
        raise UserError(f"{path} is one run", hint=f"load_study({str(home.parent)!r}).run({home.name!r})")
    if home.name not in find_studies(home.parent):
        inside = find_studies(home)
        if inside:
            allowed = f"one of the studies in it: {_listing(inside)}"
            raise UserError(f"{path} holds studies", allowed=allowed, hint=_call(home / inside[0]))
        raise UserError(f"{path} holds neither runs nor requests of a study")
    return Study(home, tuple(read_all_facts(home.parent, home.name)))


def _near(home: Path) -> dict[str, str]:
    """What there is beside the missing folder, or under that name in `runs`."""
    for root in (home.parent, home.parent / "runs"):
        known = find_studies(root)
        near = difflib.get_close_matches(home.name, known, n=1, cutoff=0.5)
        if near:
            return {"allowed": f"studies in {root}: {_listing(known)}", "hint": _call(root / near[0])}
        if known:
            return {"allowed": f"studies in {root}: {_listing(known)}"}
    return {"hint": "ablate ls"}


def _call(path: Path) -> str:
    return f"load_study({str(path)!r})"


def _listing(names: list[str]) -> str:
    more = f", … ({len(names) - SHOWN} more)" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
