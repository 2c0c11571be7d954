"""The section `model`: one transformer, from its stack to its initialisation."""

from dataclasses import dataclass

from ablate.config.enums import (
    Activation,
    BiasInit,
    Init,
    Norm,
    Placement,
    Position,
    QkNormOver,
    Scale,
    Stack,
)
from ablate.config.settings import control, science


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    preset: str | None = control(
        None, "the architecture that this model was made from, as its file in conf/model calls it"
    )
    scale: Scale | None = control(
        None,
        "shrink the model that the files of conf/ say to a study size, its character kept (null: as it is)",
        told=True,
    )
    stack: Stack = science(Stack.decoder, "the stack of blocks")
    layers: int = science(4, "number of blocks (encoder_decoder: on each side)", ge=1, le=10_000)
    width: int = science(64, "residual stream width", ge=1, le=1_000_000)
    heads: int = science(4, "query heads", ge=1, le=100_000)
    kv_heads: int = science(None, "key and value heads (null: as many as heads)", ge=1, derived=True)
    head_dim: int = science(None, "width of one head (null: width / heads)", ge=1, derived=True)
    ffn: int = science(
        None,
        "hidden width of the MLP (null: 4 width; swiglu: 8/3 width, to a multiple of 8)",
        ge=1,
        derived=True,
    )
    context: int = science(64, "tokens in one training window", ge=2, le=10_000_000)
    bias: tuple[str, ...] = science(
        ("all",),
        "sites with a bias: own (what conf/ says for the preset), none, linear (all linears but the head), "
        "norm (the β of norms), all (linear and norm: head and qk_norm come by their own names alone), qkv, "
        "ffn, or a list of words and sites",
        words=True,
    )
    bias_init: BiasInit = science(BiasInit.zeros, "how linear biases start")
    norm: Norm = science(Norm.layernorm, "kind of norm")
    eps: float = science(1e-5, "epsilon inside every norm", gt=0, lt=1)
    placement: Placement = science(Placement.pre, "where the norm stands around a sublayer")
    parallel: bool = science(False, "attention and MLP side by side in one residual step (PaLM)")
    shared_norm: bool = science(
        True, "parallel: attention and MLP read one norm (PaLM), or each its own (GPT-NeoX)", neutral=True
    )
    activation: Activation = science(Activation.gelu, "activation of the MLP")
    position: Position = science(Position.learned, "how positions are told apart")
    rope_theta: float = science(10000.0, "base of the rotary frequencies", gt=0)
    rope_share: float = science(
        1.0, "share of a head's channels that rope turns, the first ones (GPT-NeoX)", gt=0, le=1, neutral=1.0
    )
    segments: int = science(
        0,
        "encoder: segment embeddings for so many equal parts of a window (BERT: 2)",
        ge=0,
        neutral=0,
    )
    qk_norm: bool = science(False, "normalise queries and keys")
    qk_norm_over: QkNormOver = science(
        QkNormOver.head, "what a norm of queries or keys spans", neutral=QkNormOver.head
    )
    window: int | None = science(None, "sliding attention window in tokens (null: whole context)", ge=1)
    window_every: int = science(
        1, "the window holds in every n-th block, from the n-th on (GPT-3: 2)", ge=1, neutral=1
    )
    tie_embeddings: bool = science(True, "the head shares the embedding matrix")
    embed_norm: bool = science(False, "a norm right after the embedding")
    final_norm: bool = science(
        None, "a norm before the head (null: on, but off for post and without a norm)", derived=True
    )
    head_transform: bool = science(
        False, "a linear, the activation and a norm before the head (BERT)", neutral=False
    )
    scale_logits: bool = science(False, "logits divided by √width (PaLM)", neutral=False)
    init: Init = science(Init.gpt2, "initialisation of matrices")
    vocab: int | None = control(
        None, "vocabulary of the published model, the default of data.vocab_size (null: 512)", ge=2
    )
    weights: str | None = control(
        None,
        "folder of a Hugging Face model to start from (null: by init and seed); identified by content",
        content=True,
    )
    weights_sha256: str | None = science(None, "digest of the weights started from (filled in)", neutral=None)
