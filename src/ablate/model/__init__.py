"""The decoder family: attention, MLP, norms, placements, positions, initialisation, accounting."""

from ablate.model.accounting import Description, NormFact, describe
from ablate.model.init import initialise
from ablate.model.transformer import Transformer, build, compile_blocks
from ablate.probe import ParameterFact, ParameterKind, parameter_facts

__all__ = [
    "Description",
    "NormFact",
    "ParameterFact",
    "ParameterKind",
    "Transformer",
    "build",
    "compile_blocks",
    "describe",
    "initialise",
    "parameter_facts",
]
