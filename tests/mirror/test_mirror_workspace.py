"""The saved workspace: every panel names what the mirror sends, and saving renews one view."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.mirror.backend.server import Backend
from tests.mirror.mirror_studies import Made, study

from ablate.mirror.sync import jobs
from ablate.mirror.workspace import panel_spec

pytestmark = pytest.mark.wandb


def workspace(root: Path, *words: str, first: str = "") -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, which begins with a line of the test's."""
    script = f"import sys; {first}\nfrom ablate.cli import main\nsys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", script, "wandb", "workspace", "s", "--root", str(root), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL)


def named(panel: dict[str, Any]) -> list[str]:
    """Every value that a panel of the specification asks for."""
    y = panel.get("y", [])
    found = [*(y if isinstance(y, list) else [y]), *filter(None, [panel.get("x"), panel.get("of")])]
    return [*found, *(name for name in panel.get("columns", []) if name != "axes")]


def test_every_panel_shows_something_that_is_sent(tmp_path: Path) -> None:
    """In a study with a diverged run: only such a run has a step at which it diverged."""
    runs = [*study(tmp_path), Made.queued(tmp_path, 99, lr=1.0).begin().write(12, bad=float("nan")).end()]
    assert len(runs) == 5
    found = jobs(tmp_path, "s")
    columns = {key for job in found for row in job.rows for key in row}
    config = {f"config:{key}" for job in found for key in job.facts.config}
    summary = {f"summary:{key}" for job in found for key in job.summary} | {
        f"summary:{key}" for key in columns
    }
    known = columns | config | summary | {key.removeprefix("summary:") for key in summary}
    spec = panel_spec()
    panels = [panel for section in spec["sections"] for panel in section["panels"]]
    asked = [name for panel in panels for name in named(panel)] + spec["columns"]
    assert {name for name in asked if name not in known} == set()
    growing = [panel["regex"] for panel in panels if panel.get("regex", "").startswith("^out/")]
    linears = {name for name in columns if re.fullmatch(r"out/b\d+_\w+", name)}
    assert linears
    assert {name for name in linears if any(re.search(text, name) for text in growing)} == linears


def test_layers_of_every_stack_have_their_panels() -> None:
    regexes = [p["regex"] for section in panel_spec()["sections"] for p in section["panels"] if "regex" in p]
    sides = ["b03_", "b03_cross_", "e03_"]
    linears = [f"out/{side}{site}" for side in sides for site in "qkvo"]
    linears += [f"out/{block}_{site}" for block in ("b03", "e03") for site in ("up", "gate", "down")]
    for name in [*linears, *(f"attn/{side}max_logit" for side in sides), "grad/e03_o", "grad/b03_cross_o"]:
        assert sum(bool(re.search(text, name)) for text in regexes) == 1, name


def test_json_needs_no_key_and_no_network(no_account: Path, tmp_path: Path) -> None:
    study(tmp_path)
    target = tmp_path / "workspace.json"
    done = workspace(tmp_path, "--json", str(target))
    assert done.returncode == 0, done.stderr
    view = json.loads(target.read_text())
    sections = view["spec"]["section"]["panelBankConfig"]["sections"]
    assert [len(part["panels"]) for part in sections] == [len(p["panels"]) for p in panel_spec()["sections"]]
    (parallel,) = [
        p for part in sections for p in part["panels"] if p["viewType"] == "Parallel Coordinates Plot"
    ]
    accessors = [column["accessor"] for column in parallel["config"]["columns"]]
    assert {"config:axis_bias.value", "config:axis_lr.value", "config:axis_seed.value"} <= set(accessors)


def test_it_is_saved_once_and_renewed(backend: Backend, tmp_path: Path) -> None:
    study(tmp_path)
    done = workspace(tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"saved: {backend.url}/tester/s?nw=" in done.stdout
    assert workspace(tmp_path).stdout == done.stdout
    first, second = backend.store.views
    assert (first["entityName"], first["projectName"], first["displayName"]) == ("tester", "s", "ablate: s")
    assert not first.get("id")
    assert second["id"]
    assert json.loads(first["spec"])["section"]["panelBankConfig"]["sections"]
    assert not backend.store.unknown


def test_without_the_extra_it_says_what_to_install(no_account: Path, tmp_path: Path) -> None:
    study(tmp_path)
    done = workspace(tmp_path, first="sys.modules['wandb_workspaces'] = None")
    assert done.returncode == 2
    assert "ablate-bias[workspaces]" in done.stderr


@pytest.mark.slow
def test_what_the_service_refuses_is_told(backend: Backend, tmp_path: Path) -> None:
    study(tmp_path)
    backend.fail("UpsertView2", code=403)
    done = workspace(tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("not saved: ")
