"""What runs need against what the machine has: limits found, and refusals before anything starts."""

import os
from pathlib import Path

import pytest

from ablate.config import Config, UserError, parse
from ablate.sweep import check_memory, fit, machine, needs, slots

GB = 10**9
DESCRIPTION = {"parameters": GB // 16, "by_site": {}, "norms": []}  # 1 GB of states


@pytest.fixture
def _room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "memory_of_machine", lambda: 3 * GB)
    monkeypatch.setattr(slots, "usable_cores", lambda: 2)
    monkeypatch.setenv(slots.GPUS_VARIABLE, "")


def config(seed: int = 0, *, batch: int = 1, force: bool = False, **sections: dict[str, object]) -> Config:
    run = {"force": force, **sections.pop("run", {})}
    return parse({"seed": seed, "optim": {"batch": batch}, "run": run, **sections})


def ignore(_: str) -> None:
    """Say nothing."""


def check(*configs: Config, said: list[str] | None = None, states: int = GB) -> None:
    known = {(c.model, c.data.vocab_size): {**DESCRIPTION, "parameters": states // 16} for c in configs}
    check_memory(configs, (said if said is not None else []).append, known)


@pytest.mark.usefixtures("_room")
def test_runs_that_fit_together_start() -> None:
    said: list[str] = []
    check(config(0), config(1), config(2), said=said)
    assert said == []


@pytest.mark.usefixtures("_room")
def test_one_run_too_large_is_refused_by_part() -> None:
    with pytest.raises(UserError) as refused:
        check(config(), states=4 * GB)
    assert str(refused.value).splitlines() == [
        "this run needs about 4.0 GB of memory (weights 1.0 GB, gradients 1.0 GB, optimiser state 2.0 GB, "
        "activations 1.3 MB), this machine has 3.0 GB",
        "  try: a smaller model; run.force=true (to start all the same)",
    ]


@pytest.mark.usefixtures("_room")
def test_runs_at_once_are_added_up() -> None:
    together = r"2 runs at once need about 4\.0 GB .*; the largest one alone 2\.0 GB"
    with pytest.raises(UserError, match=together) as one:
        check(config(0), config(1), config(2), states=2 * GB)
    assert one.value.hint is not None
    assert one.value.hint.startswith("sweep.jobs=1; ")
    check(config(0, sweep={"jobs": 1}), config(1, sweep={"jobs": 1}), states=2 * GB)


@pytest.mark.usefixtures("_room")
def test_hints_fit_the_cause() -> None:
    llama = config(model={"preset": "llama"})
    known = {(llama.model, llama.data.vocab_size): {**DESCRIPTION, "parameters": GB}}
    with pytest.raises(UserError, match=r"try: model\.scale=tiny; run\.force"):
        check(llama, states=4 * GB)
    with pytest.raises(UserError, match=r"try: a larger optim\.accumulation; a smaller optim\.batch; run"):
        check(config(batch=16_000))
    with pytest.raises(UserError, match=r"try: run\.force"):
        check_memory([llama], ignore, known, recorded=True)


@pytest.mark.usefixtures("_room")
def test_forced_runs_are_said_to_be_too_large() -> None:
    said: list[str] = []
    check(config(force=True), states=4 * GB, said=said)
    assert said == [
        "this run needs about 4.0 GB of memory (weights 1.0 GB, gradients 1.0 GB, optimiser state 2.0 GB, "
        "activations 1.3 MB), this machine has 3.0 GB: begun all the same (run.force=true)"
    ]
    with pytest.raises(UserError):  # the other one was not
        check(config(0, force=True), config(1), states=4 * GB)


@pytest.mark.usefixtures("_room")
def test_nobody_is_asked_about_small_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "describe_models", lambda configs, announce: pytest.fail("asked"))
    check_memory([config()], ignore)
    check_memory([], ignore)


@pytest.mark.usefixtures("_room")
def test_a_gpu_has_one_run_and_its_own_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(slots.GPUS_VARIABLE, "GPU-a,GPU-b")
    monkeypatch.setattr(fit, "memory_of_gpus", lambda names: {"GPU-a": GB, "GPU-b": 2 * GB}[names[0]])
    both = [config(0), config(1), config(2, run={"device": "cpu"})]
    known = {(both[0].model, both[0].data.vocab_size): DESCRIPTION}
    on_cpu, on_gpu = needs(both, known)
    assert (on_cpu.runs, on_cpu.place, on_cpu.fits) == (1, "this machine", True)
    assert (on_gpu.runs, on_gpu.place, on_gpu.fits) == (1, "the GPU", False)
    monkeypatch.setattr(fit, "memory_of_gpus", lambda names: None)
    assert all(need.fits for need in needs(both, known))  # nothing is refused on a guess


def test_control_groups_limit_the_memory(tmp_path: Path) -> None:
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    mine = tmp_path / "cgroup"
    mine.write_text("4:cpu:/a\n2:memory:/job/step\n0::/user/mine\n")
    for path, text in {
        "memory.max": "max\n", "user/memory.max": "5000\n", "user/mine/memory.max": "7000\n",
    }.items():  # fmt: skip
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert machine.memory_of_machine(tmp_path, mine) == 5000
    (tmp_path / "memory/job").mkdir(parents=True)
    (tmp_path / "memory/job/memory.limit_in_bytes").write_text("3000\n")
    assert machine.memory_of_machine(tmp_path, mine) == 3000
    assert machine.memory_of_machine(tmp_path / "none", tmp_path / "none") == whole


def test_sizes_of_gpus_are_read() -> None:
    listing = "GPU-1b2c, 143771\nGPU-3d4e, [N/A]\n"
    assert machine.gpu_sizes(listing) == {"GPU-1b2c": 143771 * 2**20}
