"""Starting from the weights of a Hugging Face folder."""

import dataclasses
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from ablate.config import Config, UserError
from ablate.config.weights import anchored
from ablate.exchange import save_folder
from ablate.model import Transformer, build
from ablate.train import Ending, Ready
from ablate.train.weights import start_from

MODEL = {"bias": ["q", "norm"], "ffn": 40}


def made(bench: Any, target: Path, changes: dict[str, Any] | None = None) -> tuple[Config, Transformer]:
    """A folder with random weights, a run that starts from it, and the model that has them."""
    config = bench.config({"model": {**MODEL, **(changes or {})}})
    module = build(config.model, 64, 5, config.probe)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    save_folder(target, config.model, 64, {n: p.detach().numpy() for n, p in module.named_parameters()}, None)
    model = anchored(dataclasses.replace(config.model, weights=str(target)))
    return dataclasses.replace(config, model=model), module


@pytest.mark.parametrize("bias", [["q", "norm"], ["none"], ["all"]])
def test_every_parameter_is_the_folders(bias: list[str], bench: Any, tmp_path: Path) -> None:
    config, module = made(bench, tmp_path / "hf", {"bias": bias})
    fresh = build(config.model, 64, 0, config.probe)
    start_from(fresh, config.model, lambda _: None)
    wanted = dict(module.named_parameters())
    assert all(torch.equal(parameter, wanted[name]) for name, parameter in fresh.named_parameters())


def test_a_folder_that_changed_or_does_not_fit_touches_nothing(bench: Any, tmp_path: Path) -> None:
    config, _ = made(bench, tmp_path / "hf")
    file = tmp_path / "hf" / "model.safetensors"
    tensors = load_file(file)
    save_file({**tensors, "transformer.ln_f.weight": np.ones(32, np.float32)}, file)
    fresh, same = (build(config.model, 64, 0, config.probe) for _ in range(2))
    with pytest.raises(UserError, match="has changed since this run was composed"):
        start_from(fresh, config.model, print)
    del tensors["transformer.h.1.mlp.c_proj.weight"]
    save_file(tensors, file)
    changed = anchored(dataclasses.replace(config.model, weights_sha256=None))
    with pytest.raises(UserError, match=r"missing: transformer\.h\.1\.mlp\.c_proj\.weight \[40, 32\]"):
        start_from(fresh, changed, print)
    with pytest.raises(UserError, match=r"shape: transformer\.wte\.weight \[64, 32\]; .* has \[65, 32\]"):
        start_from(build(config.model, 65, 0, config.probe), changed, print)
    assert all(torch.equal(a, b) for a, b in zip(fresh.parameters(), same.parameters(), strict=True))


def test_a_run_begins_there_and_resumes_from_its_own_checkpoint(
    bench: Any, rows_of: Any, same: Any, tmp_path: Path
) -> None:
    """Even when the folder is gone by then."""
    config, _ = made(bench, tmp_path / "hf")
    seen: list[Ready] = []
    said: list[str] = []
    whole, _ = bench.train(config, study="whole", on_ready=seen.append, announce=said.append)
    assert f"starting from the weights in {tmp_path / 'hf'}" in said
    plain, _ = bench.train(bench.config({"model": MODEL}), study="plain")
    assert seen[0].initial_loss == rows_of(whole)["val"][0, 1] != rows_of(plain)["val"][0, 1]

    def ask(line: str) -> None:
        if line.startswith("step 6:"):
            signal.raise_signal(signal.SIGTERM)

    folder, outcome = bench.train(config, announce=ask)
    assert outcome.ending is Ending.preempted
    shutil.rmtree(tmp_path / "hf")
    folder, _ = bench.train(config)
    assert same(rows_of(folder), rows_of(whole))
