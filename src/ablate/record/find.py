"""Finding runs: all of them, or the one a person means."""

import difflib
import os
from pathlib import Path

from ablate.config import UserError
from ablate.record.folder import ID_LENGTH, RunFolder, is_name, is_run_name, study_path

SHOWN = 8
ALLOWED_INDENT = "\n" + " " * len("  allowed: ")  # one a line below what is allowed
REQUESTS = "requests"


def find_runs(root: Path, study: str | None = None) -> list[RunFolder]:
    """Every run folder of a study, or of all studies below `root`, by name; none where there is no folder."""
    return [run for runs in runs_by_study(root, study).values() for run in runs]


def runs_by_study(root: Path, study: str | None = None) -> dict[Path, list[RunFolder]]:
    """The run folders that `find_runs` finds, by the folder of their study."""
    homes = [root / name for name in _folders(root)] if study is None else [study_path(root, study)]
    return {home: _runs_in(home) for home in homes}


def find_studies(root: Path) -> list[str]:
    """Names of the studies below `root` that hold a run or a request."""
    return [name for name in _folders(root) if _is_study(root / name)]


def check_study(root: Path, study: str) -> None:
    """Raise UserError, with the nearest names, if there is no such study below `root`."""
    if is_name(study) and _is_study(root / study):
        return
    studies = find_studies(root)
    if study not in studies:
        near = difflib.get_close_matches(study, studies, n=SHOWN, cutoff=0.5)
        allowed = _listing(studies) if studies else f"there are no studies below {root}"
        raise UserError(f"no study {study!r} below {root}", allowed=allowed, hint=_listing(near) or None)


def find_run(root: Path, text: str) -> RunFolder:
    """The run that `text` means: a path, `study/name`, a folder name, or the beginning of an id or name.

    A beginning may be prefixed with a study (`study/3fa9`); `…/reruns/001` behind any of these is a
    repetition. Raises UserError that lists the candidates if several fit, and the nearest names if none does.
    """
    direct = Path(text)
    if text and (direct / "config.yaml").is_file():
        return RunFolder(_named(direct))
    whole, repetition, number = text.partition("/reruns/")
    if repetition:
        return _repetition(find_run(root, whole), number.strip("/"))
    study, _, wanted = text.strip("/").rpartition("/")
    runs = [r for r in find_runs(root) if study in ("", r.study)]
    exact = [r for r in runs if wanted in (r.name, r.id)]
    found = exact or [r for r in runs if wanted and (r.id.startswith(wanted) or r.name.startswith(wanted))]
    if len(found) == 1:
        return found[0]
    if found:
        same = len({r.id for r in found}) == 1  # one experiment in several studies
        listed = [f"{r.study}/{r.id if same else r.name}" for r in found]
        hint = "one of these" if same else "more of the name"
        each = _listing(listed, ALLOWED_INDENT)
        raise UserError(f"{text!r} fits {len(found)} runs", allowed=each, hint=hint)
    raise _not_found(root, text, wanted, find_runs(root))


def _named(path: Path) -> Path:
    """A run folder's path that says the run's and the study's name: made absolute if it does not (`.`)."""
    needed = 4 if path.parent.name == "reruns" else 2
    named = len(path.parts) >= needed and ".." not in path.parts
    return path if named else Path(os.path.abspath(path))


def _repetition(run: RunFolder, number: str) -> RunFolder:
    known = _folders(run.reruns)
    if number not in known:
        allowed = _listing(known) if known else "it was never repeated"
        raise UserError(f"no repetition {number!r} of {run.study}/{run.id}", allowed=allowed)
    return RunFolder(run.reruns / number)


def _not_found(root: Path, text: str, wanted: str, runs: list[RunFolder]) -> UserError:
    if not runs:
        return UserError(f"no run {text!r}: there are no runs below {root}")
    names = {f"{r.study}/{r.name}": f"{r.study}/{r.name}" for r in runs}
    names |= {r.name: f"{r.study}/{r.name}" for r in runs}
    names |= {r.id: f"{r.study}/{r.name}" for r in runs}
    near = difflib.get_close_matches(text, names, n=SHOWN, cutoff=0.5)
    near += difflib.get_close_matches(wanted, names, n=SHOWN, cutoff=0.5)
    guesses = list(dict.fromkeys(names[n] for n in near))
    return UserError(
        f"no run {text!r} below {root}",
        allowed="a path, study/name, or the beginning of a run's id or name",
        hint=_listing(guesses) if guesses else "ablate ls",
    )


def _listing(names: list[str], between: str = ", ") -> str:
    more = f"{between}… ({len(names) - SHOWN} more)" if len(names) > SHOWN else ""
    return between.join(names[:SHOWN]) + more


def by_id(home: Path, run_id: str) -> RunFolder | None:
    """The run folder in a study's folder whose name ends in this id."""
    assert len(run_id) == ID_LENGTH
    ending = f"-{run_id}"
    names = sorted(name for name in os.listdir(home) if name.endswith(ending) and is_run_name(name))
    return RunFolder(home / names[0]) if names else None


def _is_study(home: Path) -> bool:
    """Does the folder hold a request or a run? Stops at the first one."""
    try:
        with os.scandir(home) as entries:
            return any((e.name == REQUESTS or is_run_name(e.name)) and e.is_dir() for e in entries)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _runs_in(home: Path) -> list[RunFolder]:
    return [RunFolder(home / name) for name in _folders(home) if is_run_name(name)]


def _folders(home: Path) -> list[str]:
    """Names of the visible folders in a folder, sorted; none if it does not exist."""
    try:
        with os.scandir(home) as entries:
            return sorted(e.name for e in entries if not e.name.startswith(".") and e.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return []
