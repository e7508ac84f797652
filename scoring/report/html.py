"""A document as HTML: a self-contained page, or the part of a page of the workbench.

A page embeds its figures as data, with a style sheet and the script that draws them. It loads nothing:
its content security policy forbids it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files

import msgspec

from ...engine.text import quantity
from .document import ABSENT, Cell, Column, Document, Figure, Note, Section, Table

__all__ = ("PagePart", "document_html", "document_page", "documents_page", "figure_data")

_NOTES = 3  # notes under a table that are shown; more can be opened
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src blob:"


class PagePart(msgspec.Struct, frozen=True, kw_only=True):
    """A document on a page that holds several, one of which is shown.

    Attributes:
        name: by which it is chosen.
        document: the document.
        transcripts: titles and texts to put on the page, by the id of their place: rows and dots lead
            there.
    """

    name: str = ""
    document: Document
    transcripts: Mapping[str, tuple[str, str]] = {}


def document_page(
    document: Document, *, title: str | None = None, transcripts: Mapping[str, tuple[str, str]] = {}
) -> str:
    """A page: HTML with everything that it needs.

    Args:
        document: the document.
        title: the title of the page; by default the document's.
        transcripts: see ``PagePart``.
    """
    return documents_page([PagePart(document=document, transcripts=transcripts)], title=title)


def documents_page(parts: Sequence[PagePart], *, title: str | None = None) -> str:
    """A page of several documents, the first of which is shown until another one is chosen.

    Args:
        parts: the documents, at least one.
        title: the title of the page; by default that of the first document.
    """
    assets = files(__package__).joinpath("page")
    style, script = (
        "".join(assets.joinpath(name).read_text(encoding="utf-8") for name in names)
        for names in (("page.css", "report.css"), ("charts.js", "parts.js"))
    )
    name = escape(parts[0].document.title if title is None else title)
    choice = ""
    if len(parts) > 1:
        options = "".join(f"<option>{escape(part.name)}</option>" for part in parts)
        choice = f'<p class="choice"><label>Task <select id="part">{options}</select></label></p>\n'
    others = "".join(
        f'<template data-part="{escape(part.name)}">{_part(part, title)}{_data(part)}</template>\n'
        for part in parts[1:]
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{name}</title>\n<style>\n{style}</style>\n</head>\n"
        f'<body>\n{choice}<main class="report">\n{_part(parts[0], title)}\n</main>\n'
        f"{others}{_data(parts[0], name='data')}\n"
        f'<script type="module">\n{script}\nshowParts(document.querySelector("main"), drawFigures);\n'
        "</script>\n</body>\n</html>\n"
    )


def _part(part: PagePart, title: str | None) -> str:
    document = part.document
    about = escape(" · ".join(part for part in (document.about, document.size) if part))
    name = escape(document.title if title is None else title)
    head = f'<h1>{name}</h1>\n<p class="note">{about}</p>'
    return "\n".join([head, document_html(document), *_transcripts(part.transcripts)])


def _data(part: PagePart, name: str = "") -> str:
    data = figure_data(part.document).replace("<", "\\u003c")
    return f'<script type="application/json"{f" id={chr(34)}{name}{chr(34)}" if name else ""}>{data}</script>'


def figure_data(document: Document) -> str:
    """The figures of a document as JSON, for the script that draws them."""
    return msgspec.json.encode(document.figures).decode()


def document_html(document: Document) -> str:
    """The contents of a document: tables, notes, and places for its figures, without a script."""
    parts: list[str] = []
    if document.verdict:
        parts.append(f'<p class="verdict">{escape(document.verdict)}</p>')
    switches = '<div class="switches" role="group" aria-label="Series"></div>'
    if not any(figure.series for figure in document.figures):
        switches = ""
    if switches and not document.verdict:
        parts.append(switches)
    for place, section in enumerate(document.sections):
        parts += _section(section)
        if place == 0 and document.verdict:
            warnings = sum(note.warning for note in document.notes)
            said = f", {quantity(warnings, 'warning')}" if warnings else ""
            parts.append(f"<details><summary>About the data{said}</summary>")
            parts += _notes(document.notes)
            parts.append("</details>")
            parts += [switches] if switches else []
        elif place == 0:
            parts += _notes(document.notes)
    if not document.sections:
        parts += _notes(document.notes)
    return "\n".join(parts)


def _section(section: Section) -> Iterator[str]:
    if section.title and not section.figures:
        about = f" <small>{escape(section.about)}</small>" if section.about else ""
        yield f"<h2>{escape(section.title)}{about}</h2>"
    if section.only_page and any(table.folded for table in section.tables):
        yield '<p><input type="search" class="find" placeholder="Find a session" aria-label="Find a session"></p>'
    for table in section.tables:
        yield from _table(table)
    fold = section.tables and len(section.notes) > _NOTES
    if fold:
        yield f"<details><summary>{quantity(len(section.notes), 'note')} on these tables</summary>"
    yield from _notes(section.notes)
    if fold:
        yield "</details>"
    if section.figures:
        rows = any(len(figure.panels) > 1 for figure in section.figures)
        yield f'<div class="figures{" rows" if rows else ""}">'
        for figure in section.figures:
            yield from _figure(figure)
        yield "</div>"


def _notes(notes: Sequence[Note]) -> Iterator[str]:
    for note in notes:
        yield f'<p class="note{" warning" if note.warning else ""}">{escape(note.text)}</p>'


def _figure(figure: Figure) -> Iterator[str]:
    yield f'<section class="figure"><h2>{escape(figure.title)}</h2>'
    yield f'<p class="note">{escape(figure.note)}</p>'
    yield f'<div class="panels" id="{figure.name}"></div></section>'


def _table(table: Table) -> Iterator[str]:
    labels = table.labels[-1:]
    columns = [*labels, *[one for heading in table.headings for one in heading.columns]]
    if table.folded:
        yield f'<details id="{table.anchor}"><summary>{escape(table.title)}</summary>'
    elif table.title:
        yield f"<h3>{escape(table.title)}</h3>"
    yield '<div class="wide" tabindex="0" role="region" aria-label="Table"><table>\n<thead>'
    if any(heading.title for heading in table.headings):
        head = f'<td colspan="{len(labels)}"></td>' if labels else ""
        for heading in table.headings:
            wide = len(heading.columns)
            if heading.title:
                title = escape(heading.title)
                head += f'<th class="span" colspan="{wide}" scope="colgroup">{title}</th>'
            else:
                head += f'<td colspan="{wide}"></td>'
        yield f"<tr>{head}</tr>"
    yield f"<tr>{''.join(map(_title, columns))}</tr>\n</thead>\n<tbody>"
    section = ""
    for row in range(table.rows):
        if (here := table.section(row)) != section:
            section = here
            yield f'<tr class="section"><th colspan="{len(columns)}" scope="colgroup">{escape(section)}</th></tr>'
        series = table.series[row] if table.series else None
        marks = "" if series is None else f' data-series="{series}"'
        marks += f' id="{table.anchors[row]}"' if table.anchors else ""
        cells = [_cell(one, row, named=one in labels, series=series) for one in columns]
        yield f"<tr{marks}>{''.join(cells)}</tr>"
    yield "</tbody></table></div>" + ("</details>" if table.folded else "")


def _title(one: Column) -> str:
    if not one.title:
        return "<td></td>"
    return f'<th scope="col"{_LEFT if one.left else ""}>{escape(one.title)}</th>'


_LEFT = ' class="name"'


def _cell(one: Column, row: int, *, named: bool, series: int | None) -> str:
    cell = one.cells[row]
    tag, marks = ("th", ' scope="row"') if named else ("td", "")
    marks += _LEFT if one.left else ""
    swatch = ""
    if named and series is not None:
        swatch = f'<span class="swatch" data-colour="{series}"></span>'
    return f"<{tag}{marks}>{swatch}{_inside(cell)}</{tag}>"


def _inside(cell: Cell) -> str:
    text = escape(cell.text())
    if text == ABSENT:
        return f'<abbr title="{escape(cell.reason or "")}">{ABSENT}</abbr>'
    if cell.link:
        text = f'<a href="{escape(cell.link)}">{text}</a>'
    below = f"<code>{escape(cell.below)}</code>" if cell.below else cell.span()
    return f"{text}<small>{below}</small>" if below else text


def _transcripts(texts: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    if texts:
        yield '<div class="transcripts"><h2>Transcripts</h2>'
        for anchor, (title, text) in texts.items():
            yield f'<details id="{anchor}"><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>'
        yield "</div>"
