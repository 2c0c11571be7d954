"""Byte-level BPE: trained on the training documents, or loaded from a tokenizer.json."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ablate.config import SMALLEST_BPE, ConfigError, UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

END_OF_TEXT = "<|endoftext|>"
END_NAMES = (END_OF_TEXT, "</s>", "<eos>", "<|end_of_text|>", "<|eot_id|>", "<|im_end|>", "[EOS]", "[SEP]")
MASK_NAMES = ("<mask>", "[MASK]", "<|mask|>")
PIECE = 1 << 20  # characters encoded at once: bounds the memory that a long document takes


@dataclass(frozen=True)
class Codec:
    """Text to tokens and back. `end` closes every document; `vocab_size` counts up to the largest id.

    `mask`: the tokenizer's own token for what is hidden, if it has one.
    """

    tokenizer: "Tokenizer"
    end: int
    vocab_size: int
    mask: int | None

    def encode(self, documents: Iterable[str]) -> Iterator[NDArray[np.int64]]:
        """Token ids in runs of about a megabyte of text; each document is closed by `end`.

        A special token's name inside a text is encoded as the text it is. Raises UserError for a text that
        the tokenizer has no tokens for.
        """
        for group in _groups(documents):
            texts = [text for text, _ in group]
            try:
                encodings = self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
            except Exception as error:  # tokenizers raises nothing more specific
                raise UserError(
                    f"data.tokenizer: it cannot encode the corpus: {error}",
                    hint="a byte-level tokenizer, or one with a token for what it does not know",
                ) from error
            ids: list[int] = []
            for encoding, (_, last) in zip(encodings, group, strict=True):
                ids.extend(encoding.ids)
                if last:
                    ids.append(self.end)
            yield np.array(ids, dtype=np.int64)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens; the end of a text reads as its name."""
        return str(self.tokenizer.decode([int(token) for token in tokens], skip_special_tokens=False))


def train_bpe(documents: Sequence[str], vocab_size: int, reserved: Sequence[str] = ()) -> str:
    """The tokenizer.json of a byte-level BPE with exactly `vocab_size` tokens: `<|endoftext|>` at 0, and the
    `reserved` ones, which no text is made of, at the end.

    The same documents give the same file, in any number of threads. Raises ConfigError if the vocabulary
    cannot hold all bytes, or if the documents have too few repeated pairs to reach it.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    least = SMALLEST_BPE + len(reserved)
    if vocab_size < least:
        own = f", {END_OF_TEXT} and {len(reserved)} reserved" if reserved else f" and {END_OF_TEXT}"
        raise ConfigError.setting("data.vocab_size", vocab_size, f"at least {least}: 256 bytes{own}")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - len(reserved),
        min_frequency=2,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    pieces = (piece for document in documents for piece in _pieces(document))
    tokenizer.train_from_iterator(pieces, trainer)
    tokenizer.add_special_tokens(list(reserved))
    reached = tokenizer.get_vocab_size()
    if reached < vocab_size:
        raise ConfigError.setting(
            "data.vocab_size",
            vocab_size,
            f"{least} to {reached}: the training text has no more pairs that occur twice",
            hint=f"data.vocab_size={reached}, or more text",
        )
    return str(tokenizer.to_str(pretty=True))


def load_codec(path: Path, name: str | None = None) -> Codec:
    """The codec of a tokenizer.json, with its own padding and truncation off; `name` is for errors.

    Raises UserError if the file is missing, is no tokenizer, or has no end-of-text token.
    """
    name = name or str(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"data.tokenizer: cannot read {name}: {error.strerror}") from error
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_buffer(content)
    except Exception as error:  # tokenizers raises nothing more specific
        raise UserError(f"data.tokenizer: {name} is not a tokenizer.json: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    end = _first(tokenizer, END_NAMES)
    if end is None:
        raise UserError(
            f"data.tokenizer: {name} has no end-of-text token", allowed=f"one of {' '.join(END_NAMES)}"
        )
    size = max(tokenizer.get_vocab(with_added_tokens=True).values()) + 1
    return Codec(tokenizer, end, size, _first(tokenizer, MASK_NAMES))


def _first(tokenizer: "Tokenizer", names: Iterable[str]) -> int | None:
    """The id of the first of these names that the tokenizer has."""
    return next((found for name in names if (found := tokenizer.token_to_id(name)) is not None), None)


def with_reserved(codec: Codec, reserved: Sequence[str], name: str) -> str:
    """The tokenizer.json of a given tokenizer with the `reserved` tokens behind its own; `name`: for errors.

    A name that it has already gets underscores. Raises UserError where its ids leave gaps: new tokens would
    come to stand in them.
    """
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(codec.tokenizer.to_str())
    for number, token in enumerate(reserved):
        while tokenizer.token_to_id(token) is not None:
            token = f"{token[:-1]}_>"
        tokenizer.add_special_tokens([token])
        if tokenizer.token_to_id(token) != codec.vocab_size + number:
            raise UserError(
                f"data.tokenizer: the ids of {name} leave gaps: nothing can be reserved behind the last",
                allowed="ids from 0 on without gaps, for any data.objective but next",
            )
    return str(tokenizer.to_str(pretty=True))


def _pieces(document: str) -> Iterator[str]:
    """A document cut at line ends into pieces of at least PIECE characters (the last may be shorter)."""
    start = 0
    while len(document) - start > PIECE:
        end = document.find("\n", start + PIECE) + 1 or len(document)
        yield document[start:end]
        start = end
    if start < len(document):
        yield document[start:]


def _groups(documents: Iterable[str]) -> Iterator[list[tuple[str, bool]]]:
    """Lists of (piece, is it the document's last) of about PIECE characters each."""
    group: list[tuple[str, bool]] = []
    size = 0
    for document in documents:
        rest = len(document)
        for piece in _pieces(document):
            rest -= len(piece)
            group.append((piece, rest == 0))
            size += len(piece)
            if size >= PIECE:
                yield group
                group, size = [], 0
    if group:
        yield group
