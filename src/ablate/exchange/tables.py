"""What the tables of families share: needs of all decoders, facts under their usual keys, activations."""

from collections.abc import Mapping
from typing import Any

from ablate.config import Activation, ModelConfig, Norm, Placement, Position, QkNormOver, Stack
from ablate.exchange.family import UNSAID, Fact, Link, Need, as_it_is, link, only

GELU_TANH = ("gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_python_tanh", "gelu_accurate")
MEANS: Mapping[str, Activation] = {
    **dict.fromkeys(GELU_TANH, Activation.gelu_tanh),
    **dict.fromkeys(("gelu", "gelu_python"), Activation.gelu),
    **dict.fromkeys(("silu", "swish"), Activation.swiglu),
    "relu": Activation.relu,
}

FILLS = Need(
    "head_dim",
    lambda m: m.heads * m.head_dim == m.width,
    lambda m: f"model.width / model.heads = {m.width / m.heads:g}",
    (None,),
)
NOT_GROUPED = Need("kv_heads", lambda m: m.kv_heads == m.heads, lambda m: f"model.heads = {m.heads}", (None,))
NO_WINDOW = (only("window", None), only("window_every", 1))
NO_QK_NORM = (only("qk_norm", False), only("qk_norm_over", QkNormOver.head))
LEARNED = (only("position", Position.learned), only("rope_share", 1.0))
ROPE = (only("position", Position.rope),)
WHOLE_ROPE = (*ROPE, only("rope_share", 1.0))
GATELESS = (only("activation", Activation.gelu_tanh, Activation.gelu, Activation.relu),)
DECODER = (
    only("stack", Stack.decoder),
    only("segments", 0),
    only("embed_norm", False),
    only("final_norm", True),
    only("head_transform", False),
    only("scale_logits", False),
)
SERIAL = (only("parallel", False), only("shared_norm", True))
LLAMA_LIKE = (
    *DECODER,
    *SERIAL,
    *WHOLE_ROPE,
    only("norm", Norm.rmsnorm),
    only("activation", Activation.swiglu),
    only("window_every", 1),
)


def told(
    key: str, setting: str, absent: Any = None, compared: bool = True, also: tuple[str, ...] = ()
) -> Fact:
    """A fact that is a setting's value as it stands; `also`: other keys of the same meaning."""
    return Fact((key, *also), lambda m: getattr(m, setting), absent, setting, compared, means=as_it_is)


def sizes(**settings: str) -> tuple[Fact, ...]:
    """Keys for settings that the shapes of tensors show, or that nothing depends on."""
    return tuple(told(key, setting, compared=False) for key, setting in settings.items())


def fixed(key: str, value: Any) -> Fact:
    """What is so in every model of ours, and in theirs where nothing is said."""
    return Fact((key,), lambda _: value, value)


def written(key: str, value: Any) -> Fact:
    """What is only written: it tells nothing of the model itself."""
    return Fact((key,), lambda _: value, compared=False)


def activation(key: str, words: Mapping[Activation, str], absent: str) -> Fact:
    """The activation; formulas that are equal but for rounding count as equal."""

    def same(theirs: Any, ours: Any, _: ModelConfig) -> bool:
        return bool(MEANS.get(theirs, theirs) == MEANS.get(ours, ours))

    def says(model: ModelConfig) -> str:
        return words.get(model.activation, str(model.activation))

    def means(theirs: Any) -> Any:
        return MEANS.get(theirs, UNSAID)

    return Fact((key,), says, absent, "activation", same=same, means=means)


def rope_theta(*also: str) -> Fact:
    """The base of the rotary frequencies, where transformers 5 has it, and where earlier versions look."""
    return told("rope_parameters.rope_theta", "rope_theta", 10000.0, also=also or ("rope_theta",))


ROPE_TYPE = Fact(
    ("rope_parameters.rope_type",),
    lambda _: "default",
    "default",
    read_keys=("rope_parameters.type", "rope_scaling.rope_type", "rope_scaling.type"),
)
SILU = activation("hidden_act", {Activation.swiglu: "silu"}, "silu")


def placed(placement: Placement) -> tuple[Need, ...]:
    """Where the norms stand."""
    return (only("placement", placement),)


def blocks(prefix: str, names: Mapping[str, str]) -> tuple[Link, ...]:
    """Links of one module each inside the blocks: ours by theirs."""
    return tuple(link(f"{prefix}.{{}}.{theirs}", f"blocks.{{}}.{ours}") for theirs, ours in names.items())
