"""GPT-2 (Conv1D: matrices transposed, q k v side by side) and GPT-NeoX (q k v head by head)."""

from ablate.config import Activation, Norm, Placement, Site
from ablate.exchange.family import ALWAYS, Family, Need, link, only
from ablate.exchange.tables import (
    DECODER,
    FILLS,
    GATELESS,
    LEARNED,
    NO_QK_NORM,
    NO_WINDOW,
    NOT_GROUPED,
    ROPE,
    ROPE_TYPE,
    SERIAL,
    activation,
    blocks,
    fixed,
    placed,
    rope_theta,
    sizes,
    told,
    written,
)

QKV = tuple(f"blocks.{{}}.attention.{name}" for name in "qkv")
OWN_NORMS = Need(
    "shared_norm",
    lambda m: not (m.parallel and m.shared_norm),
    lambda _: "false with model.parallel=true",
    (False,),
)
MLP = (Site.up, Site.down)
ATTENTION = (Site.q, Site.k, Site.v, Site.o)

GPT2 = Family(
    name="gpt2",
    architecture="GPT2LMHeadModel",
    links=(
        link("transformer.wte", "embed"),
        link("transformer.wpe", "position"),
        *blocks("transformer.h", {"ln_1": "norm1", "ln_2": "norm2"}),
        link("transformer.h.{}.attn.c_attn", *QKV, transposed=True),
        link("transformer.h.{}.attn.c_proj", "blocks.{}.attention.o", transposed=True),
        link("transformer.h.{}.mlp.c_fc", "blocks.{}.mlp.up", transposed=True),
        link("transformer.h.{}.mlp.c_proj", "blocks.{}.mlp.down", transposed=True),
        link("transformer.ln_f", "final_norm"),
        link("lm_head", "head"),
    ),
    biases=dict.fromkeys((*ATTENTION, *MLP, Site.norm), ALWAYS),
    needs=(
        *DECODER,
        *SERIAL,
        only("norm", Norm.layernorm),
        *placed(Placement.pre),
        *GATELESS,
        *LEARNED,
        *NO_WINDOW,
        *NO_QK_NORM,
        FILLS,
        NOT_GROUPED,
    ),
    facts=(
        *sizes(n_positions="context", n_embd="width", n_layer="layers", n_inner="ffn"),
        told("n_head", "heads", 12),
        told("layer_norm_epsilon", "eps", 1e-5),
        activation(
            "activation_function",
            {Activation.gelu_tanh: "gelu_new", Activation.gelu: "gelu", Activation.relu: "relu"},
            "gelu_new",
        ),
        told("tie_word_embeddings", "tie_embeddings", True),
        fixed("scale_attn_weights", True),
        fixed("scale_attn_by_inverse_layer_idx", False),
        fixed("add_cross_attention", False),
        *(written(key, 0.0) for key in ("resid_pdrop", "embd_pdrop", "attn_pdrop")),
    ),
    prefix="transformer.",
    tied={"lm_head.weight": "transformer.wte.weight"},
    buffers=r"transformer\.h\.\d+\.attn\.(bias|masked_bias)",
)

GPT_NEOX = Family(
    name="gpt_neox",
    architecture="GPTNeoXForCausalLM",
    links=(
        link("gpt_neox.embed_in", "embed"),
        *blocks(
            "gpt_neox.layers",
            {
                "input_layernorm": "norm1",
                "post_attention_layernorm": "norm2",
                "attention.dense": "attention.o",
                "mlp.dense_h_to_4h": "mlp.up",
                "mlp.dense_4h_to_h": "mlp.down",
            },
        ),
        link("gpt_neox.layers.{}.attention.query_key_value", *QKV, by_head=True),
        link("gpt_neox.final_layer_norm", "final_norm"),
        link("embed_out", "head"),
    ),
    biases={
        **dict.fromkeys(ATTENTION, "attention_bias"),
        **dict.fromkeys((*MLP, Site.norm), ALWAYS),
    },
    needs=(
        *DECODER,
        only("norm", Norm.layernorm),
        *placed(Placement.pre),
        OWN_NORMS,
        *GATELESS,
        *ROPE,
        *NO_WINDOW,
        *NO_QK_NORM,
        FILLS,
        NOT_GROUPED,
    ),
    facts=(
        *sizes(
            hidden_size="width", num_hidden_layers="layers", intermediate_size="ffn",
            max_position_embeddings="context",
        ),
        told("num_attention_heads", "heads", 64),
        told("layer_norm_eps", "eps", 1e-5),
        activation(
            "hidden_act",
            {Activation.gelu_tanh: "gelu_fast", Activation.gelu: "gelu", Activation.relu: "relu"},
            "gelu",
        ),
        told("tie_word_embeddings", "tie_embeddings", False),
        told("use_parallel_residual", "parallel", True),
        rope_theta("rotary_emb_base"),
        told("rope_parameters.partial_rotary_factor", "rope_share", 0.25, also=("rotary_pct",)),
        ROPE_TYPE,
        *(written(key, 0.0) for key in ("attention_dropout", "hidden_dropout")),
    ),
    prefix="gpt_neox.",
    tied={"embed_out.weight": "gpt_neox.embed_in.weight"},
    buffers=r"gpt_neox\.layers\.\d+\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)",
    respelt={"lm_head.": "embed_out."},  # what the class calls it; what it saves does not
)  # fmt: skip
