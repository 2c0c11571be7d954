"""Is the tokenizer of prepared data the one that a folder's weights were trained with?"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ablate.config import UserError
from ablate.config.errors import shown
from ablate.config.weights import printable, read_json_file
from ablate.data.tokens import TOKENIZER, TokenData


def check_tokenizer(weights: Path, tokens: TokenData) -> None:
    """Refuse tokens that mean something else to the weights in a Hugging Face folder.

    Compared are the vocabularies (token to id) and the merges of both tokenizer.json, however they are
    written. A folder without one, and a source of tokens, have nothing to compare. Raises UserError.
    """
    theirs = weights / TOKENIZER
    if tokens.tokenizer is None or not theirs.exists():
        return
    if _says(theirs) != _says(tokens.tokenizer):
        raise UserError(
            f"model.weights = {weights}: its {TOKENIZER} has other tokens than the data, whose ids would "
            "mean something else to these weights",
            allowed="data in the tokens that the weights were trained with",
            hint=f"data.tokenizer={shown(theirs)}",
        )


def _says(path: Path) -> tuple[Any, Any]:
    """The vocabulary and the merges of a tokenizer.json; merges as pairs, since both spellings are in use."""
    try:
        model = read_json_file(path)["model"]
        if not isinstance(model, Mapping):
            raise TypeError("its model is no mapping")
        merges = [
            merge.split(" ") if isinstance(merge, str) else merge for merge in model.get("merges") or ()
        ]
        return model["vocab"], merges
    except OSError as error:
        raise UserError(f"model.weights: cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"model.weights: {path} is not a tokenizer.json: {printable(error)}") from None
