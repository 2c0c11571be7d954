"""Tables as plain rows of text first, drawn afterwards: by rich in a terminal, aligned text elsewhere."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TextIO

from ablate.view.text import clean

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

STYLES: Mapping[str, str] = {
    "stable": "green",
    "spiked": "yellow",
    "diverged": "bold red",
    "collapsed": "red",
    "undertrained": "cyan",
    "censored": "dim",
    "done": "green",
    "running": "cyan",
    "queued": "dim",
    "failed": "bold red",
    "killed": "bold red",
    "preempted": "yellow",
}
UNBROKEN = 22  # characters: columns of cells up to this long are never wrapped


@dataclass(frozen=True)
class Table:
    """Rows of text under named columns; `right` names the columns set flush right."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str | None = None
    right: frozenset[str] = field(default_factory=frozenset)

    def column(self, name: str) -> tuple[str, ...]:
        """The cells of one column, top to bottom."""
        place = self.columns.index(name)
        return tuple(row[place] for row in self.rows)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    title: str | None = None,
    right: Iterable[str] = (),
    limit: int | None = None,
) -> Table:
    """A table of cleaned text; cells longer than `limit` are cut."""
    cells = tuple(tuple(clean(cell, limit) for cell in row) for row in rows)
    assert all(len(row) == len(columns) for row in cells), "ragged table"
    return Table(tuple(clean(c) for c in columns), cells, title, frozenset(right))


def plain(tab: Table) -> str:
    """Aligned text, two spaces between columns, nothing cut: what pipes and files get."""
    grid = (tab.columns, *tab.rows)
    widths = [max(len(row[i]) for row in grid) for i in range(len(tab.columns))]
    lines = [tab.title] if tab.title else []
    for row in grid:
        cells = [
            cell.rjust(width) if name in tab.right else cell.ljust(width)
            for name, cell, width in zip(tab.columns, row, widths, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def rich_table(tab: Table) -> "RichTable":
    """The same table for a terminal. Cells are `Text`, so markup in names is shown, never obeyed."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(
        box=box.SIMPLE_HEAD, title=None if tab.title is None else Text(tab.title), title_justify="left"
    )
    for name in tab.columns:
        short = all(len(cell) <= UNBROKEN for cell in tab.column(name))
        justify: Literal["left", "right"] = "right" if name in tab.right else "left"
        drawn.add_column(Text(name), justify=justify, overflow="fold", no_wrap=short)
    for row in tab.rows:
        drawn.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in row))
    return drawn


def emit(tab: Table, stream: TextIO | None = None) -> None:
    """Print a table to `stream` (default: standard output), drawn when that is a terminal."""
    out = stream or sys.stdout
    if out.isatty():
        console(out).print(rich_table(tab))
    else:
        print(plain(tab), file=out)


def console(stream: TextIO | None = None) -> "Console":
    """A rich console that neither guesses at markup nor highlights numbers."""
    from rich.console import Console

    return Console(file=stream or sys.stdout, markup=False, highlight=False, emoji=False)
