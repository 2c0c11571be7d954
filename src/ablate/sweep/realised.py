"""Built models against each other: what a factor may change in them, and what it may not."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

# What a factor may change in the built model. Factors that are not named here may change everything.
TOUCHES: dict[str, frozenset[str]] = {
    "bias": frozenset({"biases"}),
    "bias_init": frozenset(),
    "init": frozenset(),
    "eps": frozenset({"norms"}),
    "norm": frozenset({"norms", "gains", "biases"}),
    "placement": frozenset({"norms", "gains", "biases"}),
    "rope_theta": frozenset(),
    "rope_share": frozenset(),
    "window": frozenset(),
    "window_every": frozenset(),
    "scale_logits": frozenset(),
    "qk_norm_over": frozenset({"norms", "gains", "biases"}),
}
FOLLOWERS = {"norm": ("bias", "final_norm"), "placement": ("final_norm",)}  # change along with a factor


def differences(
    descriptions: Mapping[Any, Mapping[str, Any]], recorded: Mapping[Any, Mapping[str, Any]]
) -> list[str]:
    """In words, where built models differ in something that their factor may not change, and where a
    recorded model is not the one that the present code builds.

    Keys are (model configuration, vocabulary).
    """
    found = []
    for factor, touched in TOUCHES.items():
        groups: dict[Any, tuple[Any, dict[str, Any]]] = {}
        for (model, vocab), description in descriptions.items():
            aside = (factor, *FOLLOWERS.get(factor, ()))
            rest = tuple((key, value) for key, value in asdict(model).items() if key not in aside)
            parts = facts(description)
            _, first = groups.setdefault((rest, vocab), (model, parts))
            found += [
                f"model.{factor} changes the {name} of the built model"
                for name in first
                if name not in touched and first[name] != parts[name]
            ]
    for model, past in recorded.items():
        now = facts(descriptions[model])
        found += [
            f"the study's runs were built with other {name}"
            for name, value in facts(past).items()
            if value != now[name]
        ]
    return list(dict.fromkeys(found))


def facts(description: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a description that a factor may or may not change."""
    by_site = description["by_site"]
    return {
        "weights": {site: n for site, n in by_site.items() if site not in ("norm", "qk_norm")},
        "gains": {site: n for site, n in by_site.items() if site in ("norm", "qk_norm")},
        "biases": dict(description["biases"]),
        "norms": [(n["label"], n["kind"], n["width"], n["eps"]) for n in description["norms"]],
        "tying": description["tied"],
    }
