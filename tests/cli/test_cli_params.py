"""`ablate params`, and the refusal of what cannot fit, as people type them."""

import json
import re
from pathlib import Path

import pytest

from ablate.config import ARCHITECTURES
from ablate.sweep import fit


def cells(text: str, first: str) -> list[str]:
    """The columns of the line that begins so."""
    (line,) = [line for line in text.splitlines() if line.startswith(first)]
    return re.split(r"\s{2,}", line[len(first) :].strip())


def test_a_model_by_site_and_with_fewer_and_more_biases(ablate) -> None:
    told = ablate("params", "model=llama", "model.bias=[q,k,v,o]")
    assert told.code == 0
    assert told.out.startswith("LLaMA 7B, vocabulary 32,000\n")
    assert cells(told.out, "q ") == ["536,870,912", "131,072", "0.0244 %", "537,001,984"]
    assert cells(told.out, "up ") == ["1,442,840,576", "0", "0 %", "1,442,840,576"]
    assert cells(told.out, "total ") == ["6,738,415,616", "524,288", "0.00778 %", "6,738,939,904"]
    assert cells(told.out, "parameters ") == ["6,738,415,616", "6,738,939,904", "6,740,041,728"]
    assert cells(told.out, "  of linears ") == ["0", "524,288", "1,359,872"]
    assert cells(told.out, "  of norms ") == ["0", "0", "266,240"]
    # 6 FLOPs a weight and 12·32·32·128·2,048 of attention.
    weights = 6_738_415_616 - 131_072_000 - 266_240
    training = 6 * weights + 12 * 32 * 4096 * 2048
    assert cells(told.out, "  training ") == [f"{training / 1e9:.3g} G"] * 3
    assert "Published: 6,738,415,616 (the released weights; the paper prints 6.7B): 0.0078% less." in told.out


def test_bytes_by_precision(ablate) -> None:
    told = json.loads(ablate("params", "model=gpt2", "--json").out)
    model = told["models"]["as configured"]
    assert (told["preset"], told["published"], model["parameters"]) == ("gpt2", "124,439,808", 124_439_808)
    n = 124_439_808
    assert model["bytes"] == {
        "fp32": {"weights": 4 * n, "gradients": 4 * n, "optimiser": 8 * n},
        "bf16_mixed": {"weights": 2 * n, "gradients": 2 * n, "optimiser": 12 * n},
    }
    assert model["biases"] == {
        "all": 102_144, "linear": 82_944, "head": 0, "norm": 19_200, "share": 102_144 / n,
    }  # fmt: skip
    assert model["sites"]["up"] == {"weights": 12 * 768 * 3072, "biases": 36_864}
    assert model["sites"]["learned positions"] == {"weights": 1024 * 768, "biases": 0}
    assert sum(site["weights"] + site["biases"] for site in model["sites"].values()) == n
    assert told["models"]["bias=none"]["parameters"] == n - 102_144


def test_every_published_architecture(ablate) -> None:
    told = ablate("params", "--all")
    assert told.code == 0
    lines = told.out.splitlines()
    assert [line.split()[0] for line in lines[1 : 1 + len(ARCHITECTURES)]] == list(ARCHITECTURES)
    assert cells(told.out, "gpt3_175b ")[:5] == ["174,604,259,328", "10,616,832", "0", "2,371,584", "0.00744"]
    assert cells(told.out, "bert ")[-2:] == ["110,106,428", "more parts"]
    assert "bert: the published count has more parts: pooler (590,592), next-sentence head (1,538)." in lines
    data = json.loads(ablate("params", "--all", "--json").out)
    assert data["palm_540b"]["parameters"] == 540_356_474_880
    assert {name for name, model in data.items() if not model["equal"]} == {"transformer", "transformer_big"}


