"""What a run recorded about itself: the few facts people ask for, or all of them."""

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ablate.view.facts import SHORT
from ablate.view.table import Table, table
from ablate.view.text import as_mapping, clean, number, plural, value

FACTS = ("fact", "value")
LONG = 80  # characters of a list shown whole


def short_facts(meta: Mapping[str, Any]) -> Table:
    """Size, data, device, code and time of a run, from its meta.json; what is not recorded is left out."""
    model, data = as_mapping(meta.get("model")), as_mapping(meta.get("data"))
    rows = [
        ("parameters", _parameters(model) if model else None),
        ("data", _data(data) if data else None),
        ("trained on", _device(meta) if "device" in meta else None),
        ("code", _code(as_mapping(meta.get("environment")))),
        ("started", _moment(meta.get("started"))),
    ]
    return table(FACTS, [row for row in rows if row[1]], title="facts (--all: every recorded one)")


def all_facts(meta: Mapping[str, Any]) -> Table:
    """Every recorded fact but the configuration (it has its own table), nested names joined by dots."""
    rest = {key: item for key, item in meta.items() if key not in ("schema", "config")}
    if "started" in rest:
        rest["started"] = _moment(rest["started"])
    return table(FACTS, [(key, _fact(item)) for key, item in _leaves(rest)], title="facts")


def _parameters(model: Mapping[str, Any]) -> str:
    biases = sum(_count(model, key) for key in ("linear_biases", "norm_biases"))
    carried = f"{biases:,} of them biases" if biases else "no biases"
    total, inner = _count(model, "parameters"), _count(model, "non_embedding")
    return f"{total:,} ({inner:,} without embeddings), {carried}"


def _count(model: Mapping[str, Any], key: str) -> int:
    found = model.get(key)
    return found if isinstance(found, int) else 0


def _data(data: Mapping[str, Any]) -> str:
    tokens = _count(data, "train_tokens")
    words = [f"{data.get('source')}: {tokens:,} training tokens", f"vocabulary {data.get('vocab_size')}"]
    words.append(f"unigram level {number(data.get('unigram_entropy'))}")
    if data.get("entropy_rate") is not None:
        words.append(f"entropy rate {number(data['entropy_rate'])}")
    return ", ".join([*words, f"fingerprint {str(data.get('fingerprint'))[:SHORT]}"])


def _device(meta: Mapping[str, Any]) -> str:
    names = dict.fromkeys(str(meta[key]) for key in ("device", "device_name") if key in meta)
    threads = meta.get("threads")
    return ", ".join([*names, *([plural(threads, "thread")] if isinstance(threads, int) else [])])


def _code(environment: Mapping[str, Any]) -> str:
    versions, git = as_mapping(environment.get("versions")), as_mapping(environment.get("git"))
    words = [f"{name} {versions[name]}" for name in ("ablate-bias", "torch") if name in versions]
    if git.get("sha"):
        words.insert(1, f"commit {str(git['sha'])[:SHORT]}{' with changes' if git.get('dirty') else ''}")
    return ", ".join(words)


def _moment(seconds: object) -> str | None:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds)) if isinstance(seconds, float) else None


def _fact(item: object) -> str:
    """A value; of a list of norms its kinds, of a long list its length and beginning."""
    if isinstance(item, list) and item and all(isinstance(part, Mapping) for part in item):
        kinds = Counter(str(part.get("kind", "?")) for part in item)
        return ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    if isinstance(item, list) and len(value(item)) > LONG:
        return clean(f"{len(item)}: {value(item)[1:-1]}", LONG)
    return value(item)


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for key, item in tree.items():
        if isinstance(item, Mapping):
            found += _leaves(item, f"{prefix}{key}.")
        else:
            found.append((f"{prefix}{key}", number(item, 8) if isinstance(item, float) else item))
    return found
