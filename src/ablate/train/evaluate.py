"""The held-out loss: always the same examples, and nothing of the training is touched."""

import torch

from ablate.data import Examples
from ablate.model import Transformer
from ablate.train.loss import example_loss


@torch.no_grad()
def evaluate(module: Transformer, examples: Examples, batch: int) -> float:
    """Mean cross entropy in nats per target over all examples, summed in float64.

    `batch` examples at a time, so that it fits where training fits.
    """
    total = torch.zeros((), dtype=torch.float64, device=module.embed.weight.device)
    with module.board.paused():
        for start in range(0, len(examples), batch):
            total += example_loss(module, examples.rows(start, start + batch), 0.0).cross_entropy
    return total.item() / examples.targets_BM.size
