"""What an objective hides of a window, in whole tokens, and which tokens it adds to the vocabulary."""

from dataclasses import dataclass

from ablate.config.enums import Objective
from ablate.config.schema import DataConfig

SMALLEST_BPE = 257  # 256 bytes and the end of a text


@dataclass(frozen=True)
class Hidden:
    """So many `tokens` of every window, in so many `spans` with others between (0: each drawn by itself)."""

    tokens: int
    spans: int


def hidden(data: DataConfig, context: int) -> Hidden:
    """The same for every window of `context` tokens.

    masked: max(1, round(mask_rate · context)) tokens, drawn one by one (Devlin et al. 2018, section 3.1).
    span: round(mask_rate · context) tokens in round(tokens / mask_span) spans (Raffel et al. 2020, section
    3.1.4). prefix: the second half, the longer one.
    """
    share = round(data.mask_rate * context)
    match data.objective:
        case Objective.next:
            return Hidden(0, 0)
        case Objective.masked:
            return Hidden(max(1, share), 0)
        case Objective.prefix:
            return Hidden(context - context // 2, 1)
        case Objective.span:
            return Hidden(share, round(share / data.mask_span))


def hides_well(data: DataConfig, context: int) -> bool:
    """Is something hidden of every window (with objective span, in spans), and something left to read?"""
    some = hidden(data, context)
    hides = data.objective is not Objective.span or (some.tokens > 0 and some.spans > 0)
    return hides and context - some.tokens >= max(1, some.spans)


def reserved_tokens(data: DataConfig, context: int) -> tuple[str, ...]:
    """The names of the tokens that the objective adds, the last ids of `data.vocab_size` in this order."""
    match data.objective:
        case Objective.next:
            return ()
        case Objective.masked:
            return ("<mask>",)
        case Objective.prefix:
            return ("<begin>",)
        case Objective.span:
            return ("<begin>", *(f"<hidden_{number}>" for number in range(hidden(data, context).spans)))
