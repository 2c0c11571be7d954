"""Where a study's runs come from: data, model sizes, versions, hardware; distinct values over all runs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ablate.config import Objective, UserError
from ablate.record import Run
from ablate.view.arms import OBJECTIVE
from ablate.view.facts import SHORT
from ablate.view.results import Results
from ablate.view.text import as_mapping, number, plural, value

SHOWN = 6  # distinct values named of one fact
VERSIONS = ("ablate-bias", "torch", "numpy", "python")


@dataclass(frozen=True)
class Provenance:
    """What the runs' meta.json say. Each fact is (name, words)."""

    data: tuple[tuple[str, str], ...]
    model: tuple[tuple[str, str], ...]
    setting: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, results: Results) -> "Provenance":
        """Read every run's meta.json; unreadable ones are passed over."""
        metas = {run.run_id: _meta(Run(run.folder)) for run in results.runs}
        known = [m for m in metas.values() if m]
        return cls(_data(known), _model(results, metas), _setting(known))


def _meta(run: Run) -> Mapping[str, Any]:
    try:
        return run.meta
    except (OSError, ValueError, UserError):
        return {}


def _data(metas: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    """Each data set with its facts, and the objective where it is not the usual one."""
    rows: dict[str, tuple[str, str]] = {}
    for meta in metas:
        data, objective = as_mapping(meta.get("data")), as_mapping(meta.get("config")).get(OBJECTIVE)
        if data:
            of = f", objective {objective}" if objective not in (None, Objective.next) else ""
            rows[f"{sorted(data.items(), key=lambda item: item[0])}{of}"] = (
                f"data {str(data.get('fingerprint'))[:SHORT]}{of}",
                f"{data.get('source')}: {_count(data, 'train_tokens')} training and "
                f"{_count(data, 'val_tokens')} held-out tokens, vocabulary {data.get('vocab_size')}, "
                f"unigram level {number(data.get('unigram_entropy'))} nats, fingerprint "
                f"{data.get('fingerprint')}",
            )
    return tuple(rows.values())


def _model(results: Results, metas: Mapping[str, Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    """Parameters of each arm's model, arms with the same counts together."""
    counts: dict[str, list[str]] = {}
    for arm in results.arms:
        models = [as_mapping(metas[r.run_id].get("model")) for p in arm.points for r in p.runs]
        model = next((m for m in models if m.get("parameters")), None)
        if model is not None:
            biases = sum(
                found for key in ("linear_biases", "norm_biases") if isinstance(found := model.get(key), int)
            )
            words = (
                f"{_count(model, 'parameters')} parameters ({_count(model, 'non_embedding')} without "
                f"embeddings), {biases:,} of them biases"
            )
            counts.setdefault(words, []).append(arm.title)
    return tuple((_some(arms, "arm"), words) for words, arms in counts.items())


def _setting(metas: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    surroundings = [as_mapping(m.get("environment")) for m in metas]
    versions = [as_mapping(e.get("versions")) for e in surroundings]
    rows = [(f"{name}", _distinct(v.get(name) for v in versions)) for name in VERSIONS]
    rows += [
        ("code", _distinct(_code(e) for e in surroundings)),
        ("device", _distinct(m.get("device_name") or m.get("device") for m in metas)),
        ("processor", _distinct(e.get("cpu") for e in surroundings)),
        ("threads a run", _distinct(m.get("threads") for m in metas)),
        ("platform", _distinct(e.get("platform") for e in surroundings)),
    ]
    return tuple((name, words) for name, words in rows if words)


def _code(environment: Mapping[str, Any]) -> str | None:
    git = as_mapping(environment.get("git"))
    digest = environment.get("code_sha")
    if not git.get("sha") and not digest:
        return None
    commit = (
        f"commit {str(git['sha'])[:12]}{' (dirty)' if git.get('dirty') else ''}" if git.get("sha") else ""
    )
    return ", ".join(part for part in (commit, f"sources {str(digest)[:12]}" if digest else "") if part)


def _distinct(values: Iterable[object]) -> str:
    """The values that occur, the most frequent first, with counts where there are several."""
    counts = Counter(value(x) for x in values if x is not None)
    if len(counts) < 2:
        return next(iter(counts), "")
    words = [f"{x} ({plural(n, 'run')})" for x, n in counts.most_common(SHOWN)]
    return ", ".join(words) + (f" and {len(counts) - SHOWN} more" if len(counts) > SHOWN else "")


def _some(names: Sequence[str], what: str) -> str:
    if len(names) <= 2:
        return "; ".join(names)
    return f"{plural(len(names), what)}: {names[0]}, …, {names[-1]}"


def _count(facts: Mapping[str, Any], key: str) -> str:
    found = facts.get(key)
    return f"{found:,}" if isinstance(found, int) else "?"
