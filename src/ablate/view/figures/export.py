"""Figures as picture files, by kaleido and a Chrome: the extra `ablate-bias[figures]`."""

from collections.abc import Sequence
from pathlib import Path

from ablate.config import UserError
from ablate.view.figures.compose import composed
from ablate.view.figures.style import Plate

FORMATS = ("svg", "png", "pdf")
SCALE = 2  # pixels of a png for each of the figure's
INSTALL = "pip install 'ablate-bias[figures]'"


def export_figures(plates: Sequence[Plate], folder: Path, kind: str) -> list[Path]:
    """One picture a figure, and `captions.md`. Raises UserError where kaleido or a Chrome is missing."""
    try:
        import kaleido  # noqa: F401  only asked whether it is there: plotly uses it
    except ImportError:
        raise UserError("pictures need kaleido, which is not installed", hint=INSTALL) from None
    import plotly.io

    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{plate.name}.{kind}" for plate in plates]
    try:
        figures = [composed(plate) for plate in plates]
        plotly.io.write_images(
            figures,
            paths,
            format=kind,
            scale=SCALE if kind == "png" else 1,
            width=[figure["layout"]["width"] for figure in figures],
            height=[figure["layout"]["height"] for figure in figures],
        )
    except (RuntimeError, ValueError, OSError) as error:
        if "chrome" not in str(error).lower():
            raise
        hint = "install Chrome or Chromium, or run plotly_get_chrome; BROWSER_PATH names one elsewhere"
        raise UserError("kaleido finds no Chrome to draw with", hint=hint) from error
    captions = folder / "captions.md"
    captions.write_text("".join(map(_caption, plates)), encoding="utf-8")
    return [*paths, captions]


def _caption(plate: Plate) -> str:
    return f"**{plate.title}** (`{plate.name}`). {plate.caption}\n\n"
