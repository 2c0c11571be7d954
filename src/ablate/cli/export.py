"""`ablate export`: a finished run as a folder that other software loads."""

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ablate.cli.codes import ALL_DONE
from ablate.cli.studies import meant_run
from ablate.config import Keep, Objective, UserError
from ablate.data import load_codec, prepare
from ablate.exchange import Exported, Words, check_parameters, check_target, family_of, save_folder
from ablate.record import REDO, Run, RunFolder, State
from ablate.view import clean

FINAL = "final/model.safetensors"
MEBIBYTE = 1 << 20


def run(args: argparse.Namespace) -> int:
    """Write the folder; say what is in it and how it is loaded. Raises UserError."""
    target = Path(args.out).expanduser()
    check_target(target)
    folder = meant_run(Path(args.root), args.target, "exported")
    record = Run(folder)
    weights = _weights(record)
    model, vocab = record.config.model, record.config.data.vocab_size
    family_of(model, vocab)
    _check(record, weights)  # both before the tokenizer is looked for, which may take long
    words = _words(record)
    exported = save_folder(target, model, vocab, weights, words)
    for line in [
        *_what(folder, target, exported),
        *exported.family.notes(model),
        *_remarks(record, weights, words),
    ]:
        print(clean(line))
    print("\n".join(_python(target, exported, words)))
    return ALL_DONE


def _weights(record: Run) -> dict[str, NDArray[np.float32]]:
    """The final weights of a finished run. Raises UserError where there are none, with what to do."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    folder, state = record.folder, record.status.state
    path = folder.checkpoint / FINAL
    if state is not State.done:
        raise UserError(
            f"{folder.path} is {state}: it has no final weights yet",
            allowed="runs that are done",
            hint=f"python -m ablate.worker {folder.path}",
        )
    if not path.is_file():
        kept = record.config.run.keep is not Keep.none
        why = f"{path} is gone" if kept else "it was told to keep no weights (run.keep=none)"
        raise UserError(f"{folder.path} has no weights: {why}", hint=f"run.keep=weights {REDO}")
    try:
        return dict(load_file(path))
    except (OSError, SafetensorError) as error:
        raise UserError(f"{path} cannot be read: {error}", hint=REDO) from None


def _check(record: Run, weights: Mapping[str, NDArray[np.float32]]) -> None:
    """Raise UserError where the file holds other weights than the model's."""
    config = record.config
    try:
        check_parameters(config.model, config.data.vocab_size, weights)
    except UserError as error:
        path = record.folder.checkpoint / FINAL
        raise UserError(f"{path} is damaged, or of another run: {error.problem}", hint=REDO) from None


def _words(record: Run) -> Words | None:
    """The tokenizer that the run was trained with; None for a source of tokens. Raises UserError."""
    data, context = record.config.data, record.config.model.context
    prepared = prepare(data, context, print)
    known = record.meta.get("data", {}).get("tokenizer_sha256")
    if prepared.facts.tokenizer_sha256 != known:
        raise UserError(
            "the data of this run have changed since, and with them the tokenizer",
            allowed=f"the tokenizer with SHA-256 {known}",
            hint="bring the data back, or train on what there is now",
        )
    if prepared.tokenizer is None:
        return None
    codec = load_codec(prepared.tokenizer)
    mask = None
    if data.objective is Objective.masked:
        mask = codec.tokenizer.id_to_token(prepared.task.special)
    return Words(prepared.tokenizer, str(codec.tokenizer.id_to_token(codec.end)), codec.end, mask)


def _what(folder: RunFolder, target: Path, exported: Exported) -> list[str]:
    family, size = exported.family, exported.bytes / MEBIBYTE
    said = [
        f"{folder.path} as {family.name} ({family.architecture}) in {target}: "
        f"{exported.parameters:,} parameters, {size:.1f} MiB"
    ]
    if exported.added:
        parts = ", ".join(f"{name} ({count:,})" for name, count in exported.added.items())
        said.append(f"added as zeros, which changes nothing: {parts}")
    return said


def _verdict(record: Run) -> str:
    """What the run's summary says of it."""
    try:
        verdict = (record.summary or {}).get("verdict")
    except UserError:
        return f"{record.folder.summary} cannot be read"
    return f"the run's verdict is {verdict}" if verdict else "the run has no verdict"


def _remarks(record: Run, weights: Mapping[str, NDArray[np.float32]], words: Words | None) -> list[str]:
    said = []
    if not all(np.isfinite(array).all() for array in weights.values()):
        said.append(f"the weights are not all finite; {_verdict(record)}")
    if words is None:
        said.append("no tokenizer: the run was trained on tokens, not on text")
    return said


def _python(target: Path, exported: Exported, words: Words | None) -> list[str]:
    """The two lines that load it."""
    names, place = [exported.family.auto, *(["AutoTokenizer"] if words else [])], repr(str(target))
    variables = ", ".join(["model", "tokenizer"][: len(names)])
    calls = ", ".join(f"{name}.from_pretrained({place})" for name in names)
    return [f"from transformers import {', '.join(names)}", f"{variables} = {calls}"]
