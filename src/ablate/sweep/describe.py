"""What the models of a plan really have: asked of a worker process, and remembered in the cache folder."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from ablate.config import Config, ModelConfig, OptimConfig, cache_dir, to_dict
from ablate.record import code_sha, read_json, write_json
from ablate.sweep.faults import ending, last_lines
from ablate.sweep.launch import WorkerError

Model = tuple[ModelConfig, int]  # what decides a model's parts: its configuration and the vocabulary
Descriptions = Mapping[Model, Mapping[str, Any]]


@dataclass(frozen=True)
class Groups:
    """Parameters with and without weight decay."""

    decayed: int
    exempt: int


def model_of(config: Config) -> Model:
    """The model that a run trains."""
    return config.model, config.data.vocab_size


def describe_models(
    configs: Iterable[Config], announce: Callable[[str], None]
) -> dict[Model, dict[str, Any]]:
    """The description (see `ablate.model.Description`) of every distinct model.

    All that are not remembered are asked of one worker process. What is remembered counts for the present
    code alone. Raises WorkerError when the worker process dies.
    """
    wanted: dict[Model, Config] = {}
    for config in configs:
        wanted.setdefault(model_of(config), config)
    code = code_sha()
    places = {model: _place(model, config, code) for model, config in wanted.items()}
    known = {model: read_json(place) for model, place in places.items() if place.is_file()}
    missing = [model for model in wanted if model not in known]
    if missing:
        announce(f"counting the parameters of {len(missing)} models" if len(missing) > 1 else
                 "counting the model's parameters")  # fmt: skip
        answers = _ask([_question(model, wanted[model]) for model in missing])
        for model, answer in zip(missing, answers, strict=True):
            places[model].parent.mkdir(parents=True, exist_ok=True)
            write_json(places[model], answer)
            known[model] = answer
    return known


def decay_counts(description: Mapping[str, Any], optim: OptimConfig) -> Groups:
    """How many parameters decay: the rule of `ablate.train`'s decay groups, by kind of parameter."""
    chosen = {"matrix"}
    if optim.decayed == "all":
        chosen |= {"bias", "gain"}
    if optim.decay_embeddings:
        chosen.add("embedding")
    decayed = sum(n for kind, n in description["by_kind"].items() if kind in chosen)
    return Groups(decayed, description["parameters"] - decayed)


def _question(model: Model, config: Config) -> dict[str, Any]:
    return {"model": to_dict(config)["model"], "vocab_size": model[1]}


def _place(model: Model, config: Config, code: str) -> Path:
    text = json.dumps([code, _question(model, config)], sort_keys=True)
    return cache_dir(config.data) / "models" / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


def _ask(questions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "ablate.worker.describe"]
    done = subprocess.run(command, input=orjson.dumps(questions), capture_output=True, check=False)
    if done.returncode:
        log = last_lines(done.stderr.decode(errors="replace"))
        raise WorkerError(f"the worker that describes models {ending(done.returncode)}\n{log}")
    answers: list[dict[str, Any]] = orjson.loads(done.stdout)
    return answers
