"""The folder of a Hugging Face model to start from: its files, and the digest that stands for them."""

import dataclasses
import hashlib
import json
import os
import stat
from functools import cache
from pathlib import Path
from typing import Any

from ablate.config.errors import ConfigError
from ablate.config.model import ModelConfig

CONFIG, SINGLE, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
ALLOWED = f"a folder with {CONFIG} and {SINGLE}, or the shards that {INDEX} names"


def anchored(model: ModelConfig) -> ModelConfig:
    """The model with its folder of weights absolute and their digest filled in.

    Raises ConfigError where the folder or its files are missing, or have another digest than the one given.
    """
    if model.weights is None:
        return model
    folder = Path(os.path.abspath(os.path.expanduser(model.weights)))
    digest = weights_digest(folder)
    if model.weights_sha256 not in (None, digest):
        raise ConfigError.setting("model.weights_sha256", model.weights_sha256, f"{digest}, that of {folder}")
    return dataclasses.replace(model, weights=str(folder), weights_sha256=digest)


def weights_digest(folder: Path) -> str:
    """SHA-256 over the names and contents of config.json and the safetensors files.

    Files that did not change since this process read them are not read again. Raises ConfigError.
    """
    digest = hashlib.sha256()
    for path in [folder / CONFIG, *weight_files(folder)]:
        try:
            size, modified_ns = check_regular(path)
            known = _file_digest(path, size, modified_ns)
        except OSError as error:
            raise _unusable(folder, path, error) from None
        digest.update(f"{path.name}\0{known}\0".encode())
    return digest.hexdigest()


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a folder, as transformers chooses them. Raises ConfigError."""
    if not folder.is_dir():
        raise ConfigError.setting("model.weights", folder, f"{ALLOWED}; there is no such folder")
    if os.path.lexists(folder / SINGLE):
        return [folder / SINGLE]
    try:
        shards = read_json_file(folder / INDEX)["weight_map"].values()
        names = list(dict.fromkeys(shards))
    except FileNotFoundError:
        raise ConfigError.setting("model.weights", folder, f"{ALLOWED}; there is neither") from None
    except OSError as error:
        raise _unusable(folder, folder / INDEX, error) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        why = f"model.weights = {folder}: {INDEX}: {printable(error)}"
        raise ConfigError(why, allowed=f"a readable {INDEX}") from None
    if not names or not all(map(_is_plain_name, names)):
        raise ConfigError.setting("model.weights", folder, f"a {INDEX} that names files of the folder")
    return [folder / name for name in sorted(names)]


def read_json_file(path: Path) -> Any:
    """The content of a JSON file that somebody else wrote. Raises OSError, ValueError."""
    check_regular(path)
    try:
        return json.loads(path.read_bytes())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def check_regular(path: Path) -> tuple[int, int]:
    """Size and time of change of a regular file; reading another could wait for ever. Raises OSError."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError(0, "not a regular file", str(path))
    return found.st_size, found.st_mtime_ns


def printable(text: object, limit: int = 160) -> str:
    """Somebody else's words on one line: control characters become escapes, the end of long ones `…`."""
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(text))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _is_plain_name(name: object) -> bool:
    """Does it name a file in the folder itself?"""
    return isinstance(name, str) and name.isprintable() and "/" not in name and name not in ("", ".", "..")


def _unusable(folder: Path, path: Path, error: OSError) -> ConfigError:
    why = f"{path.name}: {error.strerror}"
    return ConfigError(f"model.weights = {folder}: {why}", allowed=ALLOWED)


@cache
def _file_digest(path: Path, size: int, modified_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
