"""Writing a folder that transformers loads."""

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ablate.config import ModelConfig, UserError
from ablate.config.weights import CONFIG, SINGLE, printable
from ablate.exchange.choose import family_of, listed
from ablate.exchange.family import Family
from ablate.exchange.layout import Array
from ablate.record import write_json

TOKENIZER, TOKENIZER_CONFIG, GENERATION = "tokenizer.json", "tokenizer_config.json", "generation_config.json"


@dataclass(frozen=True)
class Words:
    """The tokenizer of a model: its tokenizer.json, the token that ends a text, and the one that hides."""

    file: Path
    end: str
    end_id: int
    mask: str | None = None


@dataclass(frozen=True)
class Exported:
    """What was written. `added`: zeros by bias site or table; `parameters` and `bytes` count them too."""

    family: Family
    parameters: int
    bytes: int
    added: Mapping[str, int]


def save_folder(
    target: Path, model: ModelConfig, vocab: int, ours: Mapping[str, Array], words: Words | None
) -> Exported:
    """Write config.json, model.safetensors and, with `words`, the tokenizer, all at once or not at all.

    `ours`: every parameter of the resolved model by name. Raises UserError where no family can say the model,
    `ours` are not its parameters, or `target` is not a new or empty folder; that or OSError where it cannot
    be written.
    """
    family = check_parameters(model, vocab, ours)
    place = Path(os.path.realpath(target))
    check_target(place)
    with _parents_of(place):
        draft = place.with_name(
            f".export-{secrets.token_hex(6)}"
        )  # not of the name: it may be as long as can be
        draft.mkdir()
        try:
            parameters = _write(draft, family, model, vocab, ours, words)
            size = sum(path.stat().st_size for path in draft.iterdir())
            draft.rename(place)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return Exported(family, parameters, size, family.additions(model, vocab))


def check_target(place: Path) -> None:
    """Raise UserError unless a folder can be put there without touching anything."""
    if "\0" in str(place):
        raise UserError(f"{printable(place)} cannot be the name of a folder")
    if place.is_dir() and not any(place.iterdir()):
        return
    if os.path.lexists(place):
        raise UserError(f"{place} is there already", allowed="a new or an empty folder")


def check_parameters(model: ModelConfig, vocab: int, ours: Mapping[str, Array]) -> Family:
    """The family that says a resolved model. Raises UserError where there is none, or `ours` are not all its
    parameters in float32, with every difference by name.
    """
    family = family_of(model, vocab)
    parts = [part for tensor in family.tensors(model, vocab) for part in tensor.parts if part.present]
    wanted = {part.name: part.shape for part in parts}
    found = []
    for name, shape in wanted.items():
        if name not in ours:
            found.append(f"missing: {name} {list(shape)}")
        elif ours[name].shape != shape:
            found.append(f"shape: {name} {list(ours[name].shape)}; this model has {list(shape)}")
        elif ours[name].dtype != np.float32:
            found.append(f"type: {name} is {ours[name].dtype}; allowed: float32")
    found += [f"surplus: {printable(name)} {list(ours[name].shape)}" for name in sorted(ours.keys() - wanted)]
    if found:
        raise UserError("the weights are not those of this model:" + listed(found))
    return family


@contextmanager
def _parents_of(place: Path) -> Iterator[None]:
    """Make the folders around it; those that were not there go again where it does not come to be."""
    missing = [folder for folder in place.parents if not folder.exists()]
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for folder in missing:
            with suppress(OSError):  # it was never made, or somebody else has put something there
                folder.rmdir()
        raise


def _write(
    draft: Path,
    family: Family,
    model: ModelConfig,
    vocab: int,
    ours: Mapping[str, Array],
    words: Words | None,
) -> int:
    """Fill the folder; the number of parameters."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    tensors = {tensor.name: tensor.of(ours) for tensor in family.tensors(model, vocab)}
    try:
        save_file(tensors, draft / SINGLE, metadata={"format": "pt"})
    except SafetensorError as error:  # what the system refused
        raise UserError(f"the weights cannot be written: {error}") from None
    (draft / SINGLE).chmod(0o644)  # as all other files: safetensors lets nobody else read it
    tokens = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"))
    if words is not None:
        tokens["eos_token_id"] = words.end_id
        shutil.copyfile(words.file, draft / TOKENIZER)
        write_json(draft / TOKENIZER_CONFIG, _tokenizer_config(words, model.context))
        if family.generates:
            write_json(draft / GENERATION, {"eos_token_id": words.end_id})
    write_json(draft / CONFIG, {**family.config(model, vocab), **tokens, "dtype": "float32"})
    return sum(tensor.size for tensor in tensors.values())


def _tokenizer_config(words: Words, context: int) -> dict[str, Any]:
    said = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": context,
        "clean_up_tokenization_spaces": False,
        "eos_token": words.end,
    }
    return said if words.mask is None else {**said, "mask_token": words.mask}
