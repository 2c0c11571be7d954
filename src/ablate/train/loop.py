"""The training loop of one run: rows, evaluations and checkpoints around the steps."""

import gc
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

import torch

from ablate.config import Config, Keep, Precision, run_id
from ablate.data import Batches, TokenData
from ablate.model import Transformer, build, compile_blocks
from ablate.record import Claim, RunFolder, SeriesWriter, read_series
from ablate.train import checkpoint as checkpoints
from ablate.train.checkpoint import Checkpoint
from ablate.train.device import open_device
from ablate.train.evaluate import evaluate
from ablate.train.optimizer import DecayGroups
from ablate.train.pins import Pins
from ablate.train.recorded import Recorded
from ablate.train.rows import Row, RowBuffer
from ablate.train.signals import Interrupts
from ablate.train.step import HOST_COLUMNS, Stepper
from ablate.train.stop import StopRule
from ablate.train.weights import start_from
from ablate.train.world import World

_TIMING_SECONDS = 1.0
_TIMING_COLUMNS = ("step", "seconds", "cpu_seconds", "tokens_per_second")


class Ending(StrEnum):
    """How a call of `train` ended."""

    complete = "complete"  # all steps done
    stopped = "stopped"  # by the stop rule: not finite any more
    preempted = "preempted"  # asked to stop; a checkpoint holds the state


@dataclass(frozen=True)
class Ready:
    """What is known once the model stands and its first held-out loss is taken."""

    module: Transformer
    groups: DecayGroups
    device: torch.device
    initial_loss: float  # held-out loss at step 0, in nats per token
    from_step: int  # where this attempt starts


@dataclass(frozen=True)
class Outcome:
    """`steps`: updates done; `first_bad`: first step whose loss or gradient was not finite."""

    ending: Ending
    steps: int
    first_bad: int | None


def ignore(_: object) -> None:
    """Take no notice."""


def train(
    folder: RunFolder,
    claim: Claim,
    config: Config,
    data: TokenData,
    on_ready: Callable[[Ready], None] = ignore,
    announce: Callable[[str], None] = print,
    interrupts: Interrupts | None = None,
) -> Outcome:
    """Train one run from the newest usable checkpoint in its folder, or from the start.

    Call `setup_process` first. SIGTERM, SIGINT and SIGUSR1 end it at the next step boundary with a
    checkpoint (`interrupts`: where they are noted, if that is already open). `on_ready` is called once,
    before the first step.

    Raises UserError (no such device, a foreign checkpoint), OSError (disk full; what is on disk stays
    resumable) and Superseded (another process has taken the run over).
    """
    device = open_device(config.run.device)
    module = build(config.model, data.facts.vocab_size, config.seed, config.probe).to(device)
    if config.optim.precision is Precision.bf16:
        module.set_compute_dtype(torch.bfloat16)
    if config.run.compile:
        compile_blocks(module)
    lane = Lane(module, config, folder, claim, data)
    with ExitStack() as stack:
        stack.callback(lane.close)
        asked = interrupts or stack.enter_context(Interrupts())
        lane.resume(announce)
        on_ready(lane.ready(announce))
        gc.freeze()  # what stands now stays; collections during the steps need not look at it
        stack.callback(gc.unfreeze)
        return lane.run(asked, announce)


