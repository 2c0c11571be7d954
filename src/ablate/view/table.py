"""Tables as plain rows of text first, drawn afterwards: fitted to a terminal, in full elsewhere."""

import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TextIO

from ablate.view.layout import GAP, fit, fold
from ablate.view.text import clean

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

INDENT = "    "
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


@dataclass(frozen=True)
class Table:
    """Rows of text under named columns; `right` names the columns set flush right.

    In a terminal, cells of `short` columns show only that many characters, those of `whole` ones (things to
    copy) are neither folded nor cut. `lead` names the column that tells the rows apart: a terminal in which
    its words would be cut gets each row in lines of its own. Elsewhere everything is printed in full.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str | None = None
    right: frozenset[str] = field(default_factory=frozenset)
    short: Mapping[str, int] = field(default_factory=dict, hash=False)
    whole: frozenset[str] = field(default_factory=frozenset)
    lead: str | None = None

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
    short: Mapping[str, int] | None = None,
    whole: Iterable[str] = (),
    lead: str | None = None,
) -> Table:
    """A table of cleaned text; cells longer than `limit` are cut."""
    cells = tuple(_cleaned(row, limit) for row in rows)
    assert all(len(row) == len(columns) for row in cells), "ragged table"
    names = tuple(clean(c) for c in columns)
    return Table(names, cells, title, frozenset(right), dict(short or {}), frozenset(whole), lead)


def plain(tab: Table) -> str:
    """Aligned text, two spaces between columns, nothing cut: what pipes and files get."""
    filled = []
    for name, *cells in zip(tab.columns, *tab.rows, strict=True):
        width = max(map(len, (name, *cells)))
        fill = str.rjust if name in tab.right else str.ljust
        filled.append([fill(cell, width) for cell in (name, *cells)])
    lines = ["  ".join(row).rstrip() for row in zip(*filled, strict=True)]
    return "\n".join([tab.title, *lines] if tab.title else lines)


def _cleaned(row: Sequence[object], limit: int | None) -> tuple[str, ...]:
    cells = tuple(map(str, row))
    if limit is None and "".join(cells).isprintable():
        return cells
    return tuple(clean(cell, limit) for cell in cells)


def rich_table(tab: Table, width: int) -> "RichTable":
    """The table for a terminal of `width` characters: cells folded at spaces, what still does not fit cut.

    Cells are `Text`, so markup in names is shown, never obeyed. The title is left to the caller.
    """
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    cells = [
        [name, *(cell[: tab.short.get(name, len(cell))] for cell in tab.column(name))] for name in tab.columns
    ]
    widths = fit(cells, width, [name in tab.whole for name in tab.columns])
    drawn = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0))
    for (name, *_), wide in zip(cells, widths, strict=True):
        justify: Literal["left", "right"] = "right" if name in tab.right else "left"
        drawn.add_column(Text("\n".join(fold(name, wide))), justify=justify, width=wide, no_wrap=True)
    for row in zip(*(column[1:] for column in cells), strict=True):
        folded = ["\n".join(fold(cell, wide)) for cell, wide in zip(row, widths, strict=True)]
        styles = [STYLES.get(cell, "") for cell in row]
        drawn.add_row(*(Text(text, style=style) for text, style in zip(folded, styles, strict=True)))
    return drawn


def emit(tab: Table, stream: TextIO | None = None) -> None:
    """Print a table to `stream` (default: standard output), drawn when that is a terminal."""
    out = stream or sys.stdout
    if not out.isatty():
        print(plain(tab), file=out)
        return
    from rich.text import Text

    screen = console(out)
    if tab.title:
        screen.print(Text(tab.title, style="bold"))
    if tab.lead is not None and not _fits(tab, tab.lead, screen.width):
        print("\n".join(upright(tab, tab.lead, screen.width)), file=out)
        return
    drawn = rich_table(tab, screen.width)
    needed = sum(column.width or 0 for column in drawn.columns) + GAP * len(drawn.columns)
    if needed > screen.width:  # something that is never cut: the terminal breaks the lines
        screen = console(out, needed)
    screen.print(drawn, soft_wrap=True)


def upright(tab: Table, lead: str, width: int) -> list[str]:
    """Each row in lines of its own: the cell of `lead`, then the others behind their columns' names."""
    lines = []
    for row in tab.rows:
        cells = dict(zip(tab.columns, row, strict=True))
        wrapper = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
        lines += wrapper.wrap(cells.pop(lead))
        wrapper.initial_indent = wrapper.subsequent_indent = INDENT
        lines += wrapper.wrap(", ".join(f"{name} {cell}" for name, cell in cells.items()))
    return lines


def _fits(tab: Table, lead: str, width: int) -> bool:
    """Can the table be drawn without cutting a word of this column?"""
    place = tab.columns.index(lead)
    widths = fit([[name, *tab.column(name)] for name in tab.columns], width, [False] * len(tab.columns))
    return all(len(word) <= widths[place] for cell in tab.column(lead) for word in cell.split())


def console(stream: TextIO | None = None, width: int | None = None) -> "Console":
    """A rich console that neither guesses at markup nor highlights numbers."""
    from rich.console import Console

    return Console(file=stream or sys.stdout, width=width, markup=False, highlight=False, emoji=False)
