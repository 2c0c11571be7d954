"""What comparisons of models share: random parameters, random examples, and gradients put side by side.

Legend: B windows, T tokens, M predicted tokens, V vocabulary.
"""

from collections.abc import Mapping

import torch
from tests.parity.conftest import Close
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ablate.config import Config, compose
from ablate.model import Transformer, build

VOCAB = 300
TABLES = ("emb", "wte", "wpe", "position", "segment")


def tiny(*overrides: str) -> Config:
    """A preset at the smallest study size."""
    return compose([*overrides, "model.scale=tiny", f"data.vocab_size={VOCAB}"])


def randomised(config: Config) -> Transformer:
    """A model whose every parameter is random."""
    module = build(config.model, VOCAB, 0, config.probe)
    randomise(module, 1)
    return module


@torch.no_grad()
def randomise(module: nn.Module, seed: int) -> None:
    """Random parameters, ours or another's: tables N(0, 1), matrices N(0, 0.2²), gains around 1, biases
    N(0, 0.1²). Of such sizes that gradients of queries are no small differences of large numbers, which
    float32 would round away.
    """
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in module.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if parameter.dim() == 1:
            parameter.copy_(0.1 * noise + (1.0 if name.endswith("weight") else 0.0))
        else:
            parameter.copy_(noise * (1.0 if any(word in name for word in TABLES) else 0.2))


def tokens(*shape: int, seed: int) -> Tensor:
    """Random token ids."""
    return torch.randint(VOCAB, shape, generator=torch.Generator().manual_seed(seed))


def backward(logits_BMV: Tensor, targets_BM: Tensor) -> None:
    """Gradients of the mean cross entropy."""
    cross_entropy(logits_BMV.flatten(0, 1), targets_BM.flatten()).backward()


def check_gradients(module: nn.Module, theirs: Mapping[str, Tensor], config: Config, close: Close) -> None:
    """Every parameter's gradient against the one of the same name.

    Softmax takes no notice of a key bias, but for rope and norms of the keys: its gradient is rounding, to be
    measured by that of the weights.
    """
    redundant = config.model.position != "rope" and not config.model.qk_norm
    parameters = dict(module.named_parameters())
    assert parameters.keys() <= theirs.keys()
    for name, parameter in parameters.items():
        assert parameter.grad is not None, name
        scale = None
        if redundant and name.endswith("k.bias"):
            scale = parameters[name.replace("bias", "weight")].grad
        close(name, parameter.grad, theirs[name].to(parameter.grad.dtype), scale=scale)
