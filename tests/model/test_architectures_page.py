"""docs/architectures.md says what the presets are."""

import importlib.util
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2]


@pytest.mark.slow  # describes every preset at every size
def test_the_page_is_what_the_script_writes_now() -> None:
    spec = importlib.util.spec_from_file_location("architectures", HOME / "scripts" / "architectures.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    written = (HOME / "docs" / "architectures.md").read_text(encoding="utf-8")
    assert script.page() == written, "python scripts/architectures.py"
