"""The notebooks as committed, and executed anew on a tiny study."""

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="pip install -e '.[notebooks]'")

HOME = Path(__file__).parents[2]
NOTEBOOKS = sorted((HOME / "notebooks").glob("*.ipynb"))
LARGEST = 500_000  # bytes
TINY = (
    "model=tiny model.context=16 data=synthetic data.tokens=4000 data.vocab_size=32 data.val_tokens=256 "
    "optim.batch=4 optim.steps=24 seed=0 "
)
SWEEPS = {
    "compare_arms": TINY + "model.bias=none,all optim.lr=1e-2,1",
    "inside_a_divergence": TINY + "model.bias=all optim.lr=1e-2,1 run.keep=ring run.checkpoint_every=6",
}


def code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in code(notebook) for output in cell.outputs]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_with_outputs_and_small(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    assert path.stat().st_size < LARGEST
    assert all(cell.execution_count for cell in code(notebook))
    assert [o for o in outputs(notebook) if o.output_type == "error"] == []
    assert sum("image/png" in o.get("data", {}) for o in outputs(notebook)) >= 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_uses_the_public_interface_alone(path: Path) -> None:
    for cell in code(nbformat.read(path, as_version=4)):
        for node in ast.walk(ast.parse(cell.source)):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert [n for n in names if n.startswith("ablate") and n != "ablate"] == []


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_to_its_end_on_a_tiny_study(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("nbclient")
    more = {"NOTEBOOK_ROOT": str(tmp_path / "runs"), "NOTEBOOK_SWEEP": SWEEPS[path.stem]}
    script = HOME / "scripts" / "run_notebooks.py"
    for _ in range(2):  # the second time on runs that are there
        done = subprocess.run(
            [sys.executable, script, "--out", tmp_path, path],
            env={**os.environ, **more, "PYTHONPATH": str(HOME / "src")},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        made = nbformat.read(tmp_path / path.name, as_version=4)
        assert all(cell.execution_count for cell in code(made))
        assert sum("image/png" in o.get("data", {}) for o in outputs(made)) >= 3
    assert len(list((tmp_path / "runs" / path.stem).glob("*-*"))) >= 2


@pytest.mark.slow
def test_a_cell_that_fails_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("nbclient")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 / 0")])
    nbformat.write(notebook, tmp_path / "bad.ipynb")
    script = HOME / "scripts" / "run_notebooks.py"
    done = subprocess.run([sys.executable, script, tmp_path / "bad.ipynb"], capture_output=True, text=True)
    assert done.returncode != 0
    assert "ZeroDivisionError" in done.stderr
