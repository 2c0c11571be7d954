"""The statistics of a study as its report shows them: arms, contrasts, noise floor.

Only arranges what `ablate.stats` computes.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ablate.config import Site
from ablate.stats import (
    INFERENCE_SEEDS,
    Bound,
    Contrast,
    Edge,
    Effect,
    Estimate,
    Lr50,
    NoiseFloor,
    Response,
    Sensitivity,
    Study,
    Value,
    Values,
    estimate,
    factorial,
    holm,
    lr50,
    lr_half,
    paired_effect,
    paired_floor,
    responses,
    sensitivities,
    simple,
    unpaired_floor,
)
from ablate.view.arms import BIAS
from ablate.view.results import MODEL, ArmResult, Results

SIGNIFICANT = 0.05
PLACEBO_SITES = frozenset({Site.k, Site.cross_k})  # add the same to all logits of a query


@dataclass(frozen=True)
class ArmAnswer:
    """One arm: LR½ of every seed, LR50, and the estimate of every response over the seeds."""

    arm: ArmResult
    edges: Mapping[str, Edge]
    lr50: Lr50
    estimates: Mapping[Response, Estimate]
    sensitivities: Mapping[str, Sensitivity]


@dataclass(frozen=True)
class Row:
    """One contrast, its p over the whole family (Holm), and the half-width of its noise floor's band.

    `unlearned`: arms in it whose runs ended at the unigram even at their best rate.
    """

    contrast: Contrast
    holm: float | None
    floor: float | None
    unlearned: tuple[str, ...] = ()

    @property
    def effect(self) -> Effect:
        return self.contrast.effect

    @property
    def main(self) -> bool:
        """A main effect, not an interaction."""
        return len(self.contrast.of) == 1

    @property
    def found(self) -> bool:
        """Detectably different: Holm-adjusted p below 0.05, and beyond the noise floor where there is one."""
        beyond = self.floor is None or abs(self.effect.estimate.mean) > self.floor
        return self.holm is not None and self.holm < SIGNIFICANT and beyond


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


@dataclass(frozen=True)
class Analysis:
    """Everything that the report says in numbers. `placebos`: (arm, the arm that it equals).

    `within`: where whole models are compared, the effects of the other factors in each model; they are of the
    same family as `rows`.
    """

    arms: tuple[ArmAnswer, ...]
    rows: tuple[Row, ...]
    within: tuple[Row, ...]
    floors: Mapping[Response, Floors]
    placebos: tuple[tuple[str, str], ...]
    seeds: int  # that enter the contrasts (or the arms' estimates, where nothing is compared), at most
    rates: int  # of the grid

    @classmethod
    def of(cls, results: Results) -> "Analysis":
        """All statistics of these results."""
        study = results.study
        placebos = tuple(_placebos(results))
        compared = _without(study, [arm for arm, _ in placebos])
        values = {response: responses(study, response) for response in Response}
        floors = {r: _floors(study, r, values[r], placebos) for r in Response}
        found = [
            c for response in Response for c in (factorial(compared, response) if compared.factors else ())
        ]
        inside = [c for response in Response for c in simple(compared, response, MODEL)]
        rows, within = _family(study, found, inside, floors)
        arms = tuple(_arm(arm, study, values) for arm in results.arms if arm.name in study.arms)
        entered = [c.effect.estimate for c in found] or [e for a in arms for e in a.estimates.values()]
        return cls(
            arms=arms,
            rows=rows,
            within=within,
            floors=floors,
            placebos=placebos,
            seeds=max((e.n for e in entered), default=0),
            rates=len(study.rates),
        )

    @property
    def infers(self) -> bool:
        """Are there seeds enough for intervals and tests?"""
        return self.seeds >= INFERENCE_SEEDS

    @property
    def telling(self) -> tuple[Response, ...]:
        """The responses that say something, the foremost first: one rate has no edge and no sensitivity."""
        return tuple(Response) if self.rates > 1 else (Response.best_loss, Response.unstable)

    def of_response(self, response: Response) -> list[Row]:
        """The contrasts of one response: main effects, those of whole models last, then interactions."""
        rows = [row for row in self.rows if row.contrast.response is response]
        return sorted(rows, key=lambda row: (not row.main, row.contrast.of[0][0] == MODEL))

    def within_of(self, response: Response) -> list[Row]:
        """The effects on one response within each model."""
        return [row for row in self.within if row.contrast.response is response]

    @property
    def tested(self) -> list[Row]:
        """The family: every effect that was tested, each once."""
        mains = [r.contrast for r in self.rows]
        own = [r for r in self.within if _same(r.contrast, mains) is None]
        return [r for r in (*self.rows, *own) if r.holm is not None]


def _family(
    study: Study, found: Sequence[Contrast], inside: Sequence[Contrast], floors: Mapping[Response, Floors]
) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Rows with Holm's p over the contrasts and the effects within models together.

    The only model of a task has its main effects as effects within it: they are one test.
    """
    new = [c for c in inside if _same(c, found) is None]
    family = [*found, *new]
    adjusted = holm([c.effect.p for c in family])
    rows = [
        Row(c, p, _band(floors[c.response], c), _unlearned(study, c))
        for c, p in zip(family, adjusted, strict=True)
    ]
    within = []
    left = iter(rows[len(found) :])
    for c in inside:
        same = _same(c, found)
        within.append(next(left) if same is None else replace(rows[same], contrast=c))
    return tuple(rows[: len(found)]), tuple(within)


