"""Ablation harness: which transformer design choices train stably, with evidence.

`ablate.load_study(path)` reads a recorded study as tidy tables (docs/api.md).
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ablate.api import RecordedRun as RecordedRun
    from ablate.api import Study as Study
    from ablate.api import load_study as load_study

__version__ = "0.1.0"
__all__ = ["RecordedRun", "Study", "__version__", "load_study"]


def __getattr__(name: str) -> object:
    """The Python interface, loaded when first asked for: `import ablate` itself stays light."""
    if name in __all__:
        from importlib import import_module

        return getattr(import_module("ablate.api"), name)
    raise AttributeError(f"module 'ablate' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
