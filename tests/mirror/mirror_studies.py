"""Run folders written step by step, without training, for the tests of the mirror."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ablate.config import dump, flatten, parse
from ablate.record import (
    Claim,
    Heartbeat,
    Run,
    RunFolder,
    SeriesWriter,
    State,
    create_run,
    summarise,
    write_json,
    write_request,
)

COLUMNS = (
    "step",
    "train/loss",
    "train/unigram",
    "train/lr",
    "grad/norm",
    "out/b00_q",
    "out/b00_down",
    "out/head",
)
PROBES = ("step", "attn/b00_max_logit", "resid/b00_rms")


@dataclass(eq=False)
class Made:
    """A run folder that the test writes as a worker would; `steps` planned, evaluation every `every`."""

    folder: RunFolder
    steps: int
    every: int
    seed: int
    lr: float
    claim: Claim | None = None
    written: int = 0

    @classmethod
    def queued(
        cls,
        root: Path,
        number: int,
        *,
        study: str = "s",
        steps: int = 40,
        lr: float = 0.01,
        seed: int = 0,
        bias: str = "none",
        tracker: dict[str, object] | None = None,
        notes: str = "",
        slug: str | None = None,
    ) -> "Made":
        every = max(1, steps // 4)
        config = parse({
            "model": {"layers": 1, "bias": bias}, "optim": {"lr": lr, "steps": steps, "warmup": 2},
            "seed": seed, "study": study, "run": {"notes": notes}, "tracker": tracker or {},
            "eval": {"every": every}, "probe": {"every": 10},
        })  # fmt: skip
        folder = create_run(
            root, study, slug or f"bias={bias}_lr={lr:g}_seed={seed}", f"{number:012x}", dump(config)
        )
        return cls(folder, steps, every, seed, lr)

    def begin(self, from_step: int = 0) -> "Made":
        """Claim it (again) for this process; rows from `from_step` on are void."""
        self.claim = Claim.take(self.folder)
        write_json(self.folder.meta, {
            "config": flatten(Run(self.folder).config),
            "data": {"fingerprint": "f" * 64, "unigram_entropy": 5.0},
            "environment": {"versions": {"python": "3"}, "git": None}, "model": {"parameters": 10},
        })  # fmt: skip
        self.writers = {
            cadence: SeriesWriter(self.claim, cadence, columns, from_step)
            for cadence, columns in (("", COLUMNS), ("val", ("step", "val/loss")), ("probe", PROBES))
        }
        self.written = from_step
        return self

    def write(self, upto: int, shift: float = 0.0, bad: float | None = None) -> "Made":
        """Rows up to step `upto`; `shift` on every loss; `bad`: the loss of the last one."""
        for step in range(self.written, upto):
            if step % self.every == 0:
                self.writers["val"].append([[step, self._loss(step) + shift]])
            loss = bad if bad is not None and step == upto - 1 else self._loss(step) + shift
            self.writers[""].append([[step, loss, 5.0, self.lr, 1.0 + step % 3, 0.5, 0.1, 2.0 + step / 10]])
            if step % 10 == 0:
                self.writers["probe"].append([[step, 1.0 + step, 1.0]])
        self.written = upto
        return self

    def end(self, state: State = State.done, reason: str | None = None) -> "Made":
        """Close the record: with an evaluation and a summary if it is done."""
        assert self.claim is not None
        if state is State.done:
            if self.written == self.steps:
                self.writers["val"].append([[self.steps, self._loss(self.steps)]])
            write_json(self.folder.summary, summarise(Run(self.folder)))
        for writer in self.writers.values():
            writer.close()
        self.claim.finish(state, reason)
        return self

    def whole(self) -> "Made":
        """From the first row to the summary."""
        return self.begin().write(self.steps).end()

    def beating(self) -> Heartbeat:
        return Heartbeat(self.folder)

    def _loss(self, step: int) -> float:
        noise = float(np.random.default_rng([self.seed, step]).normal()) * 0.01
        return 6.2 - 1.5 * (1 - math.exp(-step / 15)) + noise


def study(root: Path, name: str = "s", steps: int = 40) -> list[Made]:
    """Four whole runs that a sweep asked for: two arms, two rates."""
    write_request(root, name, ["ablate", "sweep"], {}, {}, [])
    return [
        Made.queued(root, 10 * i + j + 1, study=name, steps=steps, bias=bias, lr=lr).whole()
        for i, bias in enumerate(("none", "all"))
        for j, lr in enumerate((0.01, 0.1))
    ]
