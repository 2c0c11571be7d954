"""Main effects and two-way interactions of a study's factors, each one number a seed."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ablate.stats.edge import Bound
from ablate.stats.effects import Effect, Term, contrast
from ablate.stats.outcomes import Study
from ablate.stats.responses import Response, Values, responses

Levels = tuple[tuple[str, str], ...]  # (factor, level)


@dataclass(frozen=True)
class Contrast:
    """A main effect (one factor) or a two-way interaction (two) of a response.

    `of`: the factors with the level looked at; `against`: with the level it is compared with. `blocks`: the
    levels of the other factors over which it is averaged, each with equal weight. `left_out`: blocks that
    could not enter, and why.
    """

    response: Response
    of: Levels
    against: Levels
    blocks: tuple[Levels, ...]
    left_out: tuple[str, ...]
    effect: Effect

    @property
    def name(self) -> str:
        return " × ".join(
            f"{f}: {level} − {ref}" for (f, level), (_, ref) in zip(self.of, self.against, strict=True)
        )


def factorial(study: Study, response: Response, order: int = 2) -> tuple[Contrast, ...]:
    """Every main effect and, with `order` 2, every two-way interaction, against each factor's first level.

    A main effect is the difference between two levels of one factor, an interaction the difference of such
    differences between two levels of another, averaged over the other factors' levels within each seed.
    Source: Box, Hunter & Hunter 2005, chapter 5 (there an interaction is half of this). Only complete blocks
    enter: a block whose arms are not all in the study, or in which no seed has all values, is left out; of
    the rest a seed needs all values. Both are named.
    """
    values = responses(study, response)
    arms = {tuple(levels.items()): values[arm] for arm, levels in study.levels.items()}
    assert len(arms) == len(values), "arms differ in some factor"
    steps = [(factor, level, levels[0]) for factor, levels in study.factors.items() for level in levels[1:]]
    found = [_contrast(study, response, arms, [step]) for step in steps]
    if order >= 2:
        pairs = itertools.combinations(steps, 2)
        found += [_contrast(study, response, arms, [a, b]) for a, b in pairs if a[0] != b[0]]
    return tuple(found)


Step = tuple[str, str, str]  # factor, level, reference


def _contrast(
    study: Study, response: Response, arms: Mapping[Levels, Values], steps: Sequence[Step]
) -> Contrast:
    others = [name for name in study.factors if name not in {step[0] for step in steps}]
    blocks, terms, left_out = [], [], []
    for chosen in itertools.product(*(study.factors[name] for name in others)):
        block = tuple(zip(others, chosen, strict=True))
        corners = _corners(study, arms, steps, dict(block))
        if isinstance(corners, str):
            left_out.append(f"{_words(block)}: {corners}")
            continue
        blocks.append(block)
        terms += corners
    scaled = [(c / len(blocks), values) for c, values in terms]
    return Contrast(
        response=response,
        of=tuple((factor, level) for factor, level, _ in steps),
        against=tuple((factor, reference) for factor, _, reference in steps),
        blocks=tuple(blocks),
        left_out=tuple(left_out),
        effect=contrast(scaled),
    )


def _corners(
    study: Study, arms: Mapping[Levels, Values], steps: Sequence[Step], block: Mapping[str, str]
) -> list[Term] | str:
    """The arms of one block with their signs, or why they cannot enter."""
    terms: list[Term] = []
    for places in itertools.product((0, 1), repeat=len(steps)):
        at = {**block, **{f: level if up else ref for (f, level, ref), up in zip(steps, places, strict=True)}}
        key = tuple((name, at[name]) for name in study.factors)
        if key not in arms:
            return f"no arm {_words(key)}"
        terms.append(((-1.0) ** (len(steps) - sum(places)), arms[key]))
    if not any(all(v[seed].bound is not Bound.missing for _, v in terms) for seed in study.seeds):
        return "no seed has all of its values"
    return terms


def _words(levels: Levels) -> str:
    return ", ".join(f"{factor}={level}" for factor, level in levels) or "all runs"
