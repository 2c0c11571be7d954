"""What is measured: outputs, attention, residual stream, logits, gradients and updates, without host sync."""

from ablate.probe.board import Board, Tokens
from ablate.probe.gradients import GradientNorms, GradientProbe, UpdateProbe
from ablate.probe.parameters import ParameterFact, ParameterKind, Part, parameter_facts

__all__ = [
    "Board",
    "GradientNorms",
    "GradientProbe",
    "ParameterFact",
    "ParameterKind",
    "Part",
    "Tokens",
    "UpdateProbe",
    "parameter_facts",
]
