import os
import shutil
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ablate.config import ConfigError, UserError
from ablate.record import Claim, Run, State, Superseded, read_series
from ablate.train import Ending, ForeignCheckpoint, Ready, open_device, train
from ablate.train.checkpoint import steps
from ablate.train.loop import Lane

NAN = {"optim": {"lr": 1e4, "warmup": 0, "clip": 0, "steps": 60}, "verdict": {"patience": 7}}


def ask_to_stop_at(step: int, number: signal.Signals = signal.SIGTERM) -> Callable[[str], None]:
    """An `announce` that sends this process a signal when the evaluation of a step is announced."""

    def announce(text: str) -> None:
        if text.startswith(f"step {step}:"):
            os.kill(os.getpid(), number)

    return announce


def test_the_record_has_every_step_and_every_cadence(bench: Any, rows_of: Any) -> None:
    folder, outcome = bench.train(bench.config())
    rows = rows_of(folder)
    assert (outcome.ending, outcome.steps, outcome.first_bad) == (Ending.complete, 24, None)
    assert rows[""][:, 0].tolist() == list(range(24))
    assert rows["val"][:, 0].tolist() == [0, 6, 12, 18, 24]
    assert rows["probe"][:, 0].tolist() == [0, 4, 8, 12, 16, 20]
    assert len(read_series(folder.metrics("timing"))) >= 1
    columns = read_series(folder.metrics()).columns
    assert columns[:9] == (
        "step", "train/loss", "train/unigram", "train/lr", "grad/norm", "grad/norm_common", "grad/norm_bias",
        "grad/bias_share", "grad/clipped",
    )  # fmt: skip
    assert {"out/b00_q", "out/head", "grad/b01_up", "grad/embed"} <= set(columns)


def test_lr_and_unigram_columns_belong_to_their_step(bench: Any) -> None:
    config = bench.config()
    folder, _ = bench.train(config)
    series, batches = read_series(folder.metrics()), bench.data(config).batches(8, config.data.data_seed)
    assert series.column("train/lr")[0] == pytest.approx(config.optim.lr / config.optim.warmup)
    assert series.column("train/unigram")[7] == pytest.approx(batches.unigram(batches.examples(7)))


def test_on_ready_comes_once_with_the_held_out_loss_at_step_0(bench: Any) -> None:
    seen: list[Ready] = []
    folder, _ = bench.train(bench.config(), on_ready=seen.append)
    assert [ready.initial_loss for ready in seen] == [
        read_series(folder.metrics("val")).column("val/loss")[0]
    ]
    assert seen[0].from_step == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
@pytest.mark.parametrize("at", [6, 12])
def test_asked_to_stop_then_resumed_is_the_uninterrupted_run(
    bench: Any, rows_of: Any, same: Any, at: int, number: signal.Signals
) -> None:
    whole, _ = bench.train(bench.config(), study="whole")
    seen: list[Ready] = []
    folder, outcome = bench.train(bench.config(), announce=ask_to_stop_at(at, number))
    assert outcome.ending is Ending.preempted
    assert outcome.steps == at + 1
    assert steps(folder.checkpoint)[-1] == at + 1
    folder, outcome = bench.train(bench.config(), on_ready=seen.append)
    assert outcome.ending is Ending.complete
    assert seen[0].from_step == at + 1
    assert seen[0].initial_loss == rows_of(whole)["val"][0, 1]
    assert same(rows_of(folder), rows_of(whole))


def test_resuming_from_every_kept_checkpoint_gives_the_same_rows(bench: Any, rows_of: Any, same: Any) -> None:
    """Checkpoints on, before and after the steps of evaluations and probes: 10, 15, 20 and 12, 18."""
    for every in (5, 6):
        config = bench.config({"run": {"checkpoint_every": every, "keep": "ring"}})
        whole, _ = bench.train(config, study=f"whole{every}")
        for step in steps(whole.checkpoint):
            folder = bench.folder(config, study=f"from{step}")
            shutil.copytree(whole.path, folder.path, dirs_exist_ok=True)
            for later in steps(folder.checkpoint):
                if later > step:
                    shutil.rmtree(folder.checkpoint / f"step-{later:06d}")
            bench.train(config, study=f"from{step}")
            assert same(rows_of(folder), rows_of(whole))
            shutil.rmtree(folder.path)


def _cut(folder: Any, cadence: str, first: int) -> None:
    """Take a row away, and those behind it up to the next one but six."""
    path = folder.metrics(cadence)
    lines = path.read_text().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if line.startswith(f"[{first},"))
    path.write_text("".join(lines[:at] + lines[at + 6 :]))


@pytest.mark.parametrize(
    ("cadence", "first", "start"),
    [("", 12, 10), ("", 3, 0), ("val", 12, 10), ("val", 0, 0), ("probe", 12, 10)],
)
def test_it_goes_on_where_the_rows_before_are_there(
    bench: Any, rows_of: Any, same: Any, cadence: str, first: int, start: int
) -> None:
    """Checkpoints at 10, 15 and 20, and rows that are gone from `first` on."""
    config = bench.config({"run": {"keep": "ring"}})
    whole, _ = bench.train(config, study="whole")
    folder = bench.folder(config)
    shutil.copytree(whole.path, folder.path, dirs_exist_ok=True)
    _cut(folder, cadence, first)
    seen: list[Ready] = []
    said: list[str] = []
    bench.train(config, on_ready=seen.append, announce=said.append)
    assert seen[0].from_step == start
    assert f"no row of step {first}" in said[0]
    assert ("starting at step 0" in " ".join(said)) == (start == 0)
    assert same(rows_of(folder), rows_of(whole))


