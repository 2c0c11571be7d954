"""N windows, T tokens."""

from typing import Any

import numpy as np
import pytest
import torch

from ablate.model import build
from ablate.train import Stepper, evaluate


def test_the_held_out_loss_is_the_mean_over_all_tokens(bench: Any) -> None:
    config = bench.config()
    data = bench.data(config)
    module = build(config.model, data.facts.vocab_size, 0, config.probe)
    examples = data.val.rows(0, 7)
    logits = module(torch.from_numpy(examples.inputs_BT)).detach().double().log_softmax(-1)
    targets = torch.from_numpy(examples.targets_BM)
    expected = -float(logits.gather(2, targets[:, :, None]).mean())
    for batch in (1, 3, 7, 100):  # 3 leaves a smaller rest, which must not weigh more
        assert evaluate(module, examples, batch) == pytest.approx(expected, rel=1e-6)


def test_evaluation_leaves_the_step_alone(bench: Any) -> None:
    config = bench.config()
    data = bench.data(config)
    made = Stepper(build(config.model, data.facts.vocab_size, 0, config.probe), config)
    batches = data.batches(8, 0)
    made.step(0, batches.examples(0))
    board, before = made.module.board, torch.get_rng_state()
    values = board.values().clone(), board.sample_values().clone()
    evaluate(made.module, data.val, 8)
    assert torch.equal(board.values(), values[0])
    assert torch.equal(board.sample_values(), values[1])
    assert torch.equal(torch.get_rng_state(), before)
    assert all(p.grad is None for p in made.module.parameters())


def test_no_probe_and_no_evaluation_changes_training(bench: Any, rows_of: Any) -> None:
    """Bit for bit the same parameters at the end, whatever is looked at and written on the way."""
    looks: list[dict[str, dict[str, Any]]] = [
        {},
        {"probe": {"every": 1, "queries": 3}},
        {"probe": {"outputs": False, "gradients": False, "every": 0}},
        {"eval": {"every": 1}},
        {"run": {"checkpoint_every": 1}},
    ]
    from safetensors.torch import load_file

    found = []
    for number, look in enumerate(looks):
        folder, _ = bench.train(bench.config(look), study=f"s{number}")
        weights = load_file(folder.checkpoint / "final" / "model.safetensors")
        found.append((rows_of(folder), weights))
    rows, weights = found[0]
    for other, others in found[1:]:
        assert np.array_equal(other[""][:, :5], rows[""][:, :5])
        assert all(torch.equal(value, others[name]) for name, value in weights.items())
