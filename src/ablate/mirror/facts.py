"""What a W&B run is called and says of itself: project, group, name, notes, configuration.

Pure: from the facts of a run and the arms of its study. Names follow what a W&B user filters and groups by;
docs/wandb.md lists them.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ablate import __version__
from ablate.config import Config, flatten, to_dict
from ablate.record import Run, finite
from ablate.view import Arms, RunFacts, clean, differing, number, value, with_bias_words
from ablate.view.arms import BIAS, short_names
from ablate.view.text import as_mapping

ID_LENGTH, TAG_LENGTH, NAME_LENGTH = 64, 64, 128
STUDY_JOB, TRAIN_JOB = "study", "train"
_PIECE = re.compile(r"[A-Za-z0-9.][A-Za-z0-9._]*=[^_=]*|[^_=]+")
_FIRST, _AXES = ("bias=", "norm=", "placement="), ("lr=", "seed=")
ALL_RUNS = "all runs"  # the group where only learning rate and seed vary


@dataclass(frozen=True)
class Facts:
    """Everything `wandb.init` is told."""

    id: str
    project: str
    entity: str | None
    group: str
    job_type: str
    name: str
    notes: str
    tags: tuple[str, ...]
    config: Mapping[str, Any]

    def plain(self) -> dict[str, Any]:
        """As JSON types, for comparisons."""
        return dict(finite(asdict(self)))


def run_facts(run: Run, facts: RunFacts, arms: Arms) -> Facts:
    """The facts of one training run. Raises ConfigError for an unreadable configuration."""
    config = run.config
    axes = _axes(facts, arms)
    arm = arms.label(facts)
    group = ALL_RUNS if arm == "-" else arm
    rest = [f"lr={number(config.optim.lr, 6)}", f"seed={config.seed}"]
    return Facts(
        id=wandb_id(facts.folder.name),
        project=config.tracker.project or facts.study,
        entity=config.tracker.entity,
        group=clean(group, NAME_LENGTH),
        job_type=TRAIN_JOB,
        name=clean(" ".join([*([] if arm == "-" else [arm]), *rest]), NAME_LENGTH),
        notes=_notes(config, facts),
        tags=_tags(
            [facts.study, *(f"{key}={value(item)}" for key, item in axes.items()), *config.tracker.tags]
        ),
        config={**_nested(config), **_origin(run, facts), **{f"axis_{k}": v for k, v in axes.items()}},
    )


def wandb_id(name: str, study: str = "") -> str:
    """The W&B id of a run folder: what tells it apart first, its run id last; characters that all accept.

    `study` comes in front of the run id, for projects that several studies share: they may hold the same run.
    """
    slug, _, run_id = name.rpartition("-")
    if study:
        run_id = f"{re.sub(r'[^A-Za-z0-9._-]+', '-', study)[:24]}-{run_id}"
    pieces = _PIECE.findall(slug)
    first = [piece for piece in pieces if piece.startswith(_FIRST)]
    axes = [piece for piece in pieces if piece.startswith(_AXES)]
    rest = [piece for piece in pieces if piece not in first + axes]
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", "_".join([*first, *axes, *rest]))
    return f"{readable[: ID_LENGTH - len(run_id) - 1].strip('-_.') or 'run'}-{run_id}"


def rerun_commands(config: Config, facts: RunFacts) -> tuple[str, str]:
    """Repeat it from its folder; and from nothing, with every setting that defines it and is no default."""
    words = ["ablate", "train", *differing(config)]
    return f"ablate rerun {facts.study}/{facts.run_id}", shlex.join(words)


def _notes(config: Config, facts: RunFacts) -> str:
    repeat, afresh = rerun_commands(config, facts)
    why = [config.run.notes] if config.run.notes else []
    return "\n\n".join([*why, f"repeat and compare: {repeat}", f"train afresh: {afresh}"])


def _tags(words: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(clean(word, TAG_LENGTH) for word in words if word.strip()))


def _axes(facts: RunFacts, arms: Arms) -> dict[str, Any]:
    """The values of the study's varied factors, by short names without dots: `lr`, `bias`, `placement`."""
    (flat,) = with_bias_words([facts.flat]) if facts.flat else ({},)
    names = short_names([factor.key for factor in arms.factors])
    found = {name.replace(".", "_"): _axis(flat.get(key)) for key, name in names.items() if key in flat}
    return {**found, "lr": _axis(flat.get("optim.lr")), "seed": _axis(flat.get("seed"))}


def _axis(item: object) -> Any:
    return value(item) if isinstance(item, list | tuple) else item


def _nested(config: Config) -> dict[str, Any]:
    """The whole configuration in plain types; biases as a list, empty sections and nested tables as text."""
    tree = dict(finite(to_dict(config)))
    for section in ("sweep", "tracker"):  # how it was launched and is shown: no property of the run
        del tree[section]
    (flat,) = with_bias_words([flatten(config)])
    tree["model"] = {
        **tree["model"],
        "bias": value(flat[BIAS]),
        "bias_sites": [str(site) for site in config.model.bias],
    }
    return tree


def _origin(run: Run, facts: RunFacts) -> dict[str, Any]:
    """Identity, code, machine and size, as far as the run has recorded them."""
    meta = run.meta
    environment, model, data = (as_mapping(meta.get(part)) for part in ("environment", "model", "data"))
    git, versions = as_mapping(environment.get("git")), as_mapping(environment.get("versions"))
    known = {
        "run_id": facts.run_id,
        "harness": {
            "version": versions.get("ablate-bias") or __version__,
            "code_sha": environment.get("code_sha"),
        },
        "git": {"sha": git.get("sha"), "dirty": git.get("dirty")},
        "machine": {key: environment.get(key) for key in ("host", "cpu", "platform")}
        | {key: meta.get(key) for key in ("device", "device_name", "threads")},
        "versions": {key: item for key, item in versions.items() if key in ("python", "torch", "numpy")},
        "parameters": model.get("parameters"),
        "bias_parameters": model.get("linear_biases"),
        "data_fingerprint": data.get("fingerprint"),
        "unigram_entropy": data.get("unigram_entropy"),
    }
    return dict(finite(known))
