"""The registry of corpora: one function for each `Source`.

To add a corpus, write a function from DataConfig to `Texts` (or `Stream`), name it in
`ablate.config.enums.Source` and list it here. docs/data.md has an example.
"""

from collections.abc import Callable

from ablate.config import DataConfig, Source
from ablate.data.corpus import Corpus, Stream, Texts
from ablate.data.files import text
from ablate.data.hub import hub
from ablate.data.stdlib import stdlib
from ablate.data.synthetic import synthetic

CORPORA: dict[Source, Callable[[DataConfig], Corpus]] = {
    Source.stdlib: stdlib,
    Source.synthetic: synthetic,
    Source.text: text,
    Source.hub: hub,
}

__all__ = ["CORPORA", "Corpus", "Stream", "Texts"]
