"""The statistics of a study as its report shows them: arms, contrasts, noise floor.

Only arranges what `ablate.stats` computes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ablate.stats import (
    INFERENCE_SEEDS,
    Contrast,
    Edge,
    Effect,
    Estimate,
    Lr50,
    Response,
    Sensitivity,
    Study,
    Value,
    estimate,
    factorial,
    holm,
    lr50,
    lr_half,
    responses,
    sensitivities,
    simple,
)
from ablate.view.floors import Floors, band_of, noise_floors, placebo_arms
from ablate.view.results import MODEL, ArmResult, Results

SIGNIFICANT = 0.05


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

    `unlearned`: arms in it whose runs got no further than the unigram even at their best rate.
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
        placebos = tuple(placebo_arms(results))
        compared = _without(study, [arm for arm, _ in placebos])
        values = {response: responses(study, response) for response in Response}
        floors = {r: noise_floors(study, r, values[r], placebos) for r in Response}
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
        Row(c, p, band_of(floors[c.response], c), _unlearned(study, c))
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


def _without(study: Study, arms: Sequence[str]) -> Study:
    """The study without some arms; factors left with one level are none."""
    kept = [o for o in study.outcomes if o.arm not in arms]
    levels = {
        name: [level for level in known if any(o.levels[name] == level for o in kept)]
        for name, known in study.factors.items()
    }
    return Study.of(kept, study.rates, {name: known for name, known in levels.items() if len(known) > 1})
