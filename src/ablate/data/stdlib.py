"""The source text of the running Python's standard library: real text that every machine has."""

import os
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from ablate.config import DataConfig, UserError
from ablate.data.corpus import Texts
from ablate.data.files import of_files

# Tests hold undecodable files on purpose; packages and build settings differ between machines.
LEFT_OUT = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"}
BUILD_FOLDERS, BUILD_FILES = "config-", ("_sysconfigdata", "sitecustomize", "usercustomize")


def stdlib(data: DataConfig) -> Texts:
    """Every .py file of the standard library without its tests; one file is one document."""
    root = Path(sysconfig.get_path("stdlib"))
    files = sorted(_sources(root))
    if not files:
        raise UserError(
            f"this Python has no library sources in {root}",
            hint="data=synthetic, or your own files: data=text data.paths='[notes/**/*.md]'",
        )
    return of_files(files, data)


def _sources(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in LEFT_OUT and not name.startswith(BUILD_FOLDERS)]
        for name in names:
            if name.endswith(".py") and not name.startswith(BUILD_FILES):
                yield Path(folder, name)
