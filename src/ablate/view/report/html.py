"""Pieces of HTML. Everything that comes from a record passes through `text`."""

import html
from collections.abc import Sequence

from ablate.view.figures.style import GLYPHS, Key, Panel, Plate
from ablate.view.table import Table
from ablate.view.text import clean

LINES = {"solid": "", "dash": "7 4", "dot": "2 3", "dashdot": "7 3 2 3"}


def text(item: object, limit: int | None = None) -> str:
    """Any text made harmless in HTML, on one line."""
    return html.escape(clean(item, limit))


def section(name: str, title: str, *parts: str) -> str:
    """A numberless section with an anchor."""
    inside = "\n".join(part for part in parts if part)
    return f'<section id="{name}"><h2>{text(title)}</h2>\n{inside}</section>'


def paragraph(words: str, soft: bool = False) -> str:
    """A paragraph of plain words."""
    return f'<p class="soft">{text(words)}</p>' if soft else f"<p>{text(words)}</p>"


def note(sentence: str, code: str = "", bad: bool = False) -> str:
    """A remark that stands out; `code` is set as code where the sentence contains it."""
    words = text(sentence)
    if code:
        words = words.replace(text(code), f"<code>{text(code)}</code>")
    return f'<div class="note{" bad" if bad else ""}">{words}</div>'


def listed(items: Sequence[str]) -> str:
    """A list of plain lines."""
    return f"<ul>{''.join(f'<li>{text(item)}</li>' for item in items)}</ul>" if items else ""


def details(summary: str, inside: str, opened: bool = False) -> str:
    """What unfolds."""
    return f"<details{' open' if opened else ''}><summary>{text(summary)}</summary>{inside}</details>"


def table_html(tab: Table, name: str = "", kind: str = "") -> str:
    """A table, its first column kept in sight; with a `name` its columns sort and its rows can be searched.

    `kind` is a class for the style sheet.
    """

    def cells(row: Sequence[str], tag: str) -> str:
        return "".join(
            f'<{tag} class="{"first" if i == 0 else ""}{" right" if tab.columns[i] in tab.right else ""}">'
            f"{text(cell)}</{tag}>"
            for i, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in tab.rows)
    mark = f' class="sorted" id="{name}"' if name else ""
    head = f"<thead><tr>{cells(tab.columns, 'th')}</tr></thead>"
    return f'<div class="scroll {kind}"><table{mark}>{head}<tbody>{body}</tbody></table></div>'


def key_html(keys: Sequence[Key]) -> str:
    """A legend: marks and lines as they are drawn."""
    return f'<ul class="key">{"".join(map(_entry, keys))}</ul>' if keys else ""


def plate_html(plate: Plate, control: str = "") -> str:
    """A figure: heading, what can be chosen, legend, panels, caption."""
    panels = "".join(map(panel_html, plate.panels))
    return (
        f'<figure id="figure-{plate.name}"><h3 class="plate">{text(plate.title)}</h3>'
        f"{control}{key_html(plate.key)}"
        f'<div class="{"wide" if plate.wide else "grid"}">{panels}</div>'
        f"<figcaption>{text(plate.caption)}</figcaption></figure>"
    )


def panel_html(panel: Panel) -> str:
    """The place of one panel; its height is the figure's, where that has one."""
    height = panel.figure["layout"].get("height")
    style = f' style="height:{int(height)}px"' if height else ""
    return (
        f'<div class="panel"><h4>{text(panel.title)}</h4>'
        f'<div class="plot" id="{panel.id}"{style} role="img" aria-label="{text(panel.title)}"></div></div>'
    )


def choice(name: str, label: str, options: Sequence[tuple[str, str]], chosen: str) -> str:
    """A menu of (value, words)."""
    items = "".join(
        f'<option value="{text(value)}"{" selected" if value == chosen else ""}>{text(words)}</option>'
        for value, words in options
    )
    return f'<label class="choice">{text(label)} <select id="{name}">{items}</select></label>'


def _entry(key: Key) -> str:
    mark = ""
    if key.dash is not None:
        mark += (
            '<svg class="swatch" width="26" height="8" aria-hidden="true"><line x1="0" x2="26" y1="4" y2="4" '
            f'stroke="{key.colour}" stroke-width="2.5" stroke-dasharray="{LINES[key.dash]}"/></svg>'
        )
    if key.symbol is not None:
        mark += f'<span style="color:{key.colour}">{GLYPHS[key.symbol]}</span> '
    return f"<li>{mark}{text(key.label)}</li>"
