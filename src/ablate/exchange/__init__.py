"""Models between this project and Hugging Face's: their names, layouts and configurations, both ways.

A user's guide stands in docs/exchange.md.
"""

from ablate.exchange.choose import FAMILIES, family_of
from ablate.exchange.family import Family
from ablate.exchange.layout import Array, Tensor
from ablate.exchange.load import load_weights
from ablate.exchange.match import check_folder
from ablate.exchange.save import Exported, Words, check_parameters, check_target, save_folder

__all__ = [
    "FAMILIES",
    "Array",
    "Exported",
    "Family",
    "Tensor",
    "Words",
    "check_folder",
    "check_parameters",
    "check_target",
    "family_of",
    "load_weights",
    "save_folder",
]
