"""From a data configuration to its fingerprint and its token files."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ablate.config import ConfigError, DataConfig, Objective, UserError, cache_dir, reserved_tokens
from ablate.data.cache import entry
from ablate.data.corpora import CORPORA
from ablate.data.corpus import Announce, Corpus, Stream, Texts, ignore, take
from ablate.data.digests import digest_files
from ablate.data.split import split_documents
from ablate.data.tokenizer import Codec, load_codec, train_bpe, with_reserved
from ablate.data.tokens import COUNTS, TOKENIZER, TRAIN, VAL, TokenData, open_tokens

READER_VERSION = 1  # raise when the same files would be read as other documents
CACHE_VERSION = 1  # raise when the same documents would become other token files


def fingerprint(data: DataConfig) -> str:
    """What the data is, by content: 64 hex digits that neither paths nor names enter.

    SHA-256 over the kind of source, the reader's version, the sorted content digests (or the parameters
    of a synthetic source, or the digest of a data set's text) and the tokenizer.json, if one is given.
    Cheap: unchanged files are not read again. Raises UserError where the data cannot be found or read.
    """
    return _fingerprint(CORPORA[data.source](data), data)


def prepare(data: DataConfig, context: int, announce: Announce = ignore) -> TokenData:
    """The token data of a resolved configuration; built on first use, then opened from the cache.

    Two processes may do this at once: one builds, the other waits. `announce` is told, in a line each,
    what takes time. Raises UserError for data that is missing, undecodable, empty or too small.
    """
    corpus = CORPORA[data.source](data)
    known = _fingerprint(corpus, data)
    reserved = reserved_tokens(data, context)
    folder = cache_dir(data) / "tokens" / _key(known, data, reserved)

    def build(draft: Path) -> Mapping[str, Any]:
        built = _streams(corpus, data, reserved, draft, announce)
        return {"fingerprint": known, **built}

    return open_tokens(folder, entry(folder, build, announce), data, context)


def _fingerprint(corpus: Corpus, data: DataConfig) -> str:
    return _hash(
        {
            "source": data.source.value,
            "reader": READER_VERSION,
            "content": dict(corpus.identity),
            "tokenizer": _tokenizer_digest(data),
        }
    )


def _key(known: str, data: DataConfig, reserved: Sequence[str]) -> str:
    parts: dict[str, Any] = {
        "fingerprint": known,
        "vocab_size": data.vocab_size,
        "split_seed": data.split_seed,
        "val_fraction": data.val_fraction,
        "max_bytes": data.max_bytes,
        "version": CACHE_VERSION,
    }
    if reserved:
        parts["reserved"] = list(reserved)
    return _hash(parts)[:32]


def _hash(parts: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _tokenizer_digest(data: DataConfig) -> str | None:
    if data.tokenizer is None:
        return None
    return digest_files([Path(data.tokenizer).expanduser()], cache_dir(data))[0]


def _streams(
    corpus: Corpus, data: DataConfig, reserved: Sequence[str], draft: Path, announce: Announce
) -> dict[str, Any]:
    """Fill `draft` with the token files and return their facts."""
    if isinstance(corpus, Stream):
        ordinary = data.vocab_size - len(reserved)
        announce(f"drawing {data.tokens:,} tokens from a chain of {ordinary:,}")
        train_S, val_S = corpus.draw(ordinary)
        written = _write_both(draft, [train_S], [val_S], data.vocab_size)
        facts = {"documents": 0, "bytes": 0, "tokenizer_sha256": None, "entropy_rate": corpus.entropy_rate}
        return {**facts, **written}
    documents = _documents(corpus, data, announce)
    split = split_documents(documents, data.val_fraction, data.split_seed, announce)
    codec, mask = _codec(split.train, data, reserved, draft, announce)
    announce("encoding the corpus")
    written = _write_both(draft, codec.encode(split.train), codec.encode(split.val), data.vocab_size)
    return {
        "documents": len(documents),
        "bytes": sum(len(text.encode()) for text in documents),
        "tokenizer_sha256": hashlib.sha256((draft / TOKENIZER).read_bytes()).hexdigest(),
        "entropy_rate": None,
        **({} if mask is None else {"mask": mask}),
        **written,
    }


def _documents(corpus: Texts, data: DataConfig, announce: Announce) -> list[str]:
    announce(f"reading the corpus ({data.source.value})")
    documents = take(corpus.read(), data.max_bytes)
    corpus.verify(documents)
    if not documents:
        raise UserError(
            f"the corpus is empty: no text in data.source = {data.source.value}",
            hint="files, rows or a column with text in them",
        )
    return documents


def _codec(
    train: tuple[str, ...], data: DataConfig, reserved: Sequence[str], draft: Path, announce: Announce
) -> tuple[Codec, int | None]:
    """The tokenizer, trained or given; its file goes into `draft`, with the reserved tokens.

    And the mask token that a given one has of its own: nothing is reserved then.
    """
    if data.tokenizer is None:
        announce(f"training a byte-level BPE of {data.vocab_size:,} tokens")
        (draft / TOKENIZER).write_text(train_bpe(train, data.vocab_size, reserved), encoding="utf-8")
        return load_codec(draft / TOKENIZER), None
    path = Path(data.tokenizer).expanduser()
    (draft / TOKENIZER).write_bytes(path.read_bytes())
    codec = load_codec(draft / TOKENIZER, str(path))
    mask = codec.mask if data.objective is Objective.masked else None
    reserved = reserved if mask is None else ()
    needed = codec.vocab_size + len(reserved)
    if needed != data.vocab_size:
        own = f"{codec.vocab_size}, the vocabulary of {path}"
        more = f"{needed}: {own}, and {len(reserved)} that data.objective={data.objective} reserves"
        raise ConfigError.setting(
            "data.vocab_size", data.vocab_size, more if reserved else own, f"data.vocab_size={needed}"
        )
    if reserved:
        (draft / TOKENIZER).write_text(with_reserved(codec, reserved, str(path)), encoding="utf-8")
    return codec, mask


@dataclass(frozen=True)
class _Written:
    digest: bytes
    counts_V: NDArray[np.int64]


def _write_both(
    draft: Path, train: Iterable[NDArray[np.int64]], val: Iterable[NDArray[np.int64]], vocab_size: int
) -> dict[str, Any]:
    dtype = "<u2" if vocab_size <= 1 << 16 else "<u4"
    left = _write(draft / TRAIN, train, vocab_size, dtype)
    right = _write(draft / VAL, val, vocab_size, dtype)
    left.counts_V.astype("<i8").tofile(draft / COUNTS)
    return {"dtype": dtype, "tokens_sha256": hashlib.sha256(left.digest + right.digest).hexdigest()}


def _write(path: Path, runs: Iterable[NDArray[np.int64]], vocab_size: int, dtype: str) -> _Written:
    digest, counts_V = hashlib.sha256(), np.zeros(vocab_size, dtype=np.int64)
    with path.open("wb") as file:
        for run_S in runs:
            content = run_S.astype(dtype).tobytes()
            file.write(content)
            digest.update(content)
            counts_V += np.bincount(run_S, minlength=vocab_size)
    return _Written(digest.digest(), counts_V)
