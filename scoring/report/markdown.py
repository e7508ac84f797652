"""A document as GitHub-flavoured Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..display.texts import inert
from .document import Cell, Document, Note, Table

__all__ = ("document_markdown",)


def document_markdown(document: Document) -> str:
    """A document in Markdown: its tables, intervals in brackets, and its notes below them."""
    shown = [section for section in document.sections if not section.only_page]
    parts: list[str] = []
    for section in shown:
        if section.named:
            about = f": {section.about}" if section.about else ""
            parts.append(f"**{_escaped(section.title)}**{_escaped(about)}")
        for table in section.tables:
            if table.title:
                parts.append(f"**{_escaped(table.title)}**")
            parts.append("\n".join(_lines(table)))
        if section.worded:
            parts += [inert(note.text) for note in section.notes]
    lead = (
        [Note(text=f"All rows: {document.about.replace(' · ', ', ')}.")] if document.about else []
    )
    notes = [
        *lead,
        *[note for section in shown if not section.worded for note in section.notes],
        *document.notes,
    ]
    parts.append(" ".join(inert(note.text) for note in dict.fromkeys(notes)))
    return "\n\n".join(part for part in parts if part) + "\n"


def _lines(table: Table) -> Iterator[str]:
    columns = table.columns
    yield _line([one.name or one.title for one in columns])
    yield _line([":--" if one.left else "--:" for one in columns])
    for row in range(table.rows):
        yield _line([_text(one.cells[row], joined=one.joined) for one in columns])


def _text(cell: Cell, *, joined: bool) -> str:
    interval = "" if joined else cell.span()
    return f"{cell.text()} ({interval})" if interval else cell.text()


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_escaped, cells)) + " |"


def _escaped(text: str) -> str:
    return inert(text).replace("|", "\\|").replace("\n", " ")
