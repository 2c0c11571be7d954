"""Reading a folder of a Hugging Face model: config.json, and tensors when they are asked for."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ablate.config import UserError
from ablate.config.weights import CONFIG, check_regular, printable, read_json_file, weight_files
from ablate.exchange.layout import Array

# As safetensors names them. bfloat16 is the upper half of a float32.
TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


@dataclass(frozen=True)
class Stored:
    """A tensor in a file: read when asked for."""

    path: Path
    kind: str
    shape: tuple[int, ...]
    start: int

    def read(self) -> Array:
        """The tensor in float32."""
        if 0 in self.shape:
            return np.zeros(self.shape, np.float32)
        raw = np.memmap(self.path, TYPES[self.kind], "r", offset=self.start, shape=self.shape)
        if self.kind == "BF16":
            return (raw.astype(np.uint32) << 16).view(np.float32)
        return np.array(raw, dtype=np.float32)


def read_config(folder: Path) -> dict[str, Any]:
    """The config.json of a folder. Raises UserError."""
    path = folder / CONFIG
    try:
        raw = read_json_file(path)
    except OSError as error:
        raise UserError(f"model.weights: cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"model.weights: cannot read {path}: {printable(error)}") from None
    if not isinstance(raw, dict):
        raise UserError(f"model.weights: {path} holds no mapping")
    return raw


def read_tensors(folder: Path) -> list[tuple[str, Stored]]:
    """The tensors of all weight files with their names, of which there may be equal ones.

    Raises UserError for a file that is no safetensors file.
    """
    from safetensors import SafetensorError, safe_open

    found: list[tuple[str, Stored]] = []
    for path in weight_files(folder):
        try:
            check_regular(path)
            with safe_open(path, framework="np"):  # checks the header and that it fits the file
                found += _header(path)
        except OSError as error:
            raise UserError(f"model.weights: cannot read {path}: {error.strerror or error}") from None
        except (SafetensorError, ValueError, RecursionError) as error:
            raise UserError(f"model.weights: {path} is not a safetensors file: {printable(error)}") from None
    return found


def _header(path: Path) -> list[tuple[str, Stored]]:
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    header.pop("__metadata__", None)
    return [
        (name, Stored(path, entry["dtype"], tuple(entry["shape"]), 8 + size + entry["data_offsets"][0]))
        for name, entry in header.items()
    ]
