"""Runs of a preset at a study size, as their folder and `ablate show` name them."""

import re
from pathlib import Path


def test_a_run_is_named_by_its_preset_and_scale(ablate, tiny: tuple[str, ...]) -> None:
    asked = (*tiny, "model=bert", "model.scale=tiny", "model.norm=rmsnorm", "optim.steps=4")
    assert ablate("train", *asked).code == 0
    (folder,) = Path("runs/t").glob("*-????????????")
    assert folder.name.startswith("preset=bert_scale=tiny_norm=rmsnorm_context=16_")
    shown = ablate("show", "t/preset=bert").out
    assert re.search(r"^model +bert at model\.scale=tiny \(changed: context, norm\)$", shown, re.MULTILINE)
    assert ablate("train", *tiny, "optim.steps=4").code == 0
    (other,) = set(Path("runs/t").glob("*-????????????")) - {folder}
    assert not re.search(r"^model +", ablate("show", str(other)).out, re.MULTILINE)