def test_without_any_rows_it_begins_at_step_0(bench: Any, rows_of: Any, same: Any) -> None:
    whole, _ = bench.train(bench.config(), study="whole")
    folder, _ = bench.train(bench.config(), announce=ask_to_stop_at(12))
    for path in folder.path.glob("metrics*.jsonl"):
        path.unlink()
    bench.train(bench.config())
    assert same(rows_of(folder), rows_of(whole))


def test_a_damaged_record_is_refused_until_it_is_begun_afresh(bench: Any, rows_of: Any, same: Any) -> None:
    whole, _ = bench.train(bench.config(), study="whole")
    folder, _ = bench.train(bench.config(), announce=ask_to_stop_at(12))
    with folder.metrics().open("a") as file:
        file.write('{"schema":1}\n[0,1]\n')
    claim = Claim.take(folder)
    with pytest.raises(UserError, match=r"sweep\.redo=true"):
        train(folder, claim, bench.config(), bench.data(bench.config()))
    claim.finish(State.failed)
    shutil.rmtree(folder.checkpoint)
    bench.train(bench.config())
    assert same(rows_of(folder), rows_of(whole))


def test_a_run_that_is_not_finite_stops_and_has_a_verdict(bench: Any) -> None:
    folder, outcome = bench.train(bench.config(NAN))
    series = read_series(folder.metrics())
    bad = np.flatnonzero(~np.isfinite(series.column("train/loss")) | ~np.isfinite(series.column("grad/norm")))
    assert outcome.ending is Ending.stopped
    assert outcome.first_bad == bad[0]
    assert len(series) == outcome.steps == bad[0] + 7
    assert Run(folder).verdict().kind == "diverged"
    assert steps(folder.checkpoint)[0] < bad[0] or bad[0] <= 5


def test_the_stop_does_not_depend_on_flush_timing_or_resuming(bench: Any, rows_of: Any, same: Any) -> None:
    whole, outcome = bench.train(bench.config(NAN), study="whole")
    assert outcome.first_bad is not None
    for rows in (3, 64):
        config = bench.config(NAN)
        folder = bench.folder(config, study=f"pages{rows}")
        lane = _lane(bench, config, folder, rows)
        assert lane.first_bad == outcome.first_bad
        assert same(rows_of(folder), rows_of(whole))
    # Resumed from a checkpoint between the first bad row and the stop.
    between = bench.config({**NAN, "run": {"checkpoint_every": 1, "keep": "ring"}})
    folder, _ = bench.train(between, study="between")
    oldest = steps(folder.checkpoint)[-3]
    assert outcome.first_bad < oldest < outcome.steps
    for later in steps(folder.checkpoint)[-2:]:
        shutil.rmtree(folder.checkpoint / f"step-{later:06d}")
    _, again = bench.train(between, study="between")
    assert again.first_bad == outcome.first_bad
    assert same(rows_of(folder), rows_of(whole))


def _lane(bench: Any, config: Any, folder: Any, page_rows: int) -> Any:
    from ablate.model import build
    from ablate.train import Interrupts

    data = bench.data(config)
    module = build(config.model, data.facts.vocab_size, config.seed, config.probe)
    lane = Lane(module, config, folder, Claim.take(folder), data, page_rows)
    lane.resume(print)
    lane.ready(print)
    with Interrupts() as interrupts:
        outcome = lane.run(interrupts, print)
    lane.close()
    return outcome


def test_the_checkpoint_before_a_divergence_stays(bench: Any) -> None:
    config = bench.config({**NAN, "run": {"checkpoint_every": 1, "keep": "weights"}})
    folder, outcome = bench.train(config)
    assert outcome.first_bad is not None
    if outcome.first_bad > 1:
        assert steps(folder.checkpoint)[0] == outcome.first_bad - 1


def test_a_superseded_run_stops_and_its_successor_goes_on(bench: Any, rows_of: Any, same: Any) -> None:
    config = bench.config()
    whole, _ = bench.train(config, study="whole")
    folder = bench.folder(config)
    old = Claim.take(folder)
    successors: list[Claim] = []

    def take_over(text: str) -> None:
        if text.startswith("step 12:"):
            old.finish(State.preempted)
            successors.append(Claim.take(folder))

    with pytest.raises(Superseded):
        train(folder, old, config, bench.data(config), announce=take_over)
    assert steps(folder.checkpoint) == [5, 10]
    train(folder, successors[0], config, bench.data(config), announce=lambda _: None)
    assert same(rows_of(folder), rows_of(whole))


def test_a_foreign_checkpoint_is_refused(bench: Any) -> None:
    other, _ = bench.train(bench.config(seed=1, run={"keep": "ring"}), study="other")
    folder = bench.folder(bench.config())
    shutil.copytree(other.checkpoint, folder.checkpoint)
    with pytest.raises(ForeignCheckpoint, match=other.id):
        bench.train(bench.config())


def test_asking_for_cuda_without_one_is_refused() -> None:
    import torch

    from ablate.config import Device

    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(ConfigError, match=r"run\.device"):
        open_device(Device.cuda)
    assert open_device(Device.auto).type == "cpu"
