"""The settings that a folder's config.json means: what to type for a model that fits it."""

from dataclasses import replace
from typing import Any

from ablate.config import ModelConfig
from ablate.config.errors import shown
from ablate.exchange.family import ALWAYS, UNSAID, Family, Raw


def overrides(family: Family, raw: Raw, model: ModelConfig, vocab: int) -> list[str]:
    """Overrides that make the model that of the folder, as far as config.json tells it.

    A context is named only where positions are learned: elsewhere every one will do.
    """
    changes = _from_facts(family, raw, model)
    changes |= {
        need.setting: need.values[0]
        for need in family.needs
        if len(need.values) == 1 and not need.holds(replace(model, **_known(changes)))
    }
    if isinstance(window := changes.get("window"), int) and window >= model.context:
        changes["window"] = None  # it spans the context: the same, and no more is allowed
    sites = [site for site, switch in family.biases.items() if switch == ALWAYS or raw.get(switch, False)]
    if set(sites) != set(model.bias):
        changes["bias"] = sites or "none"
    said = [f"model.{setting}={shown(value)}" for setting, value in changes.items()]
    theirs = raw.get("vocab_size", vocab)
    return said if theirs == vocab else [*said, f"data.vocab_size={theirs}"]


def _from_facts(family: Family, raw: Raw, model: ModelConfig) -> dict[str, Any]:
    learned = any(need.setting == "position" and "learned" in need.values for need in family.needs)
    changes: dict[str, Any] = {}
    for fact in family.facts:
        if fact.means is None or (fact.setting == "context" and not learned):
            continue
        theirs = fact.read(raw)
        if fact.same(theirs, fact.says(model), model):
            continue
        nothing = theirs is None and fact.compared and fact.setting != "window"
        value = UNSAID if nothing else fact.means(theirs)
        if value is not UNSAID:
            changes[fact.setting] = value
    return changes


def _known(changes: dict[str, Any]) -> dict[str, Any]:
    """Without those that are to be derived anew."""
    return {setting: value for setting, value in changes.items() if value is not None or setting == "window"}
