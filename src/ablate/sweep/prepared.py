"""The data of runs, prepared and looked at before anything is launched."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from ablate.config import Config, ConfigError, DataConfig
from ablate.data import TokenData, check_tokenizer, prepare


def prepare_runs(configs: Iterable[Config], announce: Callable[[str], None]) -> None:
    """Build or open the token cache of every run, each once; the worker finds the caches.

    Raises UserError for data that cannot be used (empty, too small, undecodable), and for a start from
    weights whose tokenizer is another one.
    """
    known: dict[tuple[DataConfig, int], TokenData] = {}
    checked = set()
    for config in configs:
        key = (replace(config.data, data_seed=0), config.model.context)
        if key not in known:
            known[key] = _prepared(config, announce)
        weights = config.model.weights
        if weights is not None and (weights, key) not in checked:
            checked.add((weights, key))
            check_tokenizer(Path(weights), known[key])


def _prepared(config: Config, announce: Callable[[str], None]) -> TokenData:
    """Where the text is too small for the vocabulary of a preset at full size, a study size is what helps."""
    try:
        return prepare(config.data, config.model.context, announce)
    except ConfigError as error:
        m, d = config.model, config.data
        of_preset = m.vocab == d.vocab_size and d.tokenizer is None and m.weights is None
        if not (of_preset and error.problem.startswith("data.vocab_size")):
            raise
        hint = f"model.scale=tiny (small, medium): a study size of {m.preset or 'the model'}; {error.hint}"
        raise ConfigError(error.problem, allowed=error.allowed, hint=hint) from None
