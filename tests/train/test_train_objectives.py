"""Every objective through the step, the evaluation and the loop.

B batch, T tokens, M targets, V vocabulary.
"""

import contextlib
import os
import signal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ablate.config import Config
from ablate.data import Batches, Examples, Task
from ablate.model import build
from ablate.record import RunFolder, read_series
from ablate.train import Ending, Ready, Stepper, World, evaluate, example_loss

STACKS = {"next": "decoder", "masked": "encoder", "prefix": "encoder_decoder", "span": "encoder_decoder"}
HIDING = ("masked", "prefix", "span")
# Key biases have no gradient but for rounding, and Adam makes steps of it.
NO_KEYS = ["q", "v", "o", "up", "down", "norm"]


def asking(objective: str, **changes: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Changes of the tiny configuration."""
    own = {"model": {"stack": STACKS[objective]}, "data": {"objective": objective}}
    return {name: {**own.get(name, {}), **changes.get(name, {})} for name in {*own, *changes}}


def stepper(config: Config, vocab_size: int, double: bool = True) -> Stepper:
    module = build(config.model, vocab_size, config.seed, config.probe)
    if config.optim.precision == "bf16":
        module.set_compute_dtype(torch.bfloat16)
    return Stepper(module.double() if double else module, config)


def losses(made: Stepper, batches: Batches, steps: int) -> list[float]:
    return [float(made.step(step, batches.examples(step)).dense_C[0]) for step in range(steps)]


@pytest.mark.parametrize("objective", STACKS)
def test_twenty_steps_on_real_text_lower_the_loss(bench: Any, objective: str) -> None:
    data = {"source": "stdlib", "tokens": 500_000, "vocab_size": 512, "max_bytes": 300_000}
    config = bench.config(asking(objective, data=data, optim={"steps": 20}))
    tokens = bench.data(config)
    made = stepper(config, tokens.facts.vocab_size, double=False)
    before = evaluate(made.module, tokens.val, 8)
    found = losses(made, tokens.batches(8, 0), 20)
    assert np.mean(found[-3:]) < np.mean(found[:3]) - 0.2
    assert evaluate(made.module, tokens.val, 8) < before - 0.2


@pytest.mark.parametrize("objective", STACKS)
def test_a_text_without_surprise_is_learned(bench: Any, objective: str) -> None:
    """A cycle of three tokens: what is hidden follows from what is read, if targets and places are right.

    Where a window stands in the cycle must be read: windows begin at each of the three places.
    """
    model = {"context": 20, "position": "rope"}
    steps = 200 if objective == "masked" else 80  # of three targets a window
    config = bench.config(asking(objective, optim={"steps": steps, "lr": 1e-2}, model=model))
    train_S = (np.arange(60 * 20 + 1) * 2 % 3).astype(np.uint16)
    batches = Batches(train_S, np.zeros(64), 20, 8, 0, Task.of(config.data, 20))
    found = losses(stepper(config, 64, double=False), batches, steps)
    assert found[0] > 3
    assert np.mean(found[-10:]) < 0.4


@pytest.mark.parametrize("objective", HIDING)
def test_accumulation_equals_the_unsplit_step(bench: Any, objective: str) -> None:
    whole, split = (
        bench.config(asking(objective, model={"bias": NO_KEYS}, optim={"z_loss": 0.1, "accumulation": parts}))
        for parts in (1, 4)
    )
    tokens = bench.data(whole)
    batches = tokens.batches(8, 0)
    one, four = (stepper(config, tokens.facts.vocab_size) for config in (whole, split))
    for step in range(4):
        a, b = (made.step(step, batches.examples(step)).dense_C for made in (one, four))
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-9)
    for p, q in zip(one.module.parameters(), four.module.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("objective", STACKS)
def test_the_loss_is_the_mean_over_the_targets(bench: Any, objective: str) -> None:
    """Of the step and of the evaluation, in any parts, against plain cross entropy."""
    config = bench.config(asking(objective))
    tokens = bench.data(config)
    made = stepper(config, tokens.facts.vocab_size)
    examples = tokens.batches(8, 0).examples(0)
    given = [
        None if part is None else torch.from_numpy(part)
        for part in (examples.inputs_BT, examples.source_BS, examples.positions_BM)
    ]
    with torch.no_grad():
        logits_BMV = made.module(*given)
    targets_BM = torch.from_numpy(examples.targets_BM)
    expected = float(nn.functional.cross_entropy(logits_BMV.flatten(0, 1), targets_BM.flatten()))
    for batch in (1, 3, 8, 100):
        assert evaluate(made.module, examples, batch) == pytest.approx(expected, rel=1e-9)
    assert float(made.step(0, examples).dense_C[0]) == pytest.approx(expected, rel=1e-9)


class Oracle(nn.Module):
    """Knows the targets of some examples by all that is read; refuses parts that do not belong together."""

    def __init__(self, examples: Examples, vocab_size: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(1, 1)
        self.vocab_size = vocab_size
        self.board = SimpleNamespace(paused=contextlib.nullcontext)
        self.known = {
            self.key(
                *(
                    None if part is None else torch.from_numpy(part[row])
                    for part in (examples.inputs_BT, examples.source_BS, examples.positions_BM)
                )
            ): torch.from_numpy(examples.targets_BM[row])
            for row in range(len(examples))
        }

    def key(self, *parts: Tensor | None) -> tuple[Any, ...]:
        return tuple(None if part is None else tuple(part.tolist()) for part in parts)

    def forward(self, *parts: Tensor | None) -> Tensor:
        assert parts[0] is not None
        rows = (
            self.key(*(None if part is None else part[row] for part in parts)) for row in range(len(parts[0]))
        )
        targets_BM = torch.stack([self.known[row] for row in rows])
        return 100.0 * nn.functional.one_hot(targets_BM, self.vocab_size).float()


@pytest.mark.parametrize("objective", STACKS)
def test_perfect_predictions_have_no_loss(bench: Any, objective: str) -> None:
    config = bench.config(asking(objective))
    examples = bench.data(config).val
    oracle: Any = Oracle(examples, config.data.vocab_size)
    for batch in (5, 8, 100):
        assert evaluate(oracle, examples, batch) == 0
    parts = World().rows(examples.rows(0, 12)).split(3)
    assert sum(float(example_loss(oracle, part, 0.0).cross_entropy) for part in parts) == 0
    wrong = Examples(
        examples.inputs_BT, (examples.targets_BM + 1) % 64, examples.positions_BM, examples.source_BS
    )
    assert evaluate(oracle, wrong, 8) == pytest.approx(100)


@pytest.mark.parametrize("objective", HIDING)
def test_bf16_trains_with_parameters_in_fp32(bench: Any, objective: str) -> None:
    wide, narrow = (
        bench.config(asking(objective, optim={"precision": precision})) for precision in ("fp32", "bf16")
    )
    tokens = bench.data(wide)
    made = [stepper(config, tokens.facts.vocab_size, double=False) for config in (wide, narrow)]
    in_fp32, in_bf16 = (losses(each, tokens.batches(8, 0), 20) for each in made)
    assert in_bf16[0] != in_fp32[0]
    assert in_bf16[0] == pytest.approx(in_fp32[0], abs=0.03)
    assert np.mean(in_bf16[-3:]) < in_bf16[0] - 0.3
    assert {p.dtype for p in made[1].module.parameters()} == {torch.float32}


@pytest.mark.parametrize("objective", HIDING)
def test_asked_to_stop_then_resumed_is_the_uninterrupted_run(
    bench: Any, same_rows: Any, objective: str
) -> None:
    """In a later epoch too: what is hidden of a window is drawn anew, and after a resume again the same."""
    config = bench.config(asking(objective, data={"tokens": 1500, "val_fraction": 0.3}))
    assert bench.data(config).batches(8, 0).windows < 8 * 12
    seen: list[Ready] = []

    def stop_at_12(text: str) -> None:
        if text.startswith("step 12:"):
            os.kill(os.getpid(), signal.SIGTERM)

    whole, _ = bench.train(config, study="whole")
    folder, outcome = bench.train(config, announce=stop_at_12)
    assert outcome.ending is Ending.preempted
    _, outcome = bench.train(config, on_ready=seen.append)
    assert outcome.ending is Ending.complete
    assert seen[0].from_step == 13
    assert same_rows(folder, whole)


@pytest.mark.parametrize("objective", STACKS)
def test_runs_of_all_seeds_see_the_same_held_out_examples(bench: Any, objective: str) -> None:
    configs = [bench.config(asking(objective), seed=seed) for seed in (0, 1)]
    first, other = (bench.data(config).val for config in configs)
    for name in ("inputs_BT", "targets_BM", "positions_BM", "source_BS"):
        np.testing.assert_array_equal(getattr(first, name), getattr(other, name))


@pytest.fixture
def recorded(bench: Any) -> tuple[Config, RunFolder]:
    config = bench.config(asking("span"))
    folder, _ = bench.train(config)
    return config, folder


def test_rows_hold_the_unigram_of_the_targets(bench: Any, recorded: Any) -> None:
    config, folder = recorded
    batches = bench.data(config).batches(8, 0)
    series = read_series(folder.metrics())
    for step in (0, 7):
        expected = batches.unigram(batches.examples(step))
        assert series.column("train/unigram")[step] == pytest.approx(expected)


def test_throughput_counts_the_tokens_of_the_windows(bench: Any, recorded: Any) -> None:
    """The same number for every objective: what a step takes from the corpus."""
    _, folder = recorded
    series = read_series(folder.metrics("timing"))
    seconds_R = np.diff(series.column("seconds"), prepend=0)
    tokens = (series.column("tokens_per_second") * seconds_R).sum()
    assert tokens == pytest.approx(24 * 8 * 16, rel=0.05)
