"""`ablate export`, and runs that start from what it wrote: refusals, resumption, repetition."""

import re
import subprocess
import sys
from pathlib import Path

from ablate.record import Run, RunFolder, find_runs, read_status
from ablate.sweep import freeze, plan

SHORT = "optim.steps=4"


def newest(study: str) -> RunFolder:
    return max(find_runs(Path("runs"), study), key=lambda folder: folder.config.stat().st_mtime_ns)


def initial(folder: RunFolder) -> float:
    loss = Run(folder).meta["initial_loss"]
    assert isinstance(loss, float)
    return loss


def test_there_and_back(ablate, tiny: tuple[str, ...]) -> None:  # type: ignore[no-untyped-def]
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
    check_refused_by_the_worker(ablate, same)


def check_export(ablate) -> None:  # type: ignore[no-untyped-def]
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


def check_refused_by_the_worker(ablate, same: tuple[str, ...]) -> None:  # type: ignore[no-untyped-def]
    shown = ablate("train", *same, "model.weights=out", "model.layers=3", "model.eps=1e-4", "study=v")
    assert shown.code == 1
    reason = str(read_status(newest("v")).reason)
    assert "nothing of it was loaded" in reason
    assert "config.json: layer_norm_epsilon = 1e-05; model.eps says 0.0001" in reason
    assert "missing: transformer.h.2.ln_1.weight [32]" in reason
    (queued,) = freeze(plan([*same, "model.weights=out", "seed=1", "study=w"]))
    (Path("out") / "config.json").write_text("{}")
    subprocess.run([sys.executable, "-m", "ablate.worker", queued.path], check=False, capture_output=True)
    assert "has changed since this run was composed" in str(read_status(queued).reason)


def test_what_cannot_be_exported_is_refused(ablate, tiny: tuple[str, ...], tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
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