@pytest.mark.slow
def test_a_shrunk_model_is_not_compared_with_what_was_published(ablate) -> None:
    told = ablate("params", "model=bert", "model.scale=tiny")
    assert told.out.startswith("bert at model.scale=tiny, vocabulary 512\n")
    assert "Published" not in told.out
    assert "the head works on the hidden ones alone, 15 %" in told.out
    every = ablate("params", "--all", "model.scale=tiny")
    assert cells(every.out, "llama ")[-2:] == ["-", "-"]
    assert "more parts" not in every.out


@pytest.mark.slow
def test_a_changed_preset_is_not_compared_with_what_was_published(ablate) -> None:
    told = ablate("params", "model=gpt2", "model.norm=rmsnorm", "model.qk_norm=true")
    assert told.out.startswith("GPT-2 small (changed: norm, qk_norm), vocabulary 50,257\n")
    assert "Published" not in told.out
    data = json.loads(ablate("params", "model=gpt2", "model.norm=rmsnorm", "--json").out)
    assert (data["published"], data["changed"]) == (None, ["norm"])
    every = ablate("params", "--all", "model.activation=gelu_tanh")
    assert cells(every.out, "gpt2 ")[-2:] == ["124,439,808", "equal"]
    assert cells(every.out, "bert ")[-2:] == ["-", "-"]
    assert "changed: activation, ffn (" not in every.out
    assert re.search(r"^changed: activation \(transformer, transformer_big, bert, ", every.out, re.MULTILINE)


def test_parts_are_named_where_they_explain_the_difference(ablate) -> None:
    told = ablate("params", "--all", "model.bias=none")
    assert "more parts" not in told.out.partition("linear, head, norm")[0]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--all", "model=bert"), "--all is every preset"),
        (("--all", "optim.batch=1,2"), "--all takes one value"),
        (("model=bert,gpt2",), "try: ablate params --all (every preset); or ablate params model=bert\n"),
        (
            ("seed=0,1",),
            "params looks into one model at a time\n  try: ablate params seed=0\n",
        ),
        (("--all", "gpt2"), "try: model=gpt2\n"),
        (("model.bias=nine",), "model.bias"),
    ],
)
def test_bad_requests(ablate, words: tuple[str, ...], error: str) -> None:
    told = ablate("params", *words)
    assert told.code == 2
    assert error in told.err


def test_a_full_size_model_is_refused_before_anything_is_written(ablate, tiny, tmp_path: Path) -> None:
    told = ablate("train", "model=palm_540b", "study=big")
    assert told.code == 2
    assert re.search(
        r"this run needs about \S+ TB of memory \(weights 2\.2 TB, gradients 2\.2 TB, "
        r"optimiser state 4\.3 TB, activations \S+ TB\), this machine has \S+ GB\n"
        r"  try: model\.scale=tiny; run\.force=true",
        told.err,
    )
    told = ablate("sweep", "model=palm_540b", "seed=0,1", "study=big")
    assert told.code == 2
    assert "of memory" in told.err
    assert list(tmp_path.iterdir()) == []
    plan = ablate("sweep", "model=palm_540b", "study=big", "--plan")
    assert plan.code == 0
    assert "that does not fit: it would be refused, unless run.force=true" in plan.out


@pytest.mark.slow
def test_what_is_recorded_is_refused_too_and_force_goes_on(ablate, tiny, tmp_path: Path, monkeypatch) -> None:
    assert ablate("train", *tiny).code == 0
    (run,) = (tmp_path / "runs/t").glob("*-????????????")
    monkeypatch.setattr(fit, "memory_of_machine", lambda: 1000)
    told = ablate("rerun", str(run))
    assert told.code == 2
    assert "this run needs about 0." in told.err
    assert "this machine has 0.0 MB" in told.err
    assert not (run / "reruns").exists()
    assert ablate("train", *tiny, "seed=1").code == 2
    forced = ablate("train", *tiny, "seed=1", "run.force=true")
    assert forced.code == 0
    assert "begun all the same (run.force=true)" in forced.err
