"""`ablate export`, and runs that start from what it wrote: refusals, resumption, repetition."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from ablate.record import Run, RunFolder, find_runs, read_status
from ablate.sweep import freeze, plan

SHORT = "optim.steps=4"


def newest(study: str) -> RunFolder:
    return max(find_runs(Path("runs"), study), key=lambda folder: folder.config.stat().st_mtime_ns)


def initial(folder: RunFolder) -> float:
    loss = Run(folder).meta["initial_loss"]
    assert isinstance(loss, float)
    return loss


@pytest.mark.slow  # the parity tests go there and back in the default suite
def test_there_and_back(ablate, tiny: tuple[str, ...]) -> None:
    same = (*tiny, SHORT, "model.bias=none")
    assert ablate("train", *same).code == 0
    check_export(ablate)
    before = Run(newest("t"))
    assert before.summary is not None
    shown = ablate("train", *same, "model.weights=out", "study=u")
    assert shown.code == 0, shown.err
    after = newest("u")
    assert initial(after) == before.summary["final/val/loss"]
    assert after.id != before.folder.id
    assert re.search(r"model\.weights +\S+/out", ablate("show", after.id).out)
    repeated = ablate("rerun", after.id)
    assert (repeated.code, "exact: 4 rows" in repeated.out) == (0, True)
    other = ablate("rerun", after.id, "model.weights=null")
    assert (other.code, "another experiment" in other.out) == (0, True)
    assert initial(RunFolder(after.reruns / "002")) == initial(before.folder)
    check_refused_before_anything_starts(ablate, same, after.id)
    check_refused_by_the_worker(same)


def check_export(ablate) -> None:
    shown = ablate("export", newest("t").id, "--to", "hf", "--out", "out")
    assert shown.code == 0, shown.err
    first, added, none, *python = shown.out.splitlines()
    assert re.fullmatch(r"runs/t/\S+ as gpt2 \(GPT2LMHeadModel\) in out: [\d,]+ parameters, 0\.1 MiB", first)
    assert added.startswith("added as zeros, which changes nothing: bias of norm (160), bias of q (64), ")
    assert none == "no tokenizer: the run was trained on tokens, not on text"
    assert python == [
        "from transformers import AutoModelForCausalLM",
        "model = AutoModelForCausalLM.from_pretrained('out')",
    ]
    assert {path.name for path in Path("out").iterdir()} == {"config.json", "model.safetensors"}


def check_refused_before_anything_starts(ablate, same: tuple[str, ...], run: str) -> None:
    asked = (*same, "model.weights=null,out", "model.eps=1e-4", "study=v")
    for shown in (
        ablate("train", *asked, "model.weights=out", "model.layers=3"),
        ablate("sweep", *asked, "model.layers=2,3"),
        ablate("sweep", "--plan", *asked, "model.layers=2,3"),
    ):
        assert shown.code == 2
        assert "nothing of it was loaded" in shown.err
        assert "config.json: layer_norm_epsilon = 1e-05; model.eps says 0.0001" in shown.err
        assert "try: model.eps=1e-05" in shown.err or "missing: transformer.h.2.ln_1.weight [32]" in shown.err
    assert not Path("runs/v").exists()
    before = sorted(newest("u").reruns.iterdir())
    shown = ablate("rerun", run, "model.weights=out", "model.eps=1e-4")
    assert (shown.code, "model.eps says 0.0001" in shown.err) == (2, True)
    assert sorted(newest("u").reruns.iterdir()) == before


def check_refused_by_the_worker(same: tuple[str, ...]) -> None:
    (wrong,) = freeze(plan([*same, "model.weights=out", "model.layers=3", "study=w"]))
    subprocess.run([sys.executable, "-m", "ablate.worker", wrong.path], check=False, capture_output=True)
    assert "missing: transformer.h.2.ln_1.weight [32]" in str(read_status(wrong).reason)
    (queued,) = freeze(plan([*same, "model.weights=out", "seed=1", "study=w"]))
    (Path("out") / "config.json").write_text("{}")
    subprocess.run([sys.executable, "-m", "ablate.worker", queued.path], check=False, capture_output=True)
    assert "has changed since this run was composed" in str(read_status(queued).reason)


def test_an_export_looks_at_the_weights(ablate, tiny: tuple[str, ...]) -> None:
    assert ablate("train", *tiny, SHORT).code == 0
    run = newest("t")
    file = run.checkpoint / "final" / "model.safetensors"
    whole, zeros = load_file(file), np.zeros((40, 32), np.float32)
    for change, says in (
        ({"embed.weight": None}, "missing: embed.weight [32, 32]"),
        ({"embed.weight": zeros}, "shape: embed.weight [40, 32]; this model has [32, 32]"),
        ({"embed.weight": whole["embed.weight"].astype(np.float16)}, "type: embed.weight is float16"),
        ({"bad\nname": np.zeros(3, np.float32)}, r"surplus: bad\nname [3]"),
    ):  # fmt: skip
        changed = {name: array for name, array in {**whole, **change}.items() if array is not None}
        save_file(changed, file)
        shown = ablate("export", run.id, "--to", "hf", "--out", "new/out")
        assert (shown.code, says in shown.err) == (2, True), shown.err
        assert "is damaged, or of another run" in shown.err
        assert not Path("new").exists()
    save_file({**whole, "embed.weight": whole["embed.weight"] * np.float32("nan")}, file)
    shown = ablate("export", run.id, "--to", "hf", "--out", "one")
    verdict = Run(run).summary["verdict"]
    assert f"the weights are not all finite; the run's verdict is {verdict}\n" in shown.out
    run.summary.unlink()
    shown = ablate("export", run.id, "--to", "hf", "--out", "two")
    assert "the weights are not all finite; the run has no verdict\n" in shown.out
    run.summary.write_text("{")
    shown = ablate("export", run.id, "--to", "hf", "--out", "three")
    assert re.search(r"the weights are not all finite; \S+/summary.json cannot be read\n", shown.out)


def test_any_name_of_a_target_will_do(ablate, tiny: tuple[str, ...]) -> None:
    assert ablate("train", *tiny, SHORT).code == 0
    run = newest("t").id
    for name in ("x" * 255, "é" * 127):
        assert ablate("export", run, "--to", "hf", "--out", f"deep/{name}").code == 0
        assert (Path("deep") / name / "config.json").is_file()
    for name in ("y" * 256, "a\0b"):
        shown = ablate("export", run, "--to", "hf", "--out", f"new/new/{name}")
        assert (shown.code, "error: " in shown.err) == (2, True)
        assert not Path("new").exists()


def test_what_cannot_be_exported_is_refused(ablate, tiny: tuple[str, ...], tmp_path: Path) -> None:
    assert ablate("train", *tiny, SHORT, "run.keep=none").code == 0
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    run = newest("t").id

    def refused(target: str, run: str, *says: str) -> None:
        shown = ablate("export", run, "--to", "hf", "--out", target)
        assert shown.code == 2
        assert all(text in shown.err for text in says), shown.err

    refused("full", run, "full is there already", "allowed: a new or an empty folder")
    refused("full/file", run, "is there already")
    refused("out", run, "run.keep=none", "try: run.keep=weights sweep.redo=true")
    refused("out", "nothing", "no run 'nothing'")
    refused("out", "t", "t is a study; its runs are exported one by one", "try: ablate ls t")
    (queued,) = freeze(plan([*tiny, SHORT, "seed=5"]))
    refused("out", queued.id, "is queued", f"try: python -m ablate.worker {queued.path}")
    assert ablate("train", *tiny, SHORT, "model.norm=none", "study=n").code == 0
    refused("out", newest("n").id, "the nearest is gpt2", "model.norm = none (it has layernorm)")
    assert not Path("out").exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