def _unlearned(study: Study, contrast: Contrast) -> tuple[str, ...]:
    """The arms in it that never learned."""
    own = [arm for arm in study.unlearned if study.task_of[arm] == contrast.task]
    return tuple(arm for arm in own if contrast.concerns(study.levels[arm]))


def _same(contrast: Contrast, mains: Sequence[Contrast]) -> int | None:
    """Which main effect an effect within a model is, if one is a mean over nothing else."""
    what = contrast.response, contrast.of, contrast.against, contrast.task
    model = dict(contrast.within)[MODEL]
    for place, m in enumerate(mains):
        alike = (m.response, m.of, m.against, m.task) == what
        if alike and m.blocks and all(dict(block).get(MODEL, model) == model for block in m.blocks):
            return place
    return None


def _arm(
    arm: ArmResult, study: Study, values: Mapping[Response, Mapping[str, Mapping[str, Value]]]
) -> ArmAnswer:
    return ArmAnswer(
        arm=arm,
        edges={seed: lr_half(study, arm.name, seed) for seed in study.seeds},
        lr50=lr50(study, arm.name),
        estimates={response: estimate(found[arm.name]) for response, found in values.items()},
        sensitivities=sensitivities(study)[arm.name],
    )


def _placebos(results: Results) -> list[tuple[str, str]]:
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


def _without(study: Study, arms: Sequence[str]) -> Study:
    """The study without some arms; factors left with one level are none."""
    kept = [o for o in study.outcomes if o.arm not in arms]
    levels = {
        name: [level for level in known if any(o.levels[name] == level for o in kept)]
        for name, known in study.factors.items()
    }
    return Study.of(kept, study.rates, {name: known for name, known in levels.items() if len(known) > 1})


def _floors(
    study: Study,
    response: Response,
    values: Mapping[str, Mapping[str, Value]],
    placebos: Sequence[tuple[str, str]],
) -> Floors:
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


def _band(floors: Floors, contrast: Contrast) -> float | None:
    averaged = floors.main if len(contrast.of) == 1 else floors.interaction
    floor = (floors.single if contrast.within else averaged).get(contrast.task)
    enough = contrast.effect.estimate.n >= INFERENCE_SEEDS
    return floor.band(contrast.effect.estimate.n) if floor is not None and enough else None
