"""Parity with other implementations: what all comparisons share."""

import os
from typing import Protocol

import pytest
import torch
from torch import Tensor

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["TRANSFORMERS_NO_ADVISORY_WARNINGS"] = "1"

TOLERANCE = 1e-5


class Close(Protocol):
    """Assert that a and b are as good as equal; `scale`: what measures their difference, if not b."""

    def __call__(self, name: str, a: Tensor, b: Tensor, scale: Tensor | None = None) -> None: ...


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def close() -> Close:
    """max|a − b| ≤ 1e-5 · max|b|, by name; b is not zero throughout."""

    def check(name: str, a: Tensor, b: Tensor, scale: Tensor | None = None) -> None:
        assert a.shape == b.shape, name
        size = (b if scale is None else scale).detach().abs().max()
        assert size > 0, f"{name}: nothing to compare"
        apart = (a - b).detach().abs().max() / size
        assert apart <= TOLERANCE, f"{name}: {apart:.2e}"

    return check
