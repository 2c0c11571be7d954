"""How the schema says a setting: its class, its range and a line of documentation."""

from dataclasses import field
from typing import Any

from ablate.config.enums import FieldClass


def _setting(klass: FieldClass, default: Any, doc: str, **rules: Any) -> Any:
    """A dataclass field with its class, documentation and rules.

    Rules: gt, ge, lt, le: the range. derived: null until `resolve` fills it. words: takes the words of
    `model.bias`. fraction: steps, or a fraction of `optim.steps` if below 1; whole steps once resolved.
    off: the value that switches it off, suggested where null is given.
    told: can be swept although it is not hashed, because what it does is told by other settings.
    content: identified by what it points to (the data fingerprint), so it can be swept although its
    text is not hashed. neutral: for science fields added later, the value that means "as before" and is
    left out of the identity, so that older run ids stand.
    """
    metadata = {"class": klass, "doc": doc, **rules}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def science(default: Any, doc: str, **rules: Any) -> Any:
    """A field that defines the experiment: part of the run id."""
    return _setting(FieldClass.science, default, doc, **rules)


def observe(default: Any, doc: str, **rules: Any) -> Any:
    """A field that says what is looked at: stored, never part of the run id."""
    return _setting(FieldClass.observe, default, doc, **rules)


def control(default: Any, doc: str, **rules: Any) -> Any:
    """A field that says how and where a run is carried out: never part of the run id."""
    return _setting(FieldClass.control, default, doc, **rules)
