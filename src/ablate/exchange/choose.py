"""Which family can say a model: decided from its resolved configuration, whatever it was made from."""

from collections.abc import Sequence

from ablate.config import ModelConfig, UserError
from ablate.config.errors import shown
from ablate.exchange.bert import BERT
from ablate.exchange.family import Family, Need
from ablate.exchange.gpt import GPT2, GPT_NEOX
from ablate.exchange.llama import LLAMA, MISTRAL, OLMO2, QWEN2, QWEN3

FAMILIES = (GPT2, BERT, LLAMA, MISTRAL, QWEN2, QWEN3, OLMO2, GPT_NEOX)  # plainest first
SHOWN = 20


def family_of(model: ModelConfig, vocab: int) -> Family:
    """The family that says a model: one that adds nothing if there is one, else the plainest.

    Raises UserError, with what stands in the way of the nearest one and what would do instead.
    """
    fitting = [family for family in FAMILIES if not family.obstacles(model)]
    if fitting:
        return min(fitting, key=lambda family: sum(family.additions(model, vocab).values()) > 0)
    nearest = min(FAMILIES, key=lambda family: len(family.obstacles(model)))
    lines = [f"\n  {obstacle(model, need)}" for need in nearest.obstacles(model)]
    raise UserError(
        f"no family of Hugging Face models can say this one; the nearest is {nearest.name}, but for:"
        + "".join(lines),
        allowed=f"models that {', '.join(family.name for family in FAMILIES)} can say (docs/exchange.md)",
    )


def obstacle(model: ModelConfig, need: Need) -> str:
    """One setting that a family does not have, and what it has."""
    value = shown(getattr(model, need.setting))
    return f"model.{need.setting} = {value} (it has {need.allowed(model)})"


def listed(found: Sequence[str]) -> str:
    """Differences, a line each, the first of them where there are many."""
    more = [f"… {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return "".join(f"\n  {line}" for line in [*found[:SHOWN], *more])
