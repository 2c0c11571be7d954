"""What a family of Hugging Face models is, declared: its tensors, its config.json, and what it can say."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from ablate.config import ModelConfig
from ablate.config.enums import Site
from ablate.config.errors import shown
from ablate.exchange.layout import Part, Tensor
from ablate.exchange.names import has, shape_of, site_of, turned_channels

ALWAYS = "always"
UNSAID = object()  # in place of a setting's value: no value says it
Raw = Mapping[str, Any]


@dataclass(frozen=True)
class Link:
    """One of their modules and ours in it; `{}` stands for the number of a block.

    `parameters`: those that it links, where they are not a weight and the bias that its site may have.
    Several of ours lie one after the other, or with `by_head` interleaved head by head.
    """

    theirs: str
    ours: tuple[str, ...]
    parameters: tuple[str, ...] = ("weight", "bias")
    transposed: bool = False
    by_head: bool = False


def link(theirs: str, *ours: str, **rest: Any) -> Link:
    """A link, with our names as they come."""
    return Link(theirs, ours, **rest)


@dataclass(frozen=True)
class Need:
    """What a setting must be; `allowed` says it in words, `values` where there are so few."""

    setting: str
    holds: Callable[[ModelConfig], bool]
    allowed: Callable[[ModelConfig], str]
    values: tuple[Any, ...] = ()


def only(setting: str, *values: Any) -> Need:
    """A setting that has one of these values."""
    words = " or ".join(map(shown, values))
    return Need(setting, lambda model: getattr(model, setting) in values, lambda _: words, values)


def equal(theirs: Any, ours: Any, _: ModelConfig) -> bool:
    """Are two values of a fact the same?"""
    return bool(theirs == ours)


def as_it_is(value: Any) -> Any:
    """The setting's value is the fact's."""
    return value


@dataclass(frozen=True)
class Fact:
    """A fact of config.json.

    `keys`: dotted paths, all written; the first that is there is read, also of `read_keys`. `says`: the value
    of a model. `absent`: what transformers takes where no key is there, a value or a function of the rest.
    `setting`: the model's setting that it tells ("": none, it is a fixed fact of our models). `compared`: a
    folder with another value is another model; not so where the shapes of tensors show it, or nothing depends
    on it here. `same`: are two values the same model? `reads`: the value, where it takes more than one key.
    `means`: the setting's value, from the fact's, or `UNSAID` (no function: it does not tell it all).
    """

    keys: tuple[str, ...]
    says: Callable[[ModelConfig], Any]
    absent: Any = None
    setting: str = ""
    compared: bool = True
    same: Callable[[Any, Any, ModelConfig], bool] = equal
    read_keys: tuple[str, ...] = ()
    reads: Callable[[Raw], Any] | None = None
    means: Callable[[Any], Any] | None = None

    def read(self, raw: Raw) -> Any:
        """The value in a config.json."""
        if self.reads is not None:
            return self.reads(raw)
        for key in (*self.keys, *self.read_keys):
            found, value = lookup(raw, key)
            if found:
                return value
        return self.absent(raw) if callable(self.absent) else self.absent


def lookup(raw: Raw, path: str) -> tuple[bool, Any]:
    """Is there a value at a dotted path, and which."""
    value: Any = raw
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return False, None
        value = value[name]
    return True, value


@dataclass(frozen=True)
class Family:
    """One family.

    `biases`: the sites that may have one: `ALWAYS`, or the key of config.json that switches it on (sites with
    the same key go together). `prefix`: what names of the bare model lack. `tied`: names that repeat another
    tensor where embeddings are tied. `buffers`: names (regular expressions) that hold no parameters;
    `others`: of heads that a model of ours does not have. `notes`: what to know of an exported model.
    """

    name: str
    architecture: str
    links: tuple[Link, ...]
    biases: Mapping[Site, str]
    needs: tuple[Need, ...]
    facts: tuple[Fact, ...]
    prefix: str
    tied: Mapping[str, str]
    buffers: str
    others: str = ""
    respelt: Mapping[str, str] = field(default_factory=dict)
    notes: Callable[[ModelConfig], Sequence[str]] = lambda _: ()

    @property
    def generates(self) -> bool:
        """Does it predict the next token?"""
        return self.architecture.endswith(("CausalLM", "LMHeadModel"))

    @property
    def auto(self) -> str:
        """The class of transformers that loads it by its config.json."""
        return "AutoModelForCausalLM" if self.generates else "AutoModelForMaskedLM"

    def obstacles(self, model: ModelConfig) -> list[Need]:
        """What this family cannot say of a model."""
        found = [need for need in self.needs if not need.holds(model)]
        never = [site for site in model.bias if site not in self.biases]
        if never:
            words = " ".join(self.biases) or "none"
            found.append(Need("bias", lambda _: False, lambda _: f"sites among: {words}"))
        return found

    def tensors(self, model: ModelConfig, vocab: int, every_bias: bool = False) -> list[Tensor]:
        """Their tensors for a model; with `every_bias` those of switches that it does not need, too."""
        on = self._switched(model)
        found = []
        for entry in self.links:
            if entry.ours == ("head",) and model.tie_embeddings and "weight" in entry.parameters:
                continue
            site = site_of(entry.ours[0])
            switch = None if site is None else self.biases.get(site)
            biased = switch is not None and (every_bias or switch in on)
            for parameter in entry.parameters:
                if parameter == "weight" or biased:
                    blocks = range(model.layers) if "{}" in entry.theirs else [0]
                    found += [_tensor(entry, parameter, block, model, vocab) for block in blocks]
        return found

    def _switched(self, model: ModelConfig) -> set[str]:
        return {ALWAYS, *(self.biases[Site(site)] for site in model.bias if site in self.biases)}

    def additions(self, model: ModelConfig, vocab: int) -> dict[str, int]:
        """What the family always has and the model lacks, in words, and how many numbers that is.

        It stands as zeros, which changes nothing.
        """
        added: dict[str, int] = {}
        for tensor in self.tensors(model, vocab):
            for part in tensor.parts:
                if not part.present:
                    module, _, parameter = part.name.rpartition(".")
                    name = f"{module} embeddings" if parameter == "weight" else f"bias of {site_of(module)}"
                    added[name] = added.get(name, 0) + prod(part.shape)
        return added

    def config(self, model: ModelConfig, vocab: int) -> dict[str, Any]:
        """The config.json of a model, without what its tokenizer says."""
        on = self._switched(model)
        written: dict[str, Any] = {"architectures": [self.architecture], "model_type": self.name}
        written["vocab_size"] = vocab
        for fact in self.facts:
            for key in fact.keys:
                put(written, key, fact.says(model))
        for switch in dict.fromkeys(self.biases.values()):
            if switch != ALWAYS:
                written[switch] = switch in on
        return written


def put(raw: dict[str, Any], path: str, value: Any) -> None:
    """Write a value at a dotted path."""
    *outer, last = path.split(".")
    for name in outer:
        raw = raw.setdefault(name, {})
    raw[last] = value


def _tensor(entry: Link, parameter: str, block: int, model: ModelConfig, vocab: int) -> Tensor:
    def part(module: str) -> Part:
        return Part(
            name=f"{module.format(block)}.{parameter}",
            shape=shape_of(module, parameter, model, vocab),
            head_dim=model.head_dim,
            turned=turned_channels(module, model),
            present=has(module, parameter, model),
        )

    return Tensor(
        name=f"{entry.theirs.format(block)}.{parameter}",
        parts=tuple(map(part, entry.ours)),
        heads=model.heads if entry.by_head else 0,
        transposed=entry.transposed and parameter == "weight",
    )
