"""What training keeps of a batch: the tokens of an example, and the bytes of activations."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ablate.config import (
    Activation,
    Config,
    ModelConfig,
    Norm,
    Objective,
    Precision,
    Site,
    Stack,
    hidden,
)

FLOAT = 4  # bytes of a parameter, and of whatever stays fp32
_HIDDEN = {Activation.swiglu: 4, Activation.relu: 1}  # kept hidden widths; 2 for the others
_LOGITS = 3  # logits, their log-probabilities, and what a probe or a cast makes of them
_CROSS = (Site.cross_q, Site.cross_k, Site.cross_v, Site.cross_o)
_LINEARS = (Site.q, Site.k, Site.v, Site.o, *_CROSS, Site.up, Site.gate, Site.down, Site.transform)


@dataclass(frozen=True)
class Lengths:
    """Tokens of one example: those an encoder in front of a decoder reads (0: there is none), those the last
    stack reads, and those that are predicted.
    """

    source: int
    inputs: int
    predicted: int

    @classmethod
    def of(cls, config: Config) -> "Lengths":
        """Of every example of a run."""
        context = config.model.context
        gone = hidden(config.data, context)
        match config.data.objective:
            case Objective.next:
                return cls(0, context, context)
            case Objective.masked:
                return cls(0, context, gone.tokens)
            case Objective.prefix:
                return cls(context - gone.tokens, gone.tokens, gone.tokens)
            case Objective.span:
                target = gone.tokens + gone.spans
                return cls(context - gone.tokens + gone.spans, target, target)


def activation_bytes(config: Config, description: Mapping[str, Any]) -> int:
    """What one micro-batch's forward pass keeps for its backward pass, in bytes, roughly.

    Of each token, in fp32: the input of every norm (of RMSNorm twice). At the width of the compute type:
    what sublayers read; queries, keys, values and attention's output; two hidden widths of the MLP (relu
    one, swiglu four). Three of each logit. Beside the tokens: the masks of windows, and with bf16 a copy of
    every linear's weights. Whatever is small beside these is left out.
    """
    m, length = config.model, Lengths.of(config)
    item = FLOAT if config.optim.precision is Precision.fp32 else 2
    example = sum(_norm_bytes(m, length, str(norm["label"])) for norm in description["norms"])
    example += item * m.layers * _block_channels(m, item) * (length.source + length.inputs)
    if m.stack is Stack.encoder_decoder:
        read = (m.width + 2 * m.heads * m.head_dim) * length.inputs
        example += item * m.layers * (read + 2 * m.kv_heads * m.head_dim * length.source)
    example += (item * m.width + _LOGITS * FLOAT * config.data.vocab_size) * length.predicted
    once = item * sum(_mask_values(m, tokens) for tokens in (length.source, length.inputs))
    if item != FLOAT:
        weights = sum(description["by_site"].get(site, 0) for site in _LINEARS)
        once += item * (weights + m.width * config.data.vocab_size)
    return example * (config.optim.batch // config.optim.accumulation) + once


def _norm_bytes(m: ModelConfig, length: Lengths, label: str) -> int:
    """Of one norm and example."""
    channels = m.width
    if label.endswith("q_norm"):
        channels = m.heads * m.head_dim
    elif label.endswith("k_norm"):
        channels = m.kv_heads * m.head_dim
    kept = 2 if m.norm is not Norm.layernorm else 1
    return FLOAT * kept * channels * _tokens_through(label, length)


def _tokens_through(label: str, length: Lengths) -> int:
    """Tokens of an example that pass the part of this label."""
    if label == "embed_norm":
        return length.source + length.inputs
    if label == "final_norm" or label.startswith("transform"):
        return length.predicted
    encoder = label == "encoder_norm" or (label[0] == "e" and label[1:3].isdigit())
    return length.source if encoder or label.endswith("cross_k_norm") else length.inputs


def _block_channels(m: ModelConfig, item: int) -> int:
    """Kept of each token by one block's attention and MLP."""
    one_read = m.parallel and m.shared_norm and item == FLOAT  # a cast makes a copy for each
    reads = m.width * (1 if one_read else 2)
    return reads + 2 * (m.heads + m.kv_heads) * m.head_dim + _HIDDEN.get(m.activation, 2) * m.ffn


def _mask_values(m: ModelConfig, tokens: int) -> int:
    """Attention with a window is given a matrix for every block that has one."""
    if m.window is None or tokens <= m.window:
        return 0
    return m.layers // m.window_every * tokens * tokens
