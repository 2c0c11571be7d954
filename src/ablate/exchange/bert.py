"""BERT with the head of its masked language model (BertForMaskedLM)."""

from collections.abc import Sequence

from ablate.config import Activation, ModelConfig, Norm, Placement, Site, Stack
from ablate.exchange.family import ALWAYS, Fact, Family, as_it_is, link, only
from ablate.exchange.tables import (
    FILLS,
    GATELESS,
    LEARNED,
    NO_QK_NORM,
    NO_WINDOW,
    NOT_GROUPED,
    SERIAL,
    activation,
    blocks,
    fixed,
    placed,
    sizes,
    told,
    written,
)


def _notes(model: ModelConfig) -> Sequence[str]:
    if model.segments < 2:
        return ()
    parts = f"{model.segments} equal parts of a window, in order"
    return (
        f"token_type_ids: it was trained with 0 … {model.segments - 1} for the {parts}; transformers gives 0",
    )


BERT = Family(
    name="bert",
    architecture="BertForMaskedLM",
    links=(
        link("bert.embeddings.word_embeddings", "embed"),
        link("bert.embeddings.position_embeddings", "position"),
        link("bert.embeddings.token_type_embeddings", "segment"),
        link("bert.embeddings.LayerNorm", "embed_norm"),
        *blocks(
            "bert.encoder.layer",
            {
                "attention.self.query": "attention.q",
                "attention.self.key": "attention.k",
                "attention.self.value": "attention.v",
                "attention.output.dense": "attention.o",
                "attention.output.LayerNorm": "norm1",
                "intermediate.dense": "mlp.up",
                "output.dense": "mlp.down",
                "output.LayerNorm": "norm2",
            },
        ),
        link("cls.predictions.transform.dense", "transform"),
        link("cls.predictions.transform.LayerNorm", "transform_norm"),
        link("cls.predictions", "head", parameters=("bias",)),
    ),
    biases=dict.fromkeys(
        (Site.q, Site.k, Site.v, Site.o, Site.up, Site.down, Site.transform, Site.head, Site.norm), ALWAYS
    ),
    needs=(
        only("stack", Stack.encoder),
        only("norm", Norm.layernorm),
        *placed(Placement.post),
        *SERIAL,
        *GATELESS,
        *LEARNED,
        *NO_WINDOW,
        *NO_QK_NORM,
        FILLS,
        NOT_GROUPED,
        only("tie_embeddings", True),
        only("embed_norm", True),
        only("final_norm", False),
        only("head_transform", True),
        only("scale_logits", False),
    ),
    facts=(
        *sizes(
            hidden_size="width", num_hidden_layers="layers", intermediate_size="ffn",
            max_position_embeddings="context",
        ),
        Fact(
            ("type_vocab_size",), lambda m: max(1, m.segments), 2, "segments", compared=False, means=as_it_is
        ),
        told("num_attention_heads", "heads", 12),
        told("layer_norm_eps", "eps", 1e-12),
        activation(
            "hidden_act",
            {Activation.gelu: "gelu", Activation.gelu_tanh: "gelu_new", Activation.relu: "relu"},
            "gelu",
        ),
        fixed("tie_word_embeddings", True),
        fixed("is_decoder", False),
        fixed("add_cross_attention", False),
        fixed("position_embedding_type", "absolute"),
        written("pad_token_id", None),
        *(written(key, 0.0) for key in ("hidden_dropout_prob", "attention_probs_dropout_prob")),
    ),
    prefix="bert.",
    tied={
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    buffers=r"bert\.embeddings\.(position_ids|token_type_ids)",
    others=r"(bert\.pooler|cls\.seq_relationship)\..*",
    respelt={"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"},
    notes=_notes,
)  # fmt: skip
