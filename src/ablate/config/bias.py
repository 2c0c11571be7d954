"""The words of `model.bias` and the sites they mean in a given model."""

from collections.abc import Sequence
from functools import cache

from ablate.config.enums import Activation, Norm, Site
from ablate.config.errors import ConfigError
from ablate.config.schema import ModelConfig

_QKV = (Site.q, Site.k, Site.v)
_FFN = (Site.up, Site.gate, Site.down)
_LINEAR = (*_QKV, Site.o, *_FFN)

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
    gate = model.activation is Activation.swiglu
    return _sites(gate, model.norm is not Norm.none, model.qk_norm)


@cache
def _sites(gate: bool, norm: bool, qk_norm: bool) -> tuple[Site, ...]:
    absent = {Site.gate: not gate, Site.norm: not norm, Site.qk_norm: not qk_norm}
    return tuple(site for site in Site if not absent.get(site))


def realise(bias: Sequence[str], model: ModelConfig) -> tuple[Site, ...]:
    """The sites that get a bias: words expand to sites the model has; a site named itself must be there.

    Raises ConfigError for a named site that the model does not have.
    """
    return _realise(tuple(bias), sites_of(model))


@cache
def _realise(bias: tuple[str, ...], present: tuple[Site, ...]) -> tuple[Site, ...]:
    wanted: set[Site] = set()
    for word in bias:
        if word in GROUPS:
            wanted.update(GROUPS[word])
            continue
        if word not in present:
            raise ConfigError.setting("model.bias", list(bias), _reason(Site(word), present))
        wanted.add(Site(word))
    return tuple(site for site in present if site in wanted)


def _reason(site: Site, present: Sequence[Site]) -> str:
    needs = {
        Site.gate: "model.activation=swiglu",
        Site.norm: "a norm (model.norm=none has no β)",
        Site.qk_norm: "model.qk_norm=true",
    }
    return f"sites of this model: {' '.join(present)}; {site} needs {needs[site]}"


def words_for(sites: Sequence[str], model: ModelConfig) -> list[str]:
    """The words that mean exactly these sites in this model; several where they coincide."""
    return [word for word in WORDS if realise((word,), model) == tuple(sites)]
