"""Main effects and two-way interactions of a study's factors, each one number a seed."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ablate.stats.edge import Bound
from ablate.stats.effects import Effect, Term, contrast
from ablate.stats.outcomes import Study
from ablate.stats.responses import Response, Values, responses

Levels = tuple[tuple[str, str], ...]  # (factor, level)
Step = tuple[str, str, str]  # factor, level, reference level
JOINED = " + "  # between factors that only ever vary together


@dataclass(frozen=True)
class Contrast:
    """A main effect (one factor) or a two-way interaction (two) of a response.

    `of`: the factors with the level looked at; `against`: with the level it is compared with. `blocks`: the
    levels of the other factors over which it is averaged, each with equal weight. `left_out`: blocks that
    could not enter, and why. `task`: that of all its runs, where the study has several. `within`: the
    level of another factor in which alone it is taken (a simple effect).
    """

    response: Response
    of: Levels
    against: Levels
    blocks: tuple[Levels, ...]
    left_out: tuple[str, ...]
    effect: Effect
    task: str = ""
    within: Levels = ()

    @property
    def name(self) -> str:
        parts = zip(self.of, self.against, strict=True)
        words = " × ".join(f"{factor}: {level} − {reference}" for (factor, level), (_, reference) in parts)
        if self.within:
            return f"{words} in {', '.join(level for _, level in self.within)}"
        return f"{words} ({self.task})" if self.task else words

    def concerns(self, levels: Mapping[str, str]) -> bool:
        """Does an arm with these levels enter?"""
        corners = itertools.product(*zip(self.of, self.against, strict=True))
        return any(
            all(
                levels.get(name) == level
                for factor, joined in (*corner, *block, *self.within)
                for name, level in zip(factor.split(JOINED), joined.split(JOINED), strict=True)
            )
            for corner in corners
            for block in self.blocks
        )


def factorial(study: Study, response: Response, order: int = 2) -> tuple[Contrast, ...]:
    """Every main effect and, with `order` 2, every two-way interaction, against each factor's first level.

    A main effect is the difference between two levels of one factor, an interaction the difference of such
    differences between two levels of another, averaged over the other factors' levels within each seed.
    Source: Box, Hunter & Hunter 2005, chapter 5 (there an interaction is half of this). Only complete blocks
    enter: a block whose arms are not all in the study, or in which no seed has all values, is left out; of
    the rest a seed needs all values. Both are named. Factors that only ever vary together are taken as one.
    Arms of different tasks are never in one contrast: each task has its own, against the first of its levels;
    all main effects come first.
    """
    parts = [_contrasts(part, response, order) for part in study.by_task.values()]
    return tuple(c for n in (1, 2) for part in parts for c in part if len(c.of) == n)


def simple(study: Study, response: Response, factor: str) -> tuple[Contrast, ...]:
    """The main effects of the other factors within each level of `factor`, where that has several levels.

    Simple effects (Winer, Brown & Michels 1991, chapter 6): nothing is averaged over `factor`. Each is paired
    by seed, against the first level that the arms of this level of `factor` have.
    """
    if len(study.factors.get(factor, ())) < 2:
        return ()
    found = []
    for task in study.by_task.values():
        for level in task.factors[factor]:
            part = task.part([o for o in task.outcomes if o.levels[factor] == level])
            found += [replace(c, within=((factor, level),)) for c in _contrasts(part, response, 1)]
    return tuple(found)


def _contrasts(study: Study, response: Response, order: int) -> list[Contrast]:
    """Those of a study of one task."""
    design = _Design.of(study, responses(study, response))
    steps = [(name, level, levels[0]) for name, levels in design.factors.items() for level in levels[1:]]
    found = [design.contrast(response, [step]) for step in steps]
    if order >= 2:
        pairs = itertools.combinations(steps, 2)
        found += [design.contrast(response, [a, b]) for a, b in pairs if a[0] != b[0]]
    return found


@dataclass(frozen=True)
class _Design:
    """The factors that vary, and the values of every arm by its levels of them."""

    factors: Mapping[str, tuple[str, ...]]
    arms: Mapping[Levels, Values]
    seeds: tuple[str, ...]
    task: str

    @classmethod
    def of(cls, study: Study, values: Mapping[str, Values]) -> "_Design":
        together: dict[tuple[int, ...], list[str]] = {}
        for name in study.factors:
            together.setdefault(_partition([study.levels[arm][name] for arm in study.arms]), []).append(name)
        groups = [names for partition, names in together.items() if any(partition)]
        factors = {}
        for names in groups:
            first = study.factors[names[0]]
            found = {study.levels[arm][names[0]]: _joined(study, arm, names) for arm in study.arms}
            factors[JOINED.join(names)] = tuple(found[level] for level in first)
        arms = {
            tuple((JOINED.join(names), _joined(study, arm, names)) for names in groups): values[arm]
            for arm in study.arms
        }
        assert len(arms) == len(values), "arms differ in some factor"
        return cls(factors, arms, study.seeds, "".join(study.tasks))

    def contrast(self, response: Response, steps: Sequence[Step]) -> Contrast:
        others = [name for name in self.factors if name not in {step[0] for step in steps}]
        blocks: list[Levels] = []
        terms: list[Term] = []
        left_out = []
        for chosen in itertools.product(*(self.factors[name] for name in others)):
            block = tuple(zip(others, chosen, strict=True))
            corners = self._corners(steps, dict(block))
            if isinstance(corners, str):
                left_out.append(f"{_words(block)}: {corners}")
            else:
                blocks.append(block)
                terms += corners
        return Contrast(
            response=response,
            of=tuple((factor, level) for factor, level, _ in steps),
            against=tuple((factor, reference) for factor, _, reference in steps),
            blocks=tuple(blocks),
            left_out=tuple(left_out),
            effect=contrast([(c / len(blocks), values) for c, values in terms]),
            task=self.task,
        )

    def _corners(self, steps: Sequence[Step], block: Mapping[str, str]) -> list[Term] | str:
        """The arms of one block with their signs, or why they cannot enter."""
        terms: list[Term] = []
        for places in itertools.product((0, 1), repeat=len(steps)):
            moved = zip(steps, places, strict=True)
            at = {**block, **{f: level if up else ref for (f, level, ref), up in moved}}
            key = tuple((name, at[name]) for name in self.factors)
            if key not in self.arms:
                return f"no arm {_words(key)}"
            terms.append(((-1.0) ** (len(steps) - sum(places)), self.arms[key]))
        if not any(all(v[seed].bound is not Bound.missing for _, v in terms) for seed in self.seeds):
            return "no seed has all of its values"
        return terms


def _partition(levels: Sequence[str]) -> tuple[int, ...]:
    """Which arms share a level, whatever the levels are called: all 0 for a factor that does not vary."""
    place = {level: i for i, level in enumerate(dict.fromkeys(levels))}
    return tuple(place[level] for level in levels)


def _joined(study: Study, arm: str, names: Sequence[str]) -> str:
    return JOINED.join(study.levels[arm][name] for name in names)


def _words(levels: Levels) -> str:
    return ", ".join(f"{factor}={level}" for factor, level in levels) or "all runs"
