"""A document in the terminal: tables in plain columns, laid out for its width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from ..display.texts import clean
from .document import Column, Document, Heading, Table

__all__ = ("TerminalDocument", "drawn_table")

_RULE = "─"


@final
class TerminalDocument:
    """A document as a rich renderable: ``Console().print(TerminalDocument(document))``.

    Each number has its interval below it. A table that is too wide is set more narrowly, or divided.

    Args:
        document: the document.
    """

    def __init__(self, document: Document) -> None:
        self._document = document

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draws the document for the width of the console."""
        for text in self._parts(options.max_width):
            if options.ascii_only:
                text = _ascii(text)
            yield text

    def _parts(self, width: int) -> Iterator[Text]:
        found = self._document
        shown = [section for section in found.sections if not section.only_page]
        tables = any(section.tables for section in shown)
        yield _title(found.title, found.about, width)
        for section in shown:
            if section.named:
                yield _title(section.title, section.about, width)
            for table in section.tables:
                if table.title:
                    yield Text(clean(table.title), style="bold")
                yield from _blocks(table, width)
            if section.worded:
                for note in section.notes:
                    yield Text(clean(note.text), style="yellow" if note.warning else "")
                yield Text("")
        notes = [note for section in shown if not section.worded for note in section.notes]
        for note in dict.fromkeys([*notes, *found.notes]):
            style = "yellow" if note.warning else "dim" if tables else ""
            yield Text(clean(note.text), style=style)


def _title(title: str, about: str, width: int) -> Text:
    text = Text(clean(title), style="bold", no_wrap=True, overflow="ignore")
    between = "  " if len(title) + len(about) + 2 <= width else "\n"
    text.append(f"{between}{clean(about)}\n" if about else "\n", "not bold")
    return text


class _Set:
    """A column as it is set: its title, and each cell with the text below it."""

    def __init__(self, columns: Sequence[Column], *, narrow: bool, indent: str = "") -> None:
        one = columns[0]
        self.left = one.left
        self.cells = [indent + clean(cell.text(narrow=narrow)) for cell in one.cells]
        self.below = [cell.span() for cell in one.cells]
        self.title = clean(one.title)
        for other in columns[1:]:  # joined: a relative number next to the absolute one
            more = [cell.text(narrow=narrow) for cell in other.cells]
            wide, long = (
                max(map(len, [*self.cells, one.title])),
                max(map(len, [*more, other.title])),
            )
            self.cells = [f"{a:>{wide}} {b:>{long}}" for a, b in zip(self.cells, more, strict=True)]
            self.title = f"{self.title:>{wide}} {other.title:>{long}}"
        self.width = max(map(len, [self.title, *self.cells, *self.below]))

    def put(self, text: str, width: int) -> str:
        """A text of the column in its width."""
        return text.ljust(width) if self.left else text.rjust(width)


class _Block:
    """Some headings of a table, side by side: what fits the width, or all of it.

    Args:
        table: the table.
        headings: those to draw; the labels come before them.
        gap: characters between columns.
        narrow: percentages have no decimals.
    """

    def __init__(
        self, table: Table, headings: Sequence[Heading], gap: int = 2, *, narrow: bool = False
    ) -> None:
        indent = "  " if len(table.labels) > 1 else ""
        self._table = table
        self._gap = gap
        names = [_Set([one], narrow=narrow, indent=indent) for one in table.labels[-1:]]
        self._spans = [("", names)]
        for heading in headings:
            columns: list[list[Column]] = []
            for one in heading.columns:
                if one.joined:
                    columns[-1].append(one)
                else:
                    columns.append([one])
            sets = [_Set(some, narrow=narrow) for some in columns]
            if sets:
                self._spans.append((clean(heading.title), sets))
        self._spreads = [self._spread(*span) for span in self._spans]
        self.width = sum(self._spreads) + gap * (len(self._spreads) - 1)
        last = self._spans[-1][1][-1]
        if last.left and last is not names[-1]:  # texts that run on may be wider than the screen
            self.width -= last.width - len(last.title)

    def _spread(self, title: str, sets: Sequence[_Set]) -> int:
        return max(sum(one.width for one in sets) + self._gap * (len(sets) - 1), len(title))

    def draw(self) -> Text:
        """The block as text."""
        text = Text(no_wrap=True, overflow="ignore")
        between = " " * self._gap
        spans = list(zip(self._spans, self._spreads, strict=True))
        if any(title for (title, _), _ in spans):
            titles = [title.center(width) for (title, _), width in spans]
            rules = [(_RULE if title else " ") * width for (title, _), width in spans]
            text.append(between.join(titles).rstrip() + "\n", "bold")
            text.append(between.join(rules).rstrip() + "\n", "dim")
        placed: list[tuple[_Set, int]] = []
        for (
            _,
            sets,
        ), width in spans:  # the first is widened if the heading is wider than its columns
            rest = width - sum(one.width for one in sets) - self._gap * (len(sets) - 1)
            placed += [(one, one.width + (0 if place else rest)) for place, one in enumerate(sets)]
        if any(one.title for one, _ in placed):
            names = [one.put(one.title, width) for one, width in placed]
            text.append(between.join(names).rstrip() + "\n", "bold")
            text.append(_RULE * self.width + "\n", "dim")
        section = ""
        for row in range(self._table.rows):
            if (here := self._table.section(row)) != section:
                section = here
                text.append(f"{clean(section)}\n", "bold")
            cells = [one.put(one.cells[row], width) for one, width in placed]
            text.append(between.join(cells).rstrip() + "\n")
            if any(one.below[row] for one, _ in placed):
                below = [one.put(one.below[row], width) for one, width in placed]
                text.append(between.join(below).rstrip() + "\n", "dim")
        return text


def _blocks(table: Table, width: int) -> Iterator[Text]:
    """A table as one block if the width allows, else as few blocks as possible."""
    for gap, narrow in ((2, False), (1, False), (1, True)):
        whole = _Block(table, table.headings, gap, narrow=narrow)
        if whole.width <= width:
            yield whole.draw()
            return
    first = table.headings[: table.repeated]
    block = list(first)
    for heading in table.headings[table.repeated :]:
        full = _Block(table, [*block, heading]).width > width
        if len(block) > len(first) and (heading.splits or full):
            yield _Block(table, block).draw()
            block = list(first)
        block.append(heading)
    yield _Block(table, block).draw()


def drawn_table(table: Table, *, gap: int = 2) -> Text:
    """A table in one piece, with so many characters between its columns."""
    return _Block(table, table.headings, gap).draw()


def _ascii(text: Text) -> Text:
    """The same in ASCII, for terminals without Unicode."""
    plain = text.copy()
    changed = text.plain.translate(str.maketrans("─–·τ", "--|T"))
    plain.plain = changed.encode("ascii", "replace").decode()
    return plain
