"""K successors of a token."""

import math
from typing import Any

import numpy as np
import pytest

from ablate.record import read_series

BRANCHING = 4


@pytest.mark.parametrize("placement", ["pre", pytest.param("post", marks=pytest.mark.slow)])
def test_the_loss_approaches_the_entropy_rate_and_never_beats_it(bench: Any, placement: str) -> None:
    """Every token of the source is an independent draw of a successor, so the standard error is exact."""
    config = bench.config(
        {
            "model": {"layers": 1, "placement": placement},
            "data": {"tokens": 200_000, "vocab_size": 32, "branching": BRANCHING, "val_tokens": 8192},
            "optim": {"steps": 250, "batch": 32, "lr": 1e-2},
            "eval": {"every": 25},
            "probe": {"every": 0},
            "run": {"checkpoint_every": 1000},
        }
    )
    folder, _ = bench.train(config)
    facts, targets = bench.data(config).facts, bench.data(config).val.targets_BM.size
    p_K = 1 / np.arange(1, BRANCHING + 1)
    p_K /= p_K.sum()
    entropy = float(-(p_K * np.log(p_K)).sum())
    deviation = math.sqrt(float((p_K * (np.log(p_K) + entropy) ** 2).sum()))
    error = deviation / math.sqrt(targets)
    loss = read_series(folder.metrics("val")).column("val/loss")
    assert facts.entropy_rate == pytest.approx(entropy)
    assert loss.min() > entropy - 4 * error
    assert loss[-1] < entropy + 0.03 * (facts.unigram_entropy - entropy) + 4 * error
