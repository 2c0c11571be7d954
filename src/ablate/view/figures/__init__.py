"""Every figure of a study's page, as plain plotly figures (dictionaries that plotly has checked)."""

from ablate.view.analysis import Analysis
from ablate.view.figures.bias import bias_plate, biased_arms
from ablate.view.figures.export import FORMATS, export_figures
from ablate.view.figures.forest import edge_plate, effect_plate
from ablate.view.figures.maps import growth_maps, map_figures, map_plate
from ablate.view.figures.outputs import course_plate, growth_plate
from ablate.view.figures.rates import rate_plate, verdict_glyph, verdict_key
from ablate.view.figures.style import Figure, Key, Panel, Plate
from ablate.view.results import Results

__all__ = [
    "FORMATS",
    "Figure",
    "Key",
    "Panel",
    "Plate",
    "bias_plate",
    "biased_arms",
    "course_plate",
    "edge_plate",
    "effect_plate",
    "export_figures",
    "growth_maps",
    "growth_plate",
    "map_figures",
    "map_plate",
    "plates",
    "rate_plate",
    "verdict_glyph",
    "verdict_key",
]


def plates(results: Results, analysis: Analysis) -> list[Plate]:
    """Every figure that this study has, as still pictures, in the order of the page."""
    found = [
        rate_plate(results) if results.arms else None,
        edge_plate(analysis, results),
        effect_plate(analysis),
        growth_plate(results),
        course_plate(results),
        map_plate(*growth_maps(results)),
        bias_plate(results),
    ]
    return [plate for plate in found if plate is not None]