class Lane:
    """One run in training: everything that is its own, and nothing outside."""

    def __init__(
        self,
        module: Transformer,
        config: Config,
        folder: RunFolder,
        claim: Claim,
        data: TokenData,
        page_rows: int | None = None,
    ) -> None:
        """`page_rows`: steps between writes, if not as the device has it."""
        self._config, self._folder, self._claim, self._data = config, folder, claim, data
        self._stepper = Stepper(module, config, World())
        self._stop = StopRule(config.verdict.patience)
        self._batches: Batches = data.batches(config.optim.batch, config.data.data_seed)
        self._run_id = run_id(config, data.facts.fingerprint)
        self._page_rows = page_rows
        self._start = 0
        self._initial_loss: float | None = None
        self._writers: dict[str, SeriesWriter] = {}
        self._clock = _Clock(0)

    def resume(self, announce: Callable[[str], None]) -> None:
        """Take the state of the newest checkpoint that all rows before it are there for, if there is one,
        else the weights to start from, if there are any; and open the series there.
        """
        module, optimizer = self._stepper.module, self._stepper.optimizer
        parameters = dict(module.named_parameters())
        place, recorded = self._folder.checkpoint, cache(lambda: Recorded.of(self._folder, self._config))
        found = checkpoints.latest(
            place, self._run_id, parameters, announce, lambda step: recorded().obstacle(step)
        )
        if found is None and checkpoints.steps(place):
            announce("no checkpoint can be used: starting at step 0")
        if found is not None:
            with torch.no_grad():
                for name, parameter in parameters.items():
                    parameter.copy_(found.model[name])
            optimizer.load(found.optimizer, found.step)
            self._start, self._stop.first_bad = found.step, found.first_bad
            self._initial_loss = found.initial_loss
            announce(f"resuming at step {found.step}")
        elif self._config.model.weights is not None:
            start_from(module, self._config.model, announce)
        self._open()

    def ready(self, announce: Callable[[str], None]) -> Ready:
        """What the record wants to know; evaluates at step 0 if this attempt starts there."""
        if self._initial_loss is None:
            self._initial_loss = self._validate(0, announce)
        stepper = self._stepper
        return Ready(
            stepper.module, stepper.optimizer.groups, stepper.device, self._initial_loss, self._start
        )

    def run(self, interrupts: Interrupts, announce: Callable[[str], None]) -> Outcome:
        """Step until the end, the stop rule or a request to stop.

        At a boundary the checkpoint comes before the evaluation: a resumed run evaluates again, and its
        header voids the row that was there.
        """
        optim, run, total = self._config.optim, self._config.run, self._config.optim.steps
        self._clock = _Clock(self._start)
        for step in range(self._start, total + 1):
            last = step == total
            save = step % run.checkpoint_every == 0 and self._start < step < total
            validate = step % self._config.eval.every == 0 or last
            if save or validate or interrupts.asked or self._stop.reached(step):
                self._buffer.flush()
            if self._stop.reached(step):
                return self._finish(Ending.stopped, step)
            if interrupts.asked:
                announce(f"{interrupts.asked.name} at step {step}")
                if step > self._start:
                    self._save(step)
                return Outcome(Ending.preempted, step, self._stop.first_bad)
            if save:
                self._save(step)
            if validate and step > 0:
                self._validate(step, announce)
            if self._clock.due() or last:
                self._writers["timing"].append(
                    [self._clock.row(step, optim.batch * self._config.model.context)]
                )
            if last:
                break
            examples = self._batches.examples(step)
            measured = self._stepper.step(step, examples)
            rate = self._stepper.learning_rate(step)
            self._buffer.put(step, self._batches.unigram(examples), rate, measured)
        return self._finish(Ending.complete, total)

    def close(self) -> None:
        """Close the series. What an error left on the device is given up; a resume makes it again."""
        for writer in self._writers.values():
            writer.close()

    def _open(self) -> None:
        stepper = self._stepper
        first, *rest = stepper.columns
        names = {
            "": ("step", first, *HOST_COLUMNS, *rest),
            "val": ("step", "val/loss"),
            "timing": _TIMING_COLUMNS,
        }
        if stepper.probe_columns:
            names["probe"] = ("step", *stepper.probe_columns)
        for cadence, columns in names.items():
            self._writers[cadence] = SeriesWriter(self._claim, cadence, columns, self._start)
        self._pins = Pins(names[""], self._config.optim.steps, self._config.verdict)
        if self._start:
            self._pins.recall(read_series(self._folder.metrics()), self._start)
        self._buffer = RowBuffer(
            (len(stepper.columns), len(stepper.probe_columns)),
            stepper.device,
            self._stop,
            self._write,
            self._writers["probe"].append if "probe" in self._writers else ignore,
            self._page_rows,
        )

    def _write(self, rows: Sequence[Row]) -> None:
        self._writers[""].append(rows)
        self._pins.see(rows)

    def _validate(self, step: int, announce: Callable[[str], None]) -> float:
        optim = self._config.optim
        micro = max(1, optim.batch // optim.accumulation)
        loss = evaluate(self._stepper.module, self._data.val, micro)
        rows: list[Row] = [[step, loss]]
        self._writers["val"].append(rows)
        announce(f"step {step}: held-out loss {loss:.4f}")
        return loss

    def _save(self, step: int) -> None:
        """The state before update `step`; all rows before it are on disk by then."""
        for writer in self._writers.values():
            writer.sync()
        self._claim.check()
        assert self._initial_loss is not None
        state = Checkpoint(
            step=step,
            model=dict(self._stepper.module.named_parameters()),
            optimizer=self._stepper.optimizer.state(),
            first_bad=self._stop.first_bad,
            initial_loss=self._initial_loss,
        )
        onsets = self._pins.onsets(self._initial_loss, self._data.facts.unigram_entropy)
        checkpoints.save(self._folder.checkpoint, state, self._run_id, onsets)

    def _finish(self, ending: Ending, step: int) -> Outcome:
        if self._config.run.keep is not Keep.none:
            self._claim.check()
            checkpoints.save_final(self._folder.checkpoint, dict(self._stepper.module.named_parameters()))
        for writer in self._writers.values():
            writer.sync()
        return Outcome(ending, min(step, self._stop.end or step), self._stop.first_bad)


class _Clock:
    """Wall and CPU time of this attempt, for a row about every second."""

    def __init__(self, step: int) -> None:
        self._start = self._last = time.monotonic()
        self._cpu = time.process_time()
        self._step = step

    def due(self) -> bool:
        return time.monotonic() - self._last > _TIMING_SECONDS

    def row(self, step: int, tokens: int) -> Row:
        """Step, seconds and CPU seconds since the start, tokens a second since the last row."""
        now = time.monotonic()
        rate = (step - self._step) * tokens / max(now - self._last, 1e-9)
        self._last, self._step = now, step
        return [step, now - self._start, time.process_time() - self._cpu, rate]
