"""Starting from the weights of a Hugging Face folder instead of an initialisation."""

from collections.abc import Callable
from pathlib import Path

import torch

from ablate.config import ModelConfig, UserError
from ablate.config.weights import weights_digest
from ablate.exchange import load_weights
from ablate.model import Transformer


@torch.no_grad()
def start_from(module: Transformer, config: ModelConfig, announce: Callable[[str], None]) -> None:
    """Put the weights of `model.weights` into every parameter of the module, or touch none.

    Raises UserError where the folder has changed since the run was composed, or is not this model (with every
    difference by name).
    """
    assert config.weights is not None
    folder = Path(config.weights)
    found = weights_digest(folder)
    if found != config.weights_sha256:
        raise UserError(
            f"model.weights: {folder} has changed since this run was composed: its digest is {found}",
            allowed=str(config.weights_sha256),
            hint="bring the files back, or start the run anew from what is there now",
        )
    loaded = load_weights(folder, config, module.embed.weight.shape[0], announce)
    parameters = dict(module.named_parameters())
    assert parameters.keys() == loaded.keys(), sorted(parameters.keys() ^ loaded.keys())
    for name, parameter in parameters.items():
        parameter.copy_(torch.from_numpy(loaded[name]))
    announce(f"starting from the weights in {folder}")
