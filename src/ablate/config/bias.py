"""The words of `model.bias` and the sites they mean in a given model."""

from collections.abc import Sequence
from functools import cache

from ablate.config.enums import Activation, Norm, Site, Stack
from ablate.config.errors import ConfigError
from ablate.config.model import ModelConfig

CROSS = (Site.cross_q, Site.cross_k, Site.cross_v, Site.cross_o)
_QKV = (Site.q, Site.k, Site.v, *CROSS[:3])
_FFN = (Site.up, Site.gate, Site.down)
_LINEAR = (*_QKV, Site.o, Site.cross_o, *_FFN, Site.transform)
OWN = "own"

# The head's bias (a unigram prior) and qk_norm's come only by naming them. `norm` is a site.
GROUPS: dict[str, tuple[Site, ...]] = {
    "none": (),
    "linear": _LINEAR,
    "all": (*_LINEAR, Site.norm),
    "qkv": _QKV,
    "ffn": _FFN,
}
WORDS = tuple(GROUPS)


def sites_of(model: ModelConfig) -> tuple[Site, ...]:
    """The sites that a model has, with or without a bias, in the order of `Site`."""
    cross = model.stack is Stack.encoder_decoder
    gate = model.activation is Activation.swiglu
    return _sites(cross, gate, model.head_transform, model.norm is not Norm.none, model.qk_norm)


@cache
def _sites(cross: bool, gate: bool, transform: bool, norm: bool, qk_norm: bool) -> tuple[Site, ...]:
    present = dict.fromkeys(CROSS, cross)
    present |= {Site.gate: gate, Site.transform: transform, Site.norm: norm, Site.qk_norm: qk_norm}
    return tuple(site for site in Site if present.get(site, True))


def realise(bias: Sequence[str], model: ModelConfig) -> tuple[Site, ...]:
    """The sites that get a bias: words expand to sites the model has; a site named itself must be there.

    Raises ConfigError for a named site that the model does not have.
    """
    return _realise(tuple(bias), sites_of(model))


@cache
def _realise(bias: tuple[str, ...], present: tuple[Site, ...]) -> tuple[Site, ...]:
    wanted: set[Site] = set()
    for word in bias:
        if word == OWN:
            raise ConfigError.setting(
                "model.bias", OWN, "own on the command line and in sweep.axes: the biases that conf/ says"
            )
        if word in GROUPS:
            wanted.update(GROUPS[word])
            continue
        if word not in present:
            raise ConfigError.setting("model.bias", list(bias), _reason(Site(word), present))
        wanted.add(Site(word))
    return tuple(site for site in present if site in wanted)


def _reason(site: Site, present: Sequence[Site]) -> str:
    needs = {
        **dict.fromkeys(CROSS, "model.stack=encoder_decoder"),
        Site.gate: "model.activation=swiglu",
        Site.transform: "model.head_transform=true",
        Site.norm: "a norm (model.norm=none has no β)",
        Site.qk_norm: "model.qk_norm=true",
    }
    return f"sites of this model: {' '.join(present)}; {site} needs {needs[site]}"


def words_for(sites: Sequence[str], model: ModelConfig) -> list[str]:
    """The words that mean exactly these sites in this model; several where they coincide."""
    return [word for word in WORDS if realise((word,), model) == tuple(sites)]
