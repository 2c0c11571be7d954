"""Every choice a configuration can make, named as in YAML."""

from enum import StrEnum


class Stack(StrEnum):
    decoder = "decoder"  # each token sees the tokens before it
    encoder = "encoder"  # each token sees all
    encoder_decoder = "encoder_decoder"  # a decoder that also reads an encoder's output


class Norm(StrEnum):
    layernorm = "layernorm"
    rmsnorm = "rmsnorm"
    none = "none"


class Placement(StrEnum):
    """Where the norm N stands around a sublayer f with input x."""

    pre = "pre"  # x + f(N(x))
    post = "post"  # N(x + f(x))
    peri = "peri"  # x + N(f(N(x)))
    sublayer = "sublayer"  # x + N(f(x))


class Activation(StrEnum):
    relu = "relu"
    gelu = "gelu"
    gelu_tanh = "gelu_tanh"
    swiglu = "swiglu"


class Position(StrEnum):
    learned = "learned"
    sinusoidal = "sinusoidal"
    rope = "rope"
    none = "none"


class Site(StrEnum):
    """A place that can carry a bias. The order is the order in which sites are printed and hashed."""

    q = "q"
    k = "k"
    v = "v"
    o = "o"
    cross_q = "cross_q"
    cross_k = "cross_k"
    cross_v = "cross_v"
    cross_o = "cross_o"
    up = "up"
    gate = "gate"
    down = "down"
    transform = "transform"
    head = "head"
    norm = "norm"
    qk_norm = "qk_norm"


class BiasInit(StrEnum):
    zeros = "zeros"
    torch = "torch"  # nn.Linear's default: uniform in ±1/sqrt(fan_in)


class Init(StrEnum):
    gpt2 = "gpt2"  # N(0, 0.02), residual outputs scaled by 1/sqrt(2 layers)
    fan_in = "fan_in"  # N(0, 1/fan_in) for matrices
    normal = "normal"  # N(0, 0.02) for all
    palm = "palm"  # N(0, 1/fan_in) for matrices, N(0, 1) for embeddings
    xavier = "xavier"  # uniform, variance 2/(fan_in + fan_out); embeddings N(0, 1/width)


class QkNormOver(StrEnum):
    """What one norm of the queries or keys spans."""

    head = "head"  # each head by itself, one gain for all heads
    all = "all"  # all heads of a token together (OLMo 2)


class Scale(StrEnum):
    """Study sizes that a preset can be shrunk to."""

    tiny = "tiny"
    small = "small"
    medium = "medium"


class Objective(StrEnum):
    """What is predicted from what."""

    next = "next"  # each token from those before it
    masked = "masked"  # hidden tokens from the whole window (BERT)
    prefix = "prefix"  # the second half of a window from its first
    span = "span"  # hidden spans from the rest of the window (T5)


class Source(StrEnum):
    stdlib = "stdlib"
    synthetic = "synthetic"
    text = "text"
    hub = "hub"


class Decay(StrEnum):
    coupled = "coupled"  # torch's AdamW: decay multiplied by the learning rate
    independent = "independent"  # decay follows the schedule only (Wortsman 2023, section 3.2.2)


class Decayed(StrEnum):
    matrices = "matrices"
    all = "all"


class ClipOver(StrEnum):
    all = "all"
    common = "common"  # the coefficient is taken from parameters that are not biases


class Schedule(StrEnum):
    cosine = "cosine"
    linear = "linear"
    constant = "constant"
    wsd = "wsd"


class Precision(StrEnum):
    fp32 = "fp32"
    bf16 = "bf16"


class Device(StrEnum):
    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class Keep(StrEnum):
    """What a finished run keeps of its checkpoints."""

    weights = "weights"
    ring = "ring"
    none = "none"


class TrackerMode(StrEnum):
    """Where the runs are mirrored to."""

    auto = "auto"  # online where a key is found, else offline
    online = "online"
    offline = "offline"
    off = "off"


class FieldClass(StrEnum):
    """What a field means for identity: only `science` enters the run id."""

    science = "science"
    observe = "observe"
    control = "control"


class OnFailure(StrEnum):
    """What a failed run means for the other runs of a sweep."""

    carry_on = "continue"
    stop = "stop"  # those at work are preempted, no other begins
