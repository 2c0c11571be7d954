"""Corpora, tokenizer and token cache, fingerprint, and batches and
examples as pure functions of (data_seed, step).

A user's guide stands in docs/data.md.
"""

from ablate.data.batches import Batches, permute
from ablate.data.corpora import CORPORA, Corpus, Stream, Texts
from ablate.data.examples import Examples, Task
from ablate.data.files import expand, of_files
from ablate.data.match import check_tokenizer
from ablate.data.prepare import fingerprint, prepare
from ablate.data.synthetic import Chain
from ablate.data.tokenizer import Codec, load_codec
from ablate.data.tokens import DataFacts, TokenData

__all__ = [
    "CORPORA",
    "Batches",
    "Chain",
    "Codec",
    "Corpus",
    "DataFacts",
    "Examples",
    "Stream",
    "Task",
    "Texts",
    "TokenData",
    "check_tokenizer",
    "expand",
    "fingerprint",
    "load_codec",
    "of_files",
    "permute",
    "prepare",
]
