"""Columns fitted to a terminal: folded at spaces, never within a word; what still does not fit is cut."""

from collections.abc import Sequence

GAP = 2  # characters between columns
FLOOR = 8  # no column is cut to less


def fold(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` characters, broken at spaces; a longer word is cut.

    Never empty. A text that fits stays as it is.
    """
    assert width >= 1
    if len(text) <= width:
        return [text]
    lines: list[str] = []
    for word in text.split():
        short = word if len(word) <= width else word[: width - 1] + "…"
        if lines and len(lines[-1]) + 1 + len(short) <= width:
            lines[-1] += f" {short}"
        else:
            lines.append(short)
    return lines or [""]


def fit(columns: Sequence[Sequence[str]], room: int, whole: Sequence[bool]) -> list[int]:
    """Widths of columns (each: heading and cells) that fit side by side into `room` characters.

    Columns are folded first, always the one that costs the fewest lines; then the widest are cut, none below
    `FLOOR`. `whole` ones are left alone. The sum exceeds the room where even that does not help.
    """
    widths = [max((len(cell) for cell in column), default=0) or 1 for column in columns]
    room -= GAP * (len(columns) - 1)
    heights = [[1] * len(column) for column in columns]
    while sum(widths) > room:
        options = []
        for place, column in enumerate(columns):
            narrower = None if whole[place] else _narrower(column, widths[place])
            if narrower is not None:
                lines = [len(fold(cell, narrower)) for cell in column]
                cost = sum(map(max, zip(*heights[:place], lines, *heights[place + 1 :], strict=True)))
                options.append((cost, narrower - widths[place], place, lines))
        if not options:
            break
        _, change, place, heights[place] = min(options)
        widths[place] += change
    return _cut(widths, room, whole)


def _narrower(cells: Sequence[str], width: int) -> int | None:
    """The next smaller width at which the cells fold; None if a word would have to be cut."""
    longest = max((len(word) for cell in cells for word in cell.split()), default=1)
    if width - 1 < longest:
        return None
    return max(len(line) for cell in cells for line in fold(cell, width - 1)) or None


def _cut(widths: Sequence[int], room: int, whole: Sequence[bool]) -> list[int]:
    cut = list(widths)
    while sum(cut) > room:
        places = [i for i, wide in enumerate(cut) if wide > FLOOR and not whole[i]]
        if not places:
            break
        cut[max(places, key=lambda i: cut[i])] -= 1
    return cut
