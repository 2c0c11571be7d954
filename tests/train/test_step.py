"""B batch, T tokens, N targets."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ablate.config import Config, UserError
from ablate.data import Examples
from ablate.model import build
from ablate.train import Stepper, World, evaluate


def stepper(bench: Any, changes: dict[str, dict[str, Any]], double: bool = True) -> tuple[Stepper, Any]:
    config: Config = bench.config(changes)
    data = bench.data(config)
    module = build(config.model, data.facts.vocab_size, config.seed, config.probe)
    if config.optim.precision == "bf16":
        module.set_compute_dtype(torch.bfloat16)
    return Stepper(module.double() if double else module, config), data.batches(config.optim.batch, 0)


def named(made: Stepper, measured: Any) -> dict[str, float]:
    columns = {**dict(zip(made.columns, measured.dense_C.tolist(), strict=True))}
    if measured.probe_C is not None:
        columns |= dict(zip(made.probe_columns, measured.probe_C.tolist(), strict=True))
    return columns


@pytest.mark.parametrize("optim", [{}, {"z_loss": 0.1}, {"clip": 0.01}])
def test_accumulation_equals_the_unsplit_step(bench: Any, optim: dict[str, Any]) -> None:
    """Without key biases: their gradient is zero but for rounding, and Adam makes steps of it."""
    model = {"bias": ["q", "v", "o", "up", "down", "norm"]}
    whole, batches = stepper(bench, {"model": model, "optim": optim})
    split, _ = stepper(bench, {"model": model, "optim": {**optim, "accumulation": 4}})
    for step in range(5):
        a = named(whole, whole.step(step, batches.examples(step)))
        b = named(split, split.step(step, batches.examples(step)))
        assert a == pytest.approx(b, rel=1e-6, nan_ok=True)
    for p, q in zip(whole.module.parameters(), split.module.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-6, atol=1e-9)


def test_a_row_stands_at_the_parameters_before_its_update(bench: Any) -> None:
    made, batches = stepper(bench, {})
    examples = batches.examples(0)
    before = evaluate(made.module, examples, 3)
    old = {name: p.detach().clone() for name, p in made.module.named_parameters()}
    row = named(made, made.step(0, examples))
    assert row["train/loss"] == pytest.approx(before, rel=1e-9)
    assert evaluate(made.module, examples, 3) < before
    name = "blocks.1.mlp.up.weight"
    new = dict(made.module.named_parameters())
    names = (name, name.replace("weight", "bias"))
    change = sum(float((new[n] - old[n]).detach().square().sum()) for n in names)
    size = sum(float(old[n].square().sum()) for n in names)
    ratio = (change / size) ** 0.5
    assert row["update/b01_up"] == pytest.approx(ratio, rel=1e-6)


def test_gradient_columns_are_the_norms_before_clipping(bench: Any) -> None:
    made, batches = stepper(bench, {"optim": {"clip": 0.01}})
    reference, _ = stepper(bench, {})
    row = named(made, made.step(0, batches.examples(0)))
    examples = batches.examples(0)
    logits_BTV = reference.module(torch.from_numpy(examples.inputs_BT))
    targets_N = torch.from_numpy(examples.targets_BM).flatten()
    torch.nn.functional.cross_entropy(logits_BTV.flatten(0, 1), targets_N).backward()
    gradients: dict[str, Tensor] = {
        name: p.grad for name, p in reference.module.named_parameters() if p.grad is not None
    }
    square = {name: float(g.square().sum()) for name, g in gradients.items()}
    total, bias = sum(square.values()), sum(v for name, v in square.items() if name.endswith("bias"))
    assert row["grad/norm"] == pytest.approx(total**0.5)
    assert row["grad/norm_bias"] == pytest.approx(bias**0.5)
    assert row["grad/norm_common"] == pytest.approx((total - bias) ** 0.5)
    assert row["grad/bias_share"] == pytest.approx(bias / total)
    assert row["grad/clipped"] == 1.0
    assert named(reference, reference.step(0, batches.examples(0)))["grad/clipped"] == float(total > 1.0)


def test_recorded_loss_leaves_the_z_term_out(bench: Any) -> None:
    plain, batches = stepper(bench, {})
    weighted, _ = stepper(bench, {"optim": {"z_loss": 0.5}})
    losses = [named(made, made.step(0, batches.examples(0)))["train/loss"] for made in (plain, weighted)]
    assert losses[0] == losses[1]
    logz = [
        named(made, made.step(step, batches.examples(step)))
        for made in (plain, weighted)
        for step in range(1, 9)
    ]
    assert abs(logz[15]["logit/logz"]) < abs(logz[7]["logit/logz"])


def test_bf16_trains_with_parameters_and_moments_in_fp32(bench: Any) -> None:
    wide, batches = stepper(bench, {}, double=False)
    narrow, _ = stepper(bench, {"optim": {"precision": "bf16"}}, double=False)
    rows = {
        made: [named(made, made.step(s, batches.examples(s))) for s in range(20)] for made in (wide, narrow)
    }
    assert rows[narrow][0]["train/loss"] != rows[wide][0]["train/loss"]
    assert rows[narrow][0]["train/loss"] == pytest.approx(rows[wide][0]["train/loss"], abs=0.02)
    assert rows[narrow][-1]["train/loss"] < rows[narrow][0]["train/loss"] - 0.5
    tensors = [*narrow.module.parameters(), *narrow.optimizer.state().values()]
    assert {tensor.dtype for tensor in tensors} == {torch.float32}


def test_switched_off_probes_leave_the_totals(bench: Any) -> None:
    made, batches = stepper(bench, {"probe": {"outputs": False, "gradients": False, "every": 0}})
    measured = made.step(0, batches.examples(0))
    assert measured.probe_C is None
    assert made.probe_columns == ()
    assert set(named(made, measured)) == {
        "train/loss", "grad/norm", "grad/norm_common", "grad/norm_bias", "grad/bias_share", "grad/clipped"
    }  # fmt: skip


def test_a_world_of_several_ranks_is_refused_until_something_starts_one() -> None:
    with pytest.raises(UserError, match="4 processes"):
        World(0, 4)
    numbers = np.arange(6).reshape(2, 3)
    rows = World().rows(Examples(numbers, numbers, numbers, numbers))
    for part in (rows.inputs_BT, rows.targets_BM, rows.positions_BM, rows.source_BS):
        assert np.array_equal(part, numbers)
