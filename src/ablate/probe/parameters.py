"""Who owns a parameter: every module that has one says its site, its kind and its column label."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from torch import Tensor, nn

from ablate.config import Site


class ParameterKind(StrEnum):
    matrix = "matrix"
    embedding = "embedding"
    bias = "bias"
    gain = "gain"


class Part(nn.Module):
    """A module that owns parameters: one `weight` of the given kind and, if it carries one, a `bias`.

    `label` names the part in columns (`b03_up`, `head`, `embed`); `site` is where its bias belongs
    (None where no bias can be).
    """

    __call__: Callable[..., Tensor]
    weight: nn.Parameter
    bias: nn.Parameter | None

    def __init__(self, label: str, site: Site | None, kind: ParameterKind) -> None:
        super().__init__()
        self.label = label
        self.site = site
        self.kind = kind


@dataclass(frozen=True)
class ParameterFact:
    """One parameter: canonical name, kind, site (None: embeddings), column label and shape."""

    name: str
    kind: ParameterKind
    site: Site | None
    label: str
    shape: tuple[int, ...]


def owned_parameters(module: nn.Module) -> list[tuple[ParameterFact, nn.Parameter]]:
    """Every parameter below `module` once, in the order of `named_parameters`, with its fact.

    A shared parameter (tied head) belongs to the first part that holds it.
    """
    parts = dict(module.named_modules())
    found = []
    for name, parameter in module.named_parameters():
        owner, _, own = name.rpartition(".")
        part = parts[owner]
        assert isinstance(part, Part), f"{name} belongs to a module without a label"
        kind = ParameterKind.bias if own == "bias" else part.kind
        found.append((ParameterFact(name, kind, part.site, part.label, tuple(parameter.shape)), parameter))
    return found


def parameter_facts(module: nn.Module) -> tuple[ParameterFact, ...]:
    """What each parameter of `module` is, in the order of `named_parameters` (see `owned_parameters`)."""
    return tuple(fact for fact, _ in owned_parameters(module))


def gradient_of(parameter: Tensor) -> Tensor:
    """The gradient of a parameter that must have one."""
    assert parameter.grad is not None, "a parameter has no gradient: was backward called?"
    return parameter.grad
