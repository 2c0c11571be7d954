"""Documents from a `datasets` data set: on the hub, saved with save_to_disk, or plain local files."""

import functools
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ablate.config import ConfigError, DataConfig, UserError, cache_dir
from ablate.data.corpus import Texts, take, text_digest
from ablate.data.digests import digest_files, write_atomically
from ablate.data.files import missing_field, string

BUILDERS = {
    ".jsonl": "json",
    ".json": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".csv": "csv",
    ".txt": "text",
}
COMMIT = re.compile(r"[0-9a-f]{40}")


def hub(data: DataConfig) -> Texts:
    """The column `data.field` of `data.name`; a row is a document.

    Known by the digest of the text as it was read (up to `data.max_bytes`). That digest is remembered by
    what pins the text: the content of local files; a commit given as `data.revision`; the fingerprint
    that `datasets` gives to a downloaded set. A stream that nothing pins is read each time.
    """
    if data.name is None:
        raise ConfigError.setting("data.name", None, "a data set of the hub, or a local path (source: hub)")
    load = functools.cache(lambda: _load(data))

    def read() -> Iterator[str]:
        return _rows(load(), data)

    store = _store(data, load)
    known = store.read_text() if store is not None and store.is_file() else None
    if known is None:
        known = _digest(take(read(), data.max_bytes))
        _remember(store, known)

    def verify(documents: Sequence[str]) -> None:
        if (now := _digest(documents)) != known:
            _remember(store, now)
            raise UserError(f"data set {data.name} changed while it was read", hint="start again")

    return Texts({"text": known}, read, verify)


def _digest(documents: Sequence[str]) -> str:
    return hashlib.sha256("".join(sorted(map(text_digest, documents))).encode()).hexdigest()


def _remember(store: Path | None, digest: str) -> None:
    if store is not None:
        try:
            write_atomically(store, digest.encode())
        except OSError as error:
            raise UserError(f"cannot write {store}: {error.strerror}") from error


def _store(data: DataConfig, load: Any) -> Path | None:
    """Where the digest of this text is remembered; None where nothing pins the text."""
    local = _local(data)
    pin: object
    if local is not None:
        files = [local] if local.is_file() else sorted(p for p in local.rglob("*") if p.is_file())
        pin = [
            [path.relative_to(local).as_posix(), digest]
            for path, digest in zip(files, digest_files(files, cache_dir(data)), strict=True)
        ]
    elif data.revision is not None and COMMIT.fullmatch(data.revision):
        pin = [data.name, data.revision]
    elif not data.streaming:
        pin = [data.name, load()._fingerprint]
    else:
        return None
    scope = [pin, data.subset, data.split, data.field, data.max_bytes]
    return cache_dir(data) / "hub" / hashlib.sha256(json.dumps(scope).encode()).hexdigest()[:32]


def _local(data: DataConfig) -> Path | None:
    path = Path(str(data.name)).expanduser()
    if path.exists():
        return path
    if str(data.name).startswith(("/", "./", "../", "~")):
        raise UserError(f"data.name: {data.name} does not exist", hint="a data set of the hub: owner/name")
    return None


def _load(data: DataConfig) -> Any:
    """A datasets.Dataset or IterableDataset; every way to miss it is a UserError."""
    import datasets

    local = _local(data)
    options: dict[str, Any] = {"name": data.subset, "split": data.split, "streaming": data.streaming}
    try:
        if local is None:
            return datasets.load_dataset(data.name, revision=data.revision, **options)
        if any((local / name).is_file() for name in ("state.json", "dataset_dict.json")):
            return _saved(datasets.load_from_disk(str(local)), data)
        # Copies of local files in another format belong in our own cache folder.
        options["cache_dir"] = str(cache_dir(data) / "datasets")
        if local.is_dir():
            return datasets.load_dataset(str(local), **options)
        return datasets.load_dataset(_builder(local), data_files=str(local), **options)
    except UserError:
        raise
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        raise _failed(data, error) from error


def _saved(loaded: Any, data: DataConfig) -> Any:
    if not isinstance(loaded, dict):
        held = "train" if loaded.split is None else str(loaded.split)
        if data.split != held:
            raise ConfigError.setting("data.split", data.split, f"{held} (all that {data.name} holds)")
        return loaded
    if data.split not in loaded:
        raise ConfigError.setting("data.split", data.split, ", ".join(loaded) + f" (splits of {data.name})")
    return loaded[data.split]


def _builder(path: Path) -> str:
    if path.suffix.lower() not in BUILDERS:
        raise UserError(f"data.name: {path} has no known format", allowed=", ".join(BUILDERS))
    return BUILDERS[path.suffix.lower()]


def _rows(dataset: Any, data: DataConfig) -> Iterator[str]:
    import datasets

    where = f"data set {data.name}"
    if dataset.column_names is not None:
        if data.field not in dataset.column_names:
            raise missing_field(where, data.field, dataset.column_names)
        dataset = dataset.select_columns([data.field])
    rows = iter(dataset)
    while True:
        try:
            row = next(rows, None)
        except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
            raise _failed(data, error) from error
        if row is None:
            return
        if data.field not in row:
            raise missing_field(where, data.field, row)
        yield string(row[data.field], data.field, where)


def _failed(data: DataConfig, error: Exception) -> UserError:
    """`datasets` names what exists (splits, configurations) in its own message or in that of the cause."""
    reason = str(error.__cause__ or error).strip() or type(error).__name__
    return UserError(
        f"cannot read data set {data.name} (split {data.split}): {reason}",
        hint="check data.name, data.subset, data.split and data.revision; without a network: a local path",
    )
