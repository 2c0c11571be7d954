"""Placebo arms, found from the configurations, and the noise floors that they give."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ablate.config import Site
from ablate.stats import (
    INFERENCE_SEEDS,
    Bound,
    Contrast,
    Effect,
    NoiseFloor,
    Response,
    Study,
    Value,
    Values,
    factorial,
    paired_effect,
    paired_floor,
    unpaired_floor,
)
from ablate.view.arms import BIAS
from ablate.view.results import ArmResult, Results

PLACEBO_SITES = frozenset({Site.k, Site.cross_k})  # add the same to all logits of a query


@dataclass(frozen=True)
class Floors:
    """The noise floor of one response.

    `pairs`: each placebo's paired effect. `main`, `interaction`: by task, the floor of contrasts averaged as
    the page's are; `single`: of effects within one model. `unpaired`: disjoint halves of the reference arm's
    seeds.
    """

    response: Response
    pairs: tuple[tuple[str, str, Effect], ...]
    main: Mapping[str, NoiseFloor]
    interaction: Mapping[str, NoiseFloor]
    single: Mapping[str, NoiseFloor]
    unpaired: NoiseFloor


def placebo_arms(results: Results) -> list[tuple[str, str]]:
    """Pairs of arms that compute the same function: they differ in the key bias alone, which softmax removes.

    It does so without a norm on q and k and, but for cross-attention, without rotary positions. The arm whose
    biases have no word of their own is the placebo; of two such, the one with the key bias.
    """
    found = []
    for a, b in itertools.combinations(results.arms, 2):
        if not (_differ_in_null_biases_alone(a, b) and _redundant(a, b)):
            continue
        without, having = (a, b) if len(_sites(a)) < len(_sites(b)) else (b, a)
        unnamed = [arm for arm in (without, having) if arm.levels["bias"].startswith("[")]
        placebo = unnamed[0] if len(unnamed) == 1 else having
        found.append((placebo.name, (without if placebo is having else having).name))
    return found


def _differ_in_null_biases_alone(a: ArmResult, b: ArmResult) -> bool:
    others = [name for name in a.levels if name != "bias"]
    alike = "bias" in a.levels and all(a.levels[name] == b.levels.get(name) for name in others)
    return alike and bool(differing := _sites(a) ^ _sites(b)) and differing <= PLACEBO_SITES


def _redundant(a: ArmResult, b: ArmResult) -> bool:
    """Does softmax remove what these arms differ in?"""
    flats = [arm.points[0].runs[0].flat for arm in (a, b)]
    turned = any(flat.get("model.position") == "rope" for flat in flats)
    return not any(flat.get("model.qk_norm") for flat in flats) and not (
        turned and Site.k in _sites(a) ^ _sites(b)
    )


def _sites(arm: ArmResult) -> frozenset[str]:
    sites = arm.points[0].runs[0].flat.get(BIAS)
    return frozenset(map(str, sites)) if isinstance(sites, list | tuple) else frozenset()


def noise_floors(
    study: Study,
    response: Response,
    values: Mapping[str, Mapping[str, Value]],
    placebos: Sequence[tuple[str, str]],
) -> Floors:
    """The floors of one response, from its values by arm and the placebo arms with those that they equal."""
    contrasts = _placebo_contrasts(study, response, placebos)
    reference: Values = values[study.arms[0]] if study.arms else {}
    known = {s: v.value for s, v in reference.items() if v.bound is not Bound.missing}
    pairs = tuple((arm, like, paired_effect(values[like], values[arm])) for arm, like in placebos)
    return Floors(
        response=response,
        pairs=pairs,
        main=_by_task(contrasts, 1),
        interaction=_by_task(contrasts, 2),
        single=_single(study, pairs),
        unpaired=unpaired_floor(known),
    )


def _single(study: Study, pairs: Sequence[tuple[str, str, Effect]]) -> dict[str, NoiseFloor]:
    """By task (named only where there are several), the floor of differences between two arms."""
    found: dict[str, list[Effect]] = {}
    for arm, _, effect in pairs:
        found.setdefault(study.task_of[arm], []).append(effect)
    return {task: paired_floor(effects) for task, effects in found.items()}


def _by_task(contrasts: Sequence[Contrast], factors: int) -> dict[str, NoiseFloor]:
    found: dict[str, list[Effect]] = {}
    for c in contrasts:
        if len(c.of) == factors:
            found.setdefault(c.task, []).append(c.effect)
    return {task: paired_floor(effects) for task, effects in found.items()}


def _placebo_contrasts(
    study: Study, response: Response, placebos: Sequence[tuple[str, str]]
) -> list[Contrast]:
    """The placebo's main effect and interactions, averaged over blocks as the page's contrasts are."""
    found = []
    for level, like in dict.fromkeys((study.levels[a]["bias"], study.levels[b]["bias"]) for a, b in placebos):
        arms = {name for pair in placebos for name in pair if study.levels[name]["bias"] in (level, like)}
        kept = [o for o in study.outcomes if o.arm in arms]
        order = {
            name: [like, level]
            if name == "bias"
            else [x for x in known if any(o.levels[name] == x for o in kept)]
            for name, known in study.factors.items()
        }
        null = Study.of(kept, study.rates, order)
        found += [c for c in factorial(null, response) if ("bias", level) in c.of]
    return found


def band_of(floors: Floors, contrast: Contrast) -> float | None:
    """The half-width of the band of a contrast's noise floor, where there is one and n is enough."""
    averaged = floors.main if len(contrast.of) == 1 else floors.interaction
    floor = (floors.single if contrast.within else averaged).get(contrast.task)
    enough = contrast.effect.estimate.n >= INFERENCE_SEEDS
    return floor.band(contrast.effect.estimate.n) if floor is not None and enough else None
