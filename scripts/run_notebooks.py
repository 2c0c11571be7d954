"""Execute the notebooks in place, as `make notebooks` does; or into another folder.

    python scripts/run_notebooks.py [--out FOLDER] [NOTEBOOK…]

Each runs in its own folder with this Python. What says when it was run, and which version of Python ran it,
is left out, so that nothing changes where nothing has.
"""

import argparse
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent / "notebooks"
TIMEOUT_S = 1800  # of one cell: a cell may train a study
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def execute(path: Path, out: Path) -> None:
    """Run a notebook and write it to `out`. Raises CellExecutionError at the first cell that fails."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    resources = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=TIMEOUT_S, kernel_name="python3", resources=resources).execute()
    notebook.metadata.language_info = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            _tidy(output)
    nbformat.write(notebook, out)  # type: ignore[no-untyped-call]


def _tidy(output: Any) -> None:
    """Addresses of objects differ from run to run."""
    data = output.get("data", {})
    if "text/plain" in data:
        data["text/plain"] = _ADDRESS.sub("", data["text/plain"])


def main() -> None:
    """Execute what is asked for, or every notebook."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("notebooks", nargs="*", type=Path, metavar="NOTEBOOK")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write there, not in place")
    arguments = parser.parse_args()
    for path in arguments.notebooks or sorted(HERE.glob("*.ipynb")):
        target = path if arguments.out is None else arguments.out / path.name
        execute(path, target)
        print(f"{target}: {target.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
