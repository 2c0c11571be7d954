"""Writing a folder that transformers loads."""

import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablate.config import ModelConfig, UserError
from ablate.config.weights import CONFIG, SINGLE
from ablate.exchange.choose import family_of
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

    `ours`: every parameter of the resolved model by name. Raises UserError where no family can say the model
    or `target` is not a new or empty folder, that or OSError where it cannot be written.
    """
    family = family_of(model, vocab)
    place = Path(os.path.realpath(target))
    check_target(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = place.with_name(f".{place.name}.{secrets.token_hex(6)}")
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
    if place.is_dir() and not any(place.iterdir()):
        return
    if os.path.lexists(place):
        raise UserError(f"{place} is there already", allowed="a new or an empty folder")


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
