"""Through the command line: train, export, load with transformers, and start from what was exported."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.parity.conftest import Close
from torch.nn.functional import cross_entropy

from ablate.cli import main
from ablate.config import ProbeConfig
from ablate.data import prepare
from ablate.model import build
from ablate.record import Run, find_runs

pytestmark = pytest.mark.parity

FAMILIES = ("gpt2", "bert", "llama", "mistral", "qwen2", "qwen3", "olmo2", "gpt_neox")
TINY = (
    "model.scale=tiny", "data.max_bytes=150000", "data.val_tokens=640", "data.vocab_size=400",
    "optim.batch=4", "optim.steps=3", "optim.lr=1e-2", "tracker.mode=off",
)  # fmt: skip


def train(*overrides: str) -> None:
    assert main(["sweep", *TINY, *overrides]) == 0


def exported(run: Run, target: Path, capfd: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Export a run, and carry out the Python that the command prints."""
    capfd.readouterr()
    assert main(["export", str(run.folder.path), "--to", "hf", "--out", str(target)]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert f"in {target}: " in lines[0]
    scope: dict[str, Any] = {}
    exec("\n".join(lines[-2:]), scope)
    return scope


def check_same(run: Run, scope: dict[str, Any], close: Close) -> None:
    """Logits, tokens and the held-out loss of the loaded model are the run's."""
    config = run.config
    data = prepare(config.data, config.model.context)
    module = build(config.model, data.facts.vocab_size, 0, ProbeConfig())
    module.load_state_dict(load_file(run.folder.checkpoint / "final" / "model.safetensors"), strict=False)
    val = data.val
    inputs, targets = torch.from_numpy(val.inputs_BT), torch.from_numpy(val.targets_BM)
    positions = None if val.positions_BM is None else torch.from_numpy(val.positions_BM)
    more = {}
    if config.model.segments:
        context, parts = config.model.context, config.model.segments
        more["token_type_ids"] = torch.arange(context).expand(len(inputs), -1) * parts // context
    theirs = scope["model"].eval()(inputs, **more).logits
    if positions is not None:
        theirs = theirs.gather(1, positions[..., None].expand(-1, -1, theirs.shape[-1]))
    with torch.no_grad():
        close("logits", module(inputs, positions_BM=positions), theirs)
        loss = cross_entropy(theirs.flatten(0, 1), targets.flatten()).item()
    assert run.summary is not None
    assert loss == pytest.approx(run.summary["final/val/loss"], rel=1e-5)
    tokenizer = scope["tokenizer"]
    assert len(tokenizer) == data.facts.vocab_size
    text = "def f(x):\n    return x  # é"
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids) == text
    assert tokenizer.eos_token_id == scope["model"].config.eos_token_id == 0
    if positions is not None:
        masked = inputs.gather(1, positions) == tokenizer.mask_token_id
        assert 0.5 < masked.float().mean() <= 1


@pytest.mark.parametrize("families", [("bert", "qwen3"), pytest.param(FAMILIES, marks=pytest.mark.slow)])
def test_families_go_there_and_back(
    families: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    close: Close,
) -> None:
    monkeypatch.chdir(tmp_path)
    presets = f"model={','.join(families)}"
    train(presets, "study=there")
    runs = {str(run.config.model.preset): run for run in map(Run, find_runs(Path("runs"), "there"))}
    assert set(runs) == set(families)
    for name in families:
        scope = exported(runs[name], tmp_path / name, capfd)
        assert scope["model"].config.model_type == name
        check_same(runs[name], scope, close)
    weights = f"model.weights={','.join(str(tmp_path / name) for name in families)}"
    words = f"data.tokenizer={','.join(str(tmp_path / name / 'tokenizer.json') for name in families)}"
    train(presets, weights, words, "sweep.zip=[[model,model.weights,data.tokenizer]]", "study=back")
    back = [Run(folder) for folder in find_runs(Path("runs"), "back")]
    assert len(back) == len(families)
    for run in back:
        name = str(run.config.model.preset)
        assert run.config.model.weights == str(tmp_path / name)
        before = runs[name].summary
        assert before is not None
        assert run.meta["initial_loss"] == before["final/val/loss"], name
