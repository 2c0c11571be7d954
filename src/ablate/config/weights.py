"""The folder of a Hugging Face model to start from: its files, and the digest that stands for them."""

import dataclasses
import hashlib
import json
import os
from functools import cache
from pathlib import Path

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
            stat = path.stat()
            known = _file_digest(path, stat.st_size, stat.st_mtime_ns)
        except OSError as error:
            raise ConfigError.setting("model.weights", folder, ALLOWED, f"{path}: {error.strerror}") from None
        digest.update(f"{path.name}\0{known}\0".encode())
    return digest.hexdigest()


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a folder, as transformers chooses them. Raises ConfigError."""
    if not folder.is_dir():
        raise ConfigError.setting("model.weights", folder, f"{ALLOWED}; there is no such folder")
    if (folder / SINGLE).is_file():
        return [folder / SINGLE]
    try:
        shards = json.loads((folder / INDEX).read_bytes())["weight_map"].values()
        names = sorted(set(map(str, shards)))
    except FileNotFoundError:
        raise ConfigError.setting("model.weights", folder, f"{ALLOWED}; there is neither") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError.setting("model.weights", folder, f"a readable {INDEX}: {error}") from None
    if not names or any(Path(name).name != name for name in names):
        raise ConfigError.setting("model.weights", folder, f"an {INDEX} that names files of the folder")
    return [folder / name for name in names]


@cache
def _file_digest(path: Path, size: int, modified_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
