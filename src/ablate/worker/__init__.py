"""The process that carries out frozen run folders: `python -m ablate.worker RUN_DIR…`."""

from ablate.worker.main import main

__all__ = ["main"]
