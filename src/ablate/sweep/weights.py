"""Weights to start from, looked at before anything is written."""

from collections.abc import Iterable
from pathlib import Path

from ablate.config import Config
from ablate.exchange import check_folder


def check_weights(configs: Iterable[Config]) -> None:
    """Refuse runs whose `model.weights` is not their model, each model once.

    By config.json and the headers of the weight files: no tensor is read. Raises UserError with every
    difference by name; what only tensors show, the worker finds.
    """
    started = (config for config in configs if config.model.weights is not None)
    for model, vocab in dict.fromkeys((config.model, config.data.vocab_size) for config in started):
        assert model.weights is not None
        check_folder(Path(model.weights), model, vocab)
