"""Which runs of a study may stand in one comparison: same data behind the same data keys, same numerics.

A fingerprint that follows from a `data.*` key is a factor like any other. Runs whose configurations say the
same data but whose fingerprints differ (another Python's standard library, a changed file), or that were
trained by another version of the numerics, are never put into one table. Arms of different tasks stand in one
table, but no number is taken over both.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ablate.config import FieldClass, UserError, fields
from ablate.record import RunFolder, read_json
from ablate.view.arms import DATA, DATA_SEED, OBJECTIVE
from ablate.view.facts import SHORT, RunFacts
from ablate.view.text import value

# Beside the data themselves: what decides which losses may be compared.
TASK = (OBJECTIVE, "data.vocab_size", "data.mask_rate", "data.mask_span")


def requests(home: Path) -> list[Mapping[str, object]]:
    """A study's readable requests, oldest first."""
    found = []
    for path in sorted((home / "requests").glob("*.json")):
        try:
            raw = read_json(path)
        except (OSError, ValueError, UserError):
            continue
        if isinstance(raw, Mapping):
            found.append(raw)
    return found


def requested(request: Mapping[str, object]) -> list[str]:
    """The ids of the runs that a request asked for."""
    ids = request.get("run_ids")
    return [str(run_id) for run_id in ids] if isinstance(ids, list) else []


def science_versions(homes: Iterable[Path]) -> dict[str, int]:
    """The version of the numerics that each run's request was made with; 1 where it does not say."""
    found: dict[str, int] = {}
    for request in (r for home in sorted(set(homes)) for r in requests(home)):
        version = request.get("science_version", 1)
        for run_id in requested(request):
            found[run_id] = version if isinstance(version, int) else 1
    return found


def apart(runs: Sequence[RunFacts]) -> tuple[list[RunFacts], list[tuple[RunFacts, str]]]:
    """The runs that may stand in one comparison, and those that must stay out of it, with the reason."""
    firsts, copies = first_of_each(runs)
    reasons = incomparable(firsts)
    why = {run.folder: reasons[run.run_id] for run in firsts if run.run_id in reasons} | copies
    kept = [run for run in firsts if run.folder not in why]
    return kept, [(run, why[run.folder]) for run in runs if run.folder in why]


def first_of_each(runs: Sequence[RunFacts]) -> tuple[list[RunFacts], dict[RunFolder, str]]:
    """One run of each id, its first folder by name; and the other folders of that id with a reason."""
    first: dict[str, RunFacts] = {}
    for run in sorted(runs, key=lambda r: r.folder):
        first.setdefault(run.run_id, run)
    copies = {
        run.folder: f"folder {run.folder.name} has the id of {kept.folder.name}"
        for run in runs
        if (kept := first[run.run_id]) is not run
    }
    return [run for run in runs if run.folder not in copies], copies


def incomparable(runs: Sequence[RunFacts]) -> dict[str, str]:
    """Ids, each of one run, that must stay out of the comparison, with the reason.

    Kept are the runs of the version that most done runs have and, for each data configuration, of the
    fingerprint that most done runs have (of equals: the first).
    """
    versions = science_versions(run.folder.path.parent for run in runs)
    version = _most({r.run_id: versions.get(r.run_id, 1) for r in runs}, runs)
    found = {
        run.run_id: f"science version {own} (the others: {version})"
        for run in runs
        if (own := versions.get(run.run_id, 1)) != version
    }
    keys = [f.key for f in fields() if f.klass is FieldClass.science and f.key.startswith("data.")]
    groups: dict[str, list[RunFacts]] = {}
    for run in runs:
        if run.flat and run.fingerprint is not None and run.run_id not in found:
            same = repr([run.flat.get(key) for key in keys if key != DATA_SEED])
            groups.setdefault(same, []).append(run)
    for group in groups.values():
        kept = _most({r.run_id: r.fingerprint for r in group}, group)
        for run in group:
            if run.fingerprint != kept:
                digits = str(run.fingerprint)[:SHORT]
                found[run.run_id] = f"other data: fingerprint {digits} (the others: {str(kept)[:SHORT]})"
    return found | _repeated([r for r in runs if r.run_id not in found])


def _repeated(runs: Sequence[RunFacts]) -> dict[str, str]:
    """Runs that say what another says: one whose data are not known yet, beside an older one that is done."""
    keys = [f.key for f in fields() if f.klass is FieldClass.science]
    kept: dict[str, RunFacts] = {}
    found = {}
    for run in sorted(runs, key=lambda r: r.verdict is None):
        if run.flat and (first := kept.setdefault(repr([run.flat.get(key) for key in keys]), run)) is not run:
            found[run.run_id] = f"the same configuration as {first.run_id}"
    return found


def tasks(arms: Mapping[str, Sequence[RunFacts]]) -> dict[str, str]:
    """What each arm predicts, from which data, in the words that tell tasks apart (`objective=masked`).

    Losses of different tasks are not comparable: of different objectives, vocabularies or data. "" where all
    arms have the same one. `arms`: those of one comparison, with their runs.
    """
    keys = [f.key for f in fields() if f.klass is FieldClass.science and f.key.startswith("data.")]
    keys = [*TASK, *(key for key in keys if key not in (*TASK, DATA_SEED))]
    said = {arm: [value(runs[0].flat.get(key)) for key in keys] for arm, runs in arms.items()}
    prints = {tuple(said[arm]): _known_print(runs) for arm, runs in arms.items() if _known_print(runs)}
    data = {arm: _known_print(arms[arm]) or prints.get(tuple(words), "?") for arm, words in said.items()}
    found = {arm: (*words[: len(TASK)], data[arm]) for arm, words in said.items()}
    if len(set(found.values())) < 2:
        return dict.fromkeys(arms, "")
    columns = [*zip(*said.values(), strict=True), tuple(text[:SHORT] for text in data.values())]
    names = [*(key.rpartition(".")[2] for key in keys), DATA]
    return dict(zip(arms, _words([*found.values()], names, columns), strict=True))


def _known_print(runs: Sequence[RunFacts]) -> str:
    return next((run.fingerprint for run in runs if run.fingerprint is not None), "")


def _words(found: Sequence[object], names: Sequence[str], columns: Sequence[Sequence[str]]) -> list[str]:
    """`name=value` of the fewest columns, in order, that tell apart all that is different in `found`."""
    words = [""] * len(found)
    for name, column in zip(names, columns, strict=True):
        if len(set(zip(words, found, strict=True))) == len(set(words)):
            break
        longer = [f"{text} {name}={item}".strip() for text, item in zip(words, column, strict=True)]
        words = longer if len(set(longer)) > len(set(words)) else words
    return words


def _most(values: Mapping[str, object], runs: Sequence[RunFacts]) -> object:
    done = Counter(values[r.run_id] for r in runs if r.verdict is not None)
    votes = done or Counter(values[r.run_id] for r in runs)
    return votes.most_common(1)[0][0] if votes else None
