"""Real training runs, each labelled by eye before its verdict was looked at.

scripts/record_verdict_fixture.py trains, packs and draws them; docs/verdicts.md tells how they were labelled
and how many agreed before a rule was touched.
"""

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ablate.config import VerdictConfig
from ablate.verdict import Curve, Kind, judge

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "verdicts.md"
RUNS: dict[str, Any] = json.loads(gzip.decompress((HERE / "recorded_runs.json.gz").read_bytes()))
LABELS: dict[str, dict[str, str]] = json.loads((HERE / "recorded_labels.json").read_text())
SETS = ("tuning", "held_out")
MISJUDGED = {  # and why no rule was bent for it
    "held_out/layers=2_clip=0_warmup=0_steps=300_batch=8_lr=0.005_seed=23": (
        "a spike of 0.8 gaps at step 11, where all is quiet, is measured against the noise of the whole run; "
        "by the noise of the steps before, one in seven noisy healthy runs would be spiked"
    ),
}


def curve_of(entry: dict[str, Any]) -> Curve:
    return Curve(
        steps=entry["steps"],
        warmup=entry["warmup"],
        loss_R=np.array(entry["loss"], float),
        unigram_R=np.array(entry["unigram_of_batch"], float),
        grad_R=np.array(entry["gradient"], float),
        val_step_E=np.array(entry["val_step"], np.int64),
        val_loss_E=np.array(entry["val_loss"], float),
        unigram=entry["unigram"],
        complete=entry["complete"],
    )


def accepted(name: str) -> list[str]:
    """What the run may be called, the first impression first."""
    return LABELS[name]["label"].split("|")


def members(part: str) -> list[str]:
    return [name for name in RUNS if name.startswith(part + "/")]


def settings(key: str) -> list[Any]:
    return [entry["settings"][key] for entry in RUNS.values()]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.xfail(reason=MISJUDGED[name], strict=True))
        if name in MISJUDGED
        else name
        for name in sorted(RUNS)
    ],
)
def test_the_verdict_is_what_the_eye_says(name: str) -> None:
    verdict = judge(curve_of(RUNS[name]), VerdictConfig())
    assert str(verdict.kind) in accepted(name), verdict.reasons


def test_every_run_has_one_label_and_doubts_have_a_note() -> None:
    assert set(LABELS) == set(RUNS)
    for name, entry in LABELS.items():
        assert {Kind(label) for label in accepted(name)}
        assert entry["note"] or len(accepted(name)) == 1, name
    doubtful = sum(len(accepted(name)) > 1 for name in RUNS)
    assert doubtful <= len(RUNS) / 8


@pytest.mark.parametrize("part", SETS)
def test_the_page_counts_the_runs_of_each_class(part: str) -> None:
    """And every class is there."""
    found = Counter(accepted(name)[0] for name in members(part))
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (\d+) \|$", PAGE.read_text(), re.MULTILINE)
    assert {row[0]: int(row[1 + SETS.index(part)]) for row in rows} == dict(found)
    assert set(found) == set(Kind)


def test_the_runs_cover_the_settings_that_matter() -> None:
    assert len(members("held_out")) >= len(RUNS) / 3 >= 20
    rates = settings("optim.lr")
    assert min(rates) == 1e-5
    assert max(rate for rate in rates if rate <= 10) == 10
    assert {round(np.log10(rate)) for rate in rates} >= set(range(-5, 2))
    assert set(settings("model.placement")) == {"pre", "post", "peri", "sublayer"}
    assert set(settings("data.source")) == {"stdlib", "synthetic"}
    assert set(settings("optim.schedule")) == {"cosine", "linear", "constant"}
    for placement in ("pre", "post"):
        seen = {
            (entry["settings"]["optim.clip"] > 0, entry["settings"]["optim.warmup"] > 0)
            for entry in RUNS.values()
            if entry["settings"]["model.placement"] == placement
        }
        assert seen >= {(True, True), (False, False), (True, False), (False, True)}
