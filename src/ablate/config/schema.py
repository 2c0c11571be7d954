"""The schema: what one configuration says, key by key.

Each field carries its class (science, observe, control), its range and one line of documentation; the
checks, `ablate config --keys` and the docs read them from here. A field made with `derived` is null in
YAML and filled by `resolve`; its annotation is the type it has afterwards (as for `fraction`).
"""

from dataclasses import dataclass, field
from typing import Any

from ablate.config.enums import (
    ClipOver,
    Decay,
    Decayed,
    Device,
    Keep,
    Objective,
    OnFailure,
    Precision,
    Schedule,
    Source,
    TrackerMode,
)
from ablate.config.model import ModelConfig
from ablate.config.settings import control, observe, science

SCHEMA_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    source: Source = science(Source.stdlib, "where the text comes from")
    paths: tuple[str, ...] = control(
        (), "text: files or globs (txt, md, py, jsonl, parquet); identified by content", content=True
    )
    field: str = science("text", "text, hub: name of the text column in jsonl, parquet and data sets")
    name: str | None = control(None, "hub: data set name or local path; identified by content", content=True)
    subset: str | None = control(None, "hub: configuration of the data set", content=True)
    revision: str | None = control(None, "hub: revision of the data set", content=True)
    split: str = control("train", "hub: split of the data set", content=True)
    streaming: bool = control(False, "hub: stream instead of downloading whole")
    max_bytes: int | None = science(None, "stop reading after this much text, in bytes (null: all)", ge=1)
    tokens: int = science(500_000, "synthetic: length of the training stream", ge=1, le=1_000_000_000)
    branching: int = science(
        4, "synthetic: successors of each token; sets the entropy rate", ge=2, le=10_000_000
    )
    vocab_size: int = science(
        None,
        "vocabulary: of the byte-level BPE and what the objective adds (null: model.vocab, else 512)",
        ge=2,
        le=10_000_000,
        derived=True,
    )
    objective: Objective = science(
        None,
        "what is predicted (null: next for a decoder, masked for an encoder, prefix for both)",
        derived=True,
        neutral=Objective.next,
    )
    mask_rate: float = science(
        0.15, "masked, span: share of a window's tokens that is hidden", gt=0, lt=1, neutral=0.15
    )
    mask_span: float = science(3.0, "span: mean length of a hidden span, in tokens", ge=1, neutral=3.0)
    tokenizer: str | None = control(
        None, "a tokenizer.json to use instead of training one; identified by content", content=True
    )
    data_seed: int = science(None, "seed of the batch order (null: seed)", ge=0, derived=True)
    split_seed: int = science(0, "seed of the held-out split", ge=0)
    val_fraction: float = science(0.05, "share of the documents held out", gt=0, lt=1)
    val_tokens: int = science(16_384, "held-out tokens in every evaluation, at most", ge=1)
    cache: str | None = control(None, "cache folder (null: $ABLATE_CACHE, else the user's cache folder)")


@dataclass(frozen=True, kw_only=True)
class OptimConfig:
    lr: float = science(3e-3, "peak learning rate", gt=0)
    beta1: float = science(0.9, "AdamW first-moment decay", ge=0, lt=1)
    beta2: float = science(0.95, "AdamW second-moment decay", ge=0, lt=1)
    eps: float = science(1e-8, "AdamW epsilon", ge=0)
    weight_decay: float = science(0.1, "weight decay", ge=0)
    decay: Decay = science(Decay.coupled, "is weight decay multiplied by the learning rate")
    decayed: Decayed = science(
        Decayed.matrices, "which parameters decay: matrices only, or biases and gains too"
    )
    decay_embeddings: bool = science(True, "embeddings count as decayed matrices")
    clip: float = science(1.0, "clip the gradient norm to this value (0: off)", ge=0, off=0)
    clip_over: ClipOver = science(ClipOver.all, "parameters whose norm sets the clipping coefficient")
    warmup: int = science(0.1, "linear warm-up: steps, or a fraction of them if below 1", ge=0, fraction=True)
    schedule: Schedule = science(Schedule.cosine, "learning rate after warm-up")
    final_lr: float = science(
        0.1, "learning rate at the end, as a fraction of lr (not for constant)", ge=0, le=1
    )
    cooldown: int = science(
        0.2, "wsd: final decay, steps or a fraction of them if below 1", ge=0, fraction=True
    )
    steps: int = science(200, "optimiser steps", ge=1, le=1_000_000_000)
    batch: int = science(16, "windows in one optimiser step", ge=1, le=10_000_000)
    accumulation: int = science(1, "micro-batches a step is split into", ge=1)
    z_loss: float = science(0.0, "weight of the mean squared log partition function (PaLM)", ge=0)
    precision: Precision = science(Precision.fp32, "arithmetic of matrix products; parameters stay fp32")


@dataclass(frozen=True, kw_only=True)
class ProbeConfig:
    outputs: bool = observe(True, "output L2 of every linear, every step")
    gradients: bool = observe(True, "gradient norm per site, every step")
    every: int = observe(10, "cadence of the costlier probes, in steps (0: off)", ge=0, off=0)
    queries: int = observe(16, "query positions sampled for the largest attention logit", ge=1)


@dataclass(frozen=True, kw_only=True)
class EvalConfig:
    every: int = observe(
        None, "cadence of the held-out loss, in steps (null: a quarter of the run)", ge=1, derived=True
    )


