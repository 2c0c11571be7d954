"""How arms are told apart in one panel: colour, mark and dash by factor where there are at most three."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ablate.view.figures.style import DASHES, INK, PALETTE, SYMBOLS, Key
from ablate.view.results import MODEL, ArmResult


@dataclass(frozen=True)
class ArmStyle:
    """The look of one arm's line."""

    colour: str
    dash: str
    symbol: str


def arm_styles(arms: Sequence[ArmResult]) -> tuple[dict[str, ArmStyle], tuple[Key, ...]]:
    """Each arm's style by its name, and the legend.

    The factor with most levels has the colours, the next ones marks and dashes. Where that does not fit, arms
    are numbered through: 8 colours, then other dashes, then other marks. More whole models (presets) than
    colours are not told apart: pointing at a line names its arm.
    """
    levels = _levels(arms)
    if len(levels) > 1 and len(levels.get(MODEL, ())) > len(PALETTE):
        del levels[MODEL]
    ordered = sorted(levels, key=lambda name: -len(levels[name]))
    room = (len(PALETTE), len(SYMBOLS), len(DASHES))
    fits = len(ordered) <= len(room) and all(
        len(levels[name]) <= size for name, size in zip(ordered, room, strict=False)
    )
    if not (ordered and fits):
        styles = {arm.name: _numbered(i) for i, arm in enumerate(arms)}
        return styles, tuple(
            Key(arm.title, styles[arm.name].colour, styles[arm.name].symbol, styles[arm.name].dash)
            for arm in arms
        )
    return {arm.name: _by_factor(arm, ordered, levels) for arm in arms}, _key(ordered, levels)


def _levels(arms: Sequence[ArmResult]) -> dict[str, list[str]]:
    names = dict.fromkeys(name for arm in arms for name in arm.levels)
    return {name: list(dict.fromkeys(arm.levels.get(name, "?") for arm in arms)) for name in names}


def _by_factor(arm: ArmResult, ordered: Sequence[str], levels: Mapping[str, Sequence[str]]) -> ArmStyle:
    place = [levels[name].index(arm.levels.get(name, "?")) for name in ordered]
    place += [0] * (3 - len(place))
    symbol = SYMBOLS[place[1]] if len(ordered) > 1 else SYMBOLS[place[0] % len(SYMBOLS)]
    return ArmStyle(PALETTE[place[0]], DASHES[place[2]], symbol)


def _numbered(place: int) -> ArmStyle:
    row = place // len(PALETTE)
    return ArmStyle(
        PALETTE[place % len(PALETTE)],
        DASHES[row % len(DASHES)],
        SYMBOLS[row // len(DASHES) % len(SYMBOLS)],
    )


def _key(ordered: Sequence[str], levels: Mapping[str, Sequence[str]]) -> tuple[Key, ...]:
    keys = []
    for axis, name in enumerate(ordered):
        for place, word in enumerate(levels[name]):
            said = f"{name}={word}"
            if axis == 0:
                alone = SYMBOLS[place % len(SYMBOLS)] if len(ordered) == 1 else None
                keys.append(Key(said, PALETTE[place], alone, "solid"))
            elif axis == 1:
                keys.append(Key(said, INK, SYMBOLS[place]))
            else:
                keys.append(Key(said, INK, None, DASHES[place]))
    return tuple(keys)
