"""What `ls` and `status` say of runs that W&B does not show as they are."""

import json
from pathlib import Path

import pytest
from view_studies import record

from ablate.cli import main
from ablate.record import State


def noted(root: Path, troubles: dict[str, str]) -> None:
    (root / "s" / "wandb").mkdir(exist_ok=True)
    (root / "s" / "wandb" / "mirror.json").write_text(json.dumps({"schema": 1, "troubles": troubles}))


def test_degraded_runs_are_named_with_the_way_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path, 1)
    record(tmp_path, 2, state=State.failed)
    assert main(["ls", "--root", str(tmp_path)]) == 0
    assert "W&B" not in "".join(capsys.readouterr())
    noted(
        tmp_path, {"a": "degraded: refused\x1b[31m", "b": "degraded: refused\x1b[31m", "c": "partial: away"}
    )
    for command in (["ls"], ["status", "s"]):
        assert main([*command, "--root", str(tmp_path)]) == 0
        said = "".join(capsys.readouterr())
        assert "W&B lacks 3 runs of s" in said
        assert "ablate wandb sync s" in said
        assert said.count("refused") == 1
        assert "\x1b" not in said


def test_a_damaged_note_is_no_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path, 1)
    noted(tmp_path, {})
    for text in ("", "[1]", '{"troubles": 3}', "{"):
        (tmp_path / "s" / "wandb" / "mirror.json").write_text(text)
        assert main(["ls", "--root", str(tmp_path)]) == 0
        assert "W&B" not in "".join(capsys.readouterr())
