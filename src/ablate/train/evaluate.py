"""The held-out loss: always the same windows, and nothing of the training is touched."""

import numpy as np
import torch
from numpy.typing import NDArray

from ablate.model import Transformer
from ablate.train.loss import token_loss
from ablate.train.step import to_device


@torch.no_grad()
def evaluate(module: Transformer, windows_NT1: NDArray[np.int64], batch: int) -> float:
    """Mean cross entropy in nats per token over all windows (N windows of T + 1 tokens), summed in float64.

    `batch` windows at a time, so that it fits where training fits.
    """
    device = next(module.parameters()).device
    total = torch.zeros((), dtype=torch.float64, device=device)
    with module.board.paused():
        for start in range(0, len(windows_NT1), batch):
            part_BT1 = to_device(windows_NT1[start : start + batch], device)
            total += token_loss(module(part_BT1[:, :-1]), part_BT1[:, 1:], 0.0).cross_entropy
    return total.item() / windows_NT1[:, 1:].size
