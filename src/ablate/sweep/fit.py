"""Do runs fit into memory? The estimate against what the machine has; the refusal before anything starts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

from ablate.config import Config, Device, Scale, Stack, UserError
from ablate.sweep import slots
from ablate.sweep.activations import FLOAT
from ablate.sweep.cost import Memory, cost
from ablate.sweep.describe import Descriptions, describe_models, model_of
from ablate.sweep.machine import memory_of_gpus, memory_of_machine


@dataclass(frozen=True)
class Need:
    """What runs that work at once need together, in the worst case, and what is there for them.

    `runs`: how many; `room`: bytes, None where nobody knows; `place`: whose memory. `configs`: those runs,
    the largest first.
    """

    memory: Memory
    configs: tuple[Config, ...]
    room: int | None
    place: str

    @property
    def runs(self) -> int:
        return len(self.configs)

    @property
    def fits(self) -> bool:
        return self.room is None or self.memory.total <= self.room

    @property
    def forced(self) -> bool:
        """Is everything that needs too much to start all the same?"""
        return all(config.run.force for config in self.configs)


def needs(configs: Sequence[Config], descriptions: Descriptions) -> list[Need]:
    """The largest runs that a launch has at work at once: on the CPU together, on GPUs each by itself."""
    gpus = slots.gpus_for(configs)
    known: dict[Any, Memory] = {}
    sized = []
    for config in configs:
        optim = config.optim
        key = (*model_of(config), config.data.objective, optim.batch, optim.accumulation, optim.precision)
        if key not in known:
            known[key] = cost(config, descriptions[model_of(config)]).memory
        sized.append((known[key], config))
    sized.sort(key=lambda pair: -pair[0].total)
    on_cpu = [pair for pair in sized if not _takes_gpu(pair[1], gpus)]
    on_gpu = [pair for pair in sized if gpus and _takes_gpu(pair[1], gpus)]
    found = []
    if on_cpu:
        memories, together = zip(*on_cpu[: slots.for_launch(configs, gpus)], strict=True)
        found.append(Need(reduce(add, memories), together, memory_of_machine(), "this machine"))
    if on_gpu:
        memory, largest = on_gpu[0]
        found.append(Need(memory, (largest,), memory_of_gpus(gpus), "the GPU"))
    return found


def _takes_gpu(config: Config, gpus: Sequence[str]) -> bool:
    return config.run.device is Device.cuda or (config.run.device is Device.auto and bool(gpus))


def check_memory(
    configs: Sequence[Config],
    announce: Callable[[str], None],
    descriptions: Descriptions | None = None,
    recorded: bool = False,
) -> None:
    """Refuse runs of which those at work at once cannot fit into memory, unless they have `run.force`.

    `announce` is told of forced ones. `descriptions`: of the models, where they are known; else a worker is
    asked, but not where the runs are far too small to matter. `recorded`: the runs' models cannot be changed.
    Raises UserError with the estimate by part; WorkerError where the worker dies.
    """
    if descriptions is None:
        if not configs or _far_from_full(configs):
            return
        descriptions = describe_models(configs, announce)
    for need in needs(configs, descriptions):
        if need.fits:
            continue
        if not need.forced:
            largest = cost(need.configs[0], descriptions[model_of(need.configs[0])]).memory
            raise _refusal(need, largest, recorded)
        announce(f"{need_words(need)}: begun all the same (run.force=true)")


def need_words(need: Need) -> str:
    """`2 runs at once need about 3.1 GB of memory (weights …), this machine has 25.3 GB`."""
    subject = "this run needs" if need.runs == 1 else f"{need.runs} runs at once need"
    there = (
        "how much it has is not known" if need.room is None else f"{need.place} has {gigabytes(need.room)}"
    )
    return f"{subject} about {gigabytes(need.memory.total)} of memory ({parts_words(need.memory)}), {there}"


def parts_words(memory: Memory) -> str:
    """The estimate by part."""
    return (
        f"weights {gigabytes(memory.weights)}, gradients {gigabytes(memory.gradients)}, "
        f"optimiser state {gigabytes(memory.optimiser)}, activations {gigabytes(memory.activations)}"
    )


def gigabytes(size: int) -> str:
    """Bytes as people say them: `540 GB`, `26.9 GB`, `0.3 MB`."""
    unit, scale = next(((u, s) for u, s in (("TB", 1e12), ("GB", 1e9)) if size >= 0.9995 * s), ("MB", 1e6))
    amount = size / scale
    return f"{amount:,.0f} {unit}" if amount >= 99.95 else f"{amount:.1f} {unit}"


def _refusal(need: Need, largest: Memory, recorded: bool) -> UserError:
    """With what helps, most helpful first."""
    assert need.room is not None
    config = need.configs[0]
    hints = []
    if need.runs > 1 and largest.total <= need.room:
        hints.append("sweep.jobs=1")
    if config.model.preset is not None and config.model.scale is None and not recorded:
        hints.append(f"model.scale={Scale.tiny}")
    states = largest.total - largest.activations
    if largest.activations > states / 10 and states <= need.room:
        if config.optim.accumulation < config.optim.batch:
            hints.append("a larger optim.accumulation")
        if config.optim.batch > 1:
            hints.append("a smaller optim.batch")
    if not hints and not recorded:
        hints.append("a smaller model")
    hints.append("run.force=true (to start all the same)")
    one = f"; the largest one alone {gigabytes(largest.total)}" if need.runs > 1 else ""
    return UserError(need_words(need) + one, hint="; ".join(hints))


def _far_from_full(configs: Sequence[Config]) -> bool:
    """Does memory do whatever the models have?"""
    room, gpus = memory_of_machine(), slots.gpus_for(configs)
    if room is None or any(_takes_gpu(config, gpus) for config in configs):
        return False
    return slots.for_launch(configs, gpus) * max(map(at_most, configs)) <= room


def at_most(config: Config) -> int:
    """Bytes that a run of this shape never needs more of, whatever its sites, norms and stack: a loose bound
    that needs no built model.
    """
    m, vocab = config.model, config.data.vocab_size
    blocks = m.layers * (2 if m.stack is Stack.encoder_decoder else 1)
    heads = m.heads * m.head_dim
    block = 8 * m.width * heads + 3 * m.width * m.ffn + 16 * (m.width + heads + m.ffn)
    outside = (2 * vocab + m.context + m.segments + m.width + 16) * m.width + 2 * vocab
    kept = blocks * (16 * m.width + 16 * heads + 4 * m.ffn + m.context) + 16 * m.width + 3 * vocab
    return 18 * (blocks * block + outside) + FLOAT * kept * config.optim.batch * m.context
