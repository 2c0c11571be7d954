"""LLaMA and those that follow it: Mistral, Qwen2, Qwen3, OLMo 2."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ablate.config import ModelConfig, Placement, QkNormOver, Site
from ablate.exchange.family import ALWAYS, UNSAID, Fact, Family, Need, Raw, link, only
from ablate.exchange.tables import (
    FILLS,
    LLAMA_LIKE,
    NO_QK_NORM,
    ROPE_TYPE,
    SILU,
    blocks,
    placed,
    rope_theta,
    sizes,
    told,
)

ATTENTION = dict.fromkeys((Site.q, Site.k, Site.v, Site.o), "attention_bias")
QKV = dict.fromkeys((Site.q, Site.k, Site.v), ALWAYS)
MLP = dict.fromkeys((Site.gate, Site.up, Site.down), "mlp_bias")
PRE = {"input_layernorm": "norm1", "post_attention_layernorm": "norm2"}
SUBLAYER = {"post_attention_layernorm": "norm1", "post_feedforward_layernorm": "norm2"}
QK_NORM = {"self_attn.q_norm": "attention.q_norm", "self_attn.k_norm": "attention.k_norm"}
MODULES = {
    **{f"self_attn.{name}_proj": f"attention.{name}" for name in "qkvo"},
    **{f"mlp.{name}_proj": f"mlp.{name}" for name in ("gate", "up", "down")},
}
DIVIDES = Need(
    "heads",
    lambda m: m.width % m.heads == 0,
    lambda m: f"a divisor of model.width = {m.width}, which its configuration asks for",
)
HEAD_DIM = sizes(head_dim="head_dim")


def _family(
    name: str,
    architecture: str,
    *,
    modules: Mapping[str, str],
    biases: Mapping[Site, str],
    needs: tuple[Need, ...],
    facts: tuple[Fact, ...],
    eps: float = 1e-6,
) -> Family:
    """One of them: what they share, and its own `modules` of a block, biases, needs and facts."""
    return Family(
        name=name,
        architecture=architecture,
        links=(
            link("model.embed_tokens", "embed"),
            *blocks("model.layers", {**MODULES, **modules}),
            link("model.norm", "final_norm"),
            link("lm_head", "head"),
        ),
        biases=biases,
        needs=(*LLAMA_LIKE, *needs),
        facts=(
            *sizes(
                hidden_size="width", num_hidden_layers="layers", intermediate_size="ffn",
                num_key_value_heads="kv_heads", max_position_embeddings="context",
            ),
            told("num_attention_heads", "heads", 32),
            told("rms_norm_eps", "eps", eps),
            told("tie_word_embeddings", "tie_embeddings", False),
            SILU,
            rope_theta(),
            ROPE_TYPE,
            *facts,
        ),
        prefix="model.",
        tied={"lm_head.weight": "model.embed_tokens.weight"},
        buffers=r"model\.(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq",
    )  # fmt: skip


def _within(theirs: Any, ours: Any, model: ModelConfig) -> bool:
    """Are two windows the same within the context? One that spans it is none."""
    reach = [model.context if window is None else window for window in (theirs, ours)]
    whole = [isinstance(window, int) and window >= model.context for window in reach]
    return bool(all(whole) or theirs == ours)


def _window(raw: Raw) -> Any:
    """The window of all blocks, None where none has one; in words where only some do."""
    window, layers = raw.get("sliding_window", 4096), raw.get("num_hidden_layers", 32) or 0
    if not raw.get("use_sliding_window", False) or window is None:
        return None
    first = raw.get("max_window_layers", 28) or 0
    if kinds := raw.get("layer_types"):
        every, some = all(kind == SLIDING for kind in kinds), SLIDING in kinds
    else:
        every, some = first <= 0, first < layers
    if every:
        return window
    return f"{window} in some blocks" if some else None


FULL, SLIDING = "full_attention", "sliding_attention"
QWEN_WINDOW = (
    Fact(("use_sliding_window",), lambda m: m.window is not None, compared=False),
    Fact(
        ("sliding_window",), lambda m: m.window, setting="window", same=_within, reads=_window,
        means=lambda window: UNSAID if isinstance(window, str) else window,
    ),
    Fact(("layer_types",), lambda m: [FULL if m.window is None else SLIDING] * m.layers, compared=False),
    Fact(("max_window_layers",), lambda m: m.layers if m.window is None else 0, compared=False),
)  # fmt: skip

LLAMA = _family(
    "llama",
    "LlamaForCausalLM",
    modules=PRE,
    biases={**ATTENTION, **MLP},
    needs=(*placed(Placement.pre), only("window", None), *NO_QK_NORM, DIVIDES),
    facts=HEAD_DIM,
)
MISTRAL = _family(
    "mistral",
    "MistralForCausalLM",
    modules=PRE,
    biases={},
    needs=(*placed(Placement.pre), *NO_QK_NORM),
    facts=(*HEAD_DIM, replace(told("sliding_window", "window", 4096), same=_within)),
)
QWEN2 = _family(
    "qwen2",
    "Qwen2ForCausalLM",
    modules=PRE,
    biases=QKV,
    needs=(*placed(Placement.pre), *NO_QK_NORM, FILLS),
    facts=QWEN_WINDOW,
)
QWEN3 = _family(
    "qwen3",
    "Qwen3ForCausalLM",
    modules={**PRE, **QK_NORM},
    biases=ATTENTION,
    needs=(*placed(Placement.pre), only("qk_norm", True), only("qk_norm_over", QkNormOver.head)),
    facts=(*HEAD_DIM, *QWEN_WINDOW),
)
OLMO2 = _family(
    "olmo2",
    "Olmo2ForCausalLM",
    modules={**SUBLAYER, **QK_NORM},
    biases=ATTENTION,
    needs=(
        *placed(Placement.sublayer),
        only("window", None),
        only("qk_norm", True),
        only("qk_norm_over", QkNormOver.all),
        FILLS,
    ),
    facts=(),
    eps=1e-5,
)
