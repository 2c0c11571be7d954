"""The `ablate` command: thin commands on top of the other rooms; each imports only what it needs."""

from ablate.cli.main import main

__all__ = ["main"]