@dataclass(frozen=True, kw_only=True)
class VerdictConfig:
    """Thresholds of the verdict; rules and sources stand in `ablate.verdict` and docs/verdicts.md.

    "Gap" is the held-out loss at step 0 minus the unigram level, never less than `min_gap` where it scales
    a threshold. "Excess" is the training loss minus the unigram cross-entropy of its batch.
    """

    cap: float = observe(
        0.05, "distance, in gaps, within which a loss counts as at the start or at the unigram", gt=0, lt=1
    )
    giveback: float = observe(
        0.5, "share of the best gain given back at the end that counts as diverged", gt=0, le=1
    )
    learned: float = observe(0.3, "excess, in gaps, below which a run has learned the unigram", gt=0, lt=1)
    early: float = observe(0.25, "share of the run within which learning counts as early", gt=0, le=1)
    rest_rows: int = observe(
        50, "steps a run must have had since it learned the unigram for that to count as collapsed", ge=0
    )
    rise: float = observe(
        0.5,
        "rise of the running mean above its minimum, in gaps: collapsed, diverged or spiked",
        gt=0,
    )
    well: float = observe(
        0.1, "share of the best gain that a run may lose and still count as at its best", gt=0, le=1
    )
    shelf: float = observe(
        0.25, "depth below the unigram, in gaps, at which a flat loss still counts as collapsed", ge=0, lt=1
    )
    tail: float = observe(0.1, "share of the run that counts as its end", gt=0, le=1)
    smooth: float = observe(0.05, "window of the running mean, as a share of the run", gt=0, le=1)
    smooth_rows: int = observe(5, "least window of the running mean and of the end, in steps", ge=1)
    min_gap: float = observe(
        0.2, "nats: a smaller gap says nothing, this stands in for it as the scale", gt=0
    )
    noise: float = observe(
        7.0, "standard errors that a change must exceed to count as more than batch noise", ge=0
    )
    spike_times: float = observe(2.0, "KillLossSpike: loss over window mean that is an outlier", gt=1)
    spike_steps: int = observe(5, "KillLossSpike: outliers in a row that make a spike", ge=1)
    spike_window: int = observe(100, "KillLossSpike: least published window, in steps", ge=2)
    spike_share: float = observe(0.05, "KillLossSpike: window as a share of a long run", gt=0, le=1)
    high_loss: float = observe(10.0, "KillLossSpike: upper limit of the loss cap, in nats", gt=0)
    sigmas: float = observe(7.0, "spike score: standard deviations from the rolling mean", gt=0)
    sigma_window: int = observe(1000, "spike score: published window, in steps", ge=2)
    median_margin: float = observe(0.1, "loss spikes: nats above the rolling median", gt=0)
    median_window: int = observe(201, "loss spikes: published window, in steps", ge=2)
    window_share: float = observe(
        0.1, "a spike window is at most this share of the run, published length or not", gt=0, le=1
    )
    window_floor: int = observe(20, "shortest spike window, in steps", ge=2)
    patience: int = observe(20, "rows recorded from the first non-finite step on", ge=1)


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    root: str = control("runs", "folder of all studies")
    device: Device = control(Device.auto, "where to train")
    threads: int = control(1, "CPU threads of one run", ge=1, le=10_000)
    compile: bool = control(False, "torch.compile each block")
    checkpoint_every: int = control(
        None, "steps between checkpoints (null: a fifth of the run)", ge=1, derived=True
    )
    keep: Keep = control(Keep.weights, "what a finished run keeps of its checkpoints")
    force: bool = control(False, "start although the estimate says that memory will not do")
    allow_code_change: bool = control(False, "start a queued run although the code changed since")
    notes: str = control("", "free text for people")
    timeout: float | None = control(None, "stop a run after this many seconds, as failed (null: never)", gt=0)


@dataclass(frozen=True, kw_only=True)
class TrackerConfig:
    """The mirror in Weights & Biases; docs/wandb.md."""

    mode: TrackerMode = control(
        TrackerMode.auto, "mirror runs to W&B; auto: online where an API key is found, else offline"
    )
    project: str | None = control(None, "W&B project (null: the study)")
    entity: str | None = control(None, "W&B user or team (null: the key's default)")
    tags: tuple[str, ...] = control((), "more tags for every run")
    rows: int = control(200, "rows of a run that are mirrored at most, spikes first", ge=20, le=100_000)
    finish_timeout: float = control(
        60.0, "seconds that a launch waits for its mirror in the end, and the mirror for the service", ge=0
    )


@dataclass(frozen=True, kw_only=True)
class SweepConfig:
    axes: dict[str, Any] = control(
        {}, "factors an experiment brings along: key to list of values, or a sweep as on the command line"
    )
    redo: bool = control(False, "train again what is already done")
    jobs: int | None = control(
        None, "runs at once (null: one per usable core and run.threads, or one per GPU)", ge=1, le=10_000
    )
    retries: int = control(
        1, "new tries for a run whose process was killed (never after an error)", ge=0, le=100
    )
    on_failure: OnFailure = control(OnFailure.carry_on, "what a failed run means for the others")
    zip: tuple[tuple[str, ...], ...] = control(
        (), "groups of axes of equal length that advance together, as in [[model.width,model.heads]]"
    )
    exclude: tuple[dict[str, Any], ...] = control(
        (), "combinations left out before they are checked: mappings of keys to a value or a list of values"
    )
    allow: tuple[str, ...] = control(
        (), "what may differ between arms without being an axis: keys, as the confound guard names them"
    )


@dataclass(frozen=True, kw_only=True)
class Config:
    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    probe: ProbeConfig = field(default_factory=ProbeConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
    verdict: VerdictConfig = field(default_factory=VerdictConfig)
    run: RunConfig = field(default_factory=RunConfig)
    tracker: TrackerConfig = field(default_factory=TrackerConfig)
    sweep: SweepConfig = field(default_factory=SweepConfig)
    seed: int = science(
        0, "seed of the initialisation, and of the batch order unless data.data_seed is set", ge=0
    )
    study: str = control("default", "the study this run belongs to: a folder below run.root")
