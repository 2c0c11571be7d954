"""Documents from files: a text file is one document, a JSON line or a parquet row is one."""

import glob
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from ablate.config import ConfigError, DataConfig, UserError, cache_dir, nearest
from ablate.data.corpus import Texts
from ablate.data.digests import digest_files, stamp


class FileKind(StrEnum):
    text = "text"
    jsonl = "jsonl"
    parquet = "parquet"


SUFFIXES = {".jsonl": FileKind.jsonl, ".ndjson": FileKind.jsonl, ".parquet": FileKind.parquet}


def text(data: DataConfig) -> Texts:
    """The user's own files: `data.paths`, with `**` and `~` expanded."""
    if not data.paths:
        raise ConfigError.setting(
            "data.paths", "[]", "one or more files or globs (source: text)", "data.paths='[notes/**/*.md]'"
        )
    return of_files(expand(data.paths), data)


def of_files(paths: Iterable[Path], data: DataConfig) -> Texts:
    """A corpus of the given files, known by their content: neither names nor order matter.

    Files are read in the order of their digests, so that `data.max_bytes` takes the same ones wherever
    they lie. Raises UserError for a file that cannot be read or decoded, or lacks `data.field`.
    """
    listed = list(paths)
    digests = digest_files(listed, cache_dir(data))
    kinds = [SUFFIXES.get(path.suffix.lower(), FileKind.text) for path in listed]
    files = sorted(zip(digests, kinds, listed, strict=True))
    before = {path: stamp(path) for path in listed}

    def read() -> Iterator[str]:
        for _, kind, path in files:
            try:
                yield from READERS[kind](path, data.field)
            except OSError as error:
                raise UserError(f"cannot read {path}: {error.strerror or error}") from error

    def verify(documents: Sequence[str]) -> None:
        for path, known in before.items():
            if stamp(path) != known:
                raise UserError(f"{path} changed while it was read", hint="start again once it is at rest")

    identity: dict[str, Any] = {"files": [[kind, digest] for digest, kind, _ in files]}
    if any(kind is not FileKind.text for kind in kinds):
        identity["field"] = data.field
    return Texts(identity, read, verify)


def expand(patterns: Iterable[str]) -> list[Path]:
    """The files that paths and globs name, each once, sorted.

    Raises UserError for a path that is missing, a folder or a device, and for a glob that matches no file.
    """
    found: set[Path] = set()
    for pattern in patterns:
        path = Path(pattern).expanduser()
        if path.is_file():
            found.add(path.resolve())
        elif path.is_dir():
            raise UserError(f"data.paths: {pattern} is a folder", hint=f"'{pattern.rstrip('/')}/**/*.txt'")
        elif path.exists():
            raise UserError(
                f"data.paths: {pattern} is no regular file", hint="a copy of its content in a file"
            )
        elif glob.has_magic(pattern):
            matches = [Path(name) for name in glob.glob(str(path), recursive=True)]
            files = {match.resolve() for match in matches if match.is_file()}
            if not files:
                raise UserError(
                    f"data.paths: no file matches {pattern}",
                    hint=f"a pattern that finds files from {Path.cwd()}; `**` goes into sub-folders",
                )
            found |= files
        else:
            raise UserError(f"data.paths: {pattern} does not exist", hint=_neighbour(path))
    return sorted(found)


def decode(content: bytes, path: Path, start: int = 0) -> str:
    """UTF-8 text, or a UserError that names the file and the byte; `start` is where `content` begins."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path} is not UTF-8 text: byte 0x{content[error.start]:02x} at offset {start + error.start}",
            hint="convert it to UTF-8, or leave it out of data.paths",
        ) from error


def missing_field(where: str, field: str, existing: Iterable[str]) -> UserError:
    """The error for a column that is not there, with those that are."""
    names = sorted(existing)
    return UserError(
        f"data.field = {field}: not in {where}",
        allowed=", ".join(names) or "(nothing: no fields there)",
        hint=f"data.field={nearest(field, names) or names[0]}" if names else None,
    )


def _read_text(path: Path, field: str) -> Iterator[str]:
    yield decode(path.read_bytes(), path)


def _read_jsonl(path: Path, field: str) -> Iterator[str]:
    import orjson

    offset = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            source = decode(line, path, offset)
            offset += len(line)
            if not source.strip():
                continue
            try:
                row = orjson.loads(source)
            except orjson.JSONDecodeError as error:
                raise UserError(f"{path}, line {number} is not JSON: {error.msg}") from error
            yield _cell(row, field, f"{path}, line {number}")


def _cell(row: object, field: str, where: str) -> str:
    if not isinstance(row, dict):
        raise UserError(f"{where} is not a JSON object", hint=f'one {{"{field}": "…"}} a line')
    if field not in row:
        raise missing_field(where, field, row)
    return string(row[field], field, where)


def string(value: object, field: str, where: str) -> str:
    """A cell's text; null is an empty document."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise UserError(f"data.field = {field}: {where} holds {type(value).__name__}, not text")
    return value


def _read_parquet(path: Path, field: str) -> Iterator[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            if field not in file.schema_arrow.names:
                raise missing_field(str(path), field, file.schema_arrow.names)
            for batch in file.iter_batches(columns=[field]):
                for value in batch.column(0).to_pylist():
                    yield string(value, field, str(path))
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read as parquet: {error}") from error


READERS: dict[FileKind, Callable[[Path, str], Iterator[str]]] = {
    FileKind.text: _read_text,
    FileKind.jsonl: _read_jsonl,
    FileKind.parquet: _read_parquet,
}


def _neighbour(path: Path) -> str:
    names = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    if close := nearest(path.name, names):
        return str(path.parent / close)
    return f"a path from {Path.cwd()}, or a glob such as 'notes/**/*.md'"
