"""The wheel, installed in an environment of its own, trains from any working directory."""

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


def run(*command: str | Path, cwd: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(
        [str(c) for c in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, REPOSITORY, cwd=folder)
    (path,) = folder.glob("*.whl")
    return path


@pytest.mark.slow
def test_wheel_ships_every_configuration_file(wheel: Path) -> None:
    shipped = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("ablate/conf/")}
    expected = {
        f"ablate/conf/{path.relative_to(REPOSITORY / 'conf')}"
        for path in (REPOSITORY / "conf").rglob("*.yaml")
    }
    assert expected
    assert shipped == expected


@pytest.mark.slow
def test_wheel_trains_from_an_unrelated_folder(wheel: Path, tmp_path: Path) -> None:
    environment, work = tmp_path / "environment", tmp_path / "elsewhere"
    work.mkdir()
    venv.create(environment, with_pip=True)
    binaries = environment / "bin"
    run(
        binaries / "python", "-m", "pip", "install", "--quiet",
        "-c", REPOSITORY / "constraints.txt", wheel, cwd=work,
    )  # fmt: skip
    run(
        binaries / "ablate", "train", "model=tiny", "data=synthetic", "optim.steps=4", "study=wheel",
        f"data.cache={tmp_path / 'cache'}", cwd=work,
    )  # fmt: skip
    (summary,) = (work / "runs" / "wheel").glob("*/summary.json")
    assert json.loads(summary.read_text())["verdict"]
