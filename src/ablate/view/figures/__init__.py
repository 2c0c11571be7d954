"""Every figure of a study's page, as plain plotly figures (dictionaries that plotly has checked)."""

from dataclasses import replace

from ablate.view.analysis import Analysis
from ablate.view.figures.bias import bias_plate, biased_arms
from ablate.view.figures.compose import composed
from ablate.view.figures.edges import edge_plate
from ablate.view.figures.export import FORMATS, export_figures
from ablate.view.figures.forest import effect_plate, within_plate
from ablate.view.figures.maps import growth_maps, map_figures, map_plate
from ablate.view.figures.outputs import course_plate, growth_plate
from ablate.view.figures.rates import rate_plate, verdict_glyph, verdict_key
from ablate.view.figures.style import Figure, Key, Panel, Plate
from ablate.view.results import Results
from ablate.view.text import clean

__all__ = [
    "FORMATS",
    "Figure",
    "Key",
    "Panel",
    "Plate",
    "bias_plate",
    "biased_arms",
    "composed",
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
    "within_plate",
]


def plates(results: Results, analysis: Analysis) -> list[Plate]:
    """Every figure that this study has, as still pictures, in the order of the page."""
    course, bias = course_plate(results), bias_plate(results)
    found = [
        within_plate(analysis),
        rate_plate(results) if results.arms else None,
        edge_plate(analysis, results),
        effect_plate(analysis),
        growth_plate(results),
        None if course is None else _of_arm(course, results, 0),
        map_plate(*growth_maps(results)),
        None if bias is None else _of_arm(bias, results, biased_arms(results)[0]),
    ]
    return [plate for plate in found if plate is not None]


def _of_arm(plate: Plate, results: Results, place: int) -> Plate:
    """A plate whose arm is chosen on the page, named for the one that a still picture shows."""
    return replace(plate, title=f"{plate.title}: {clean(results.arms[place].title)}")
