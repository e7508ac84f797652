"""The panes of the screen: the conversation, and the shared output with what changed in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import final

from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from ...scoring.display.diff import ChangedLine, Mark
from ...scoring.display.texts import clean
from .state import Entry

__all__ = ("ConversationPane", "OutputPane")

_MARKS: Mapping[Mark, str] = {"+": "bold green", "-": "dim red", "…": "dim", " ": ""}


@final
class ConversationPane(VerticalScroll, can_focus=False):
    """The conversation; its end stays in view until the person scrolls up."""

    def __init__(self) -> None:
        super().__init__(id="conversation")
        self.border_title = "conversation"
        self._drawn: Sequence[Entry] = ()

    def compose(self) -> ComposeResult:
        """What it shows."""
        yield Static(id="entries")

    def on_mount(self) -> None:
        """Keeps the end in view."""
        self.anchor()

    def draw(self, entries: Sequence[Entry]) -> None:
        """Draws the current conversation."""
        if len(entries) == len(self._drawn):
            return
        self._drawn = tuple(entries)
        text = Text()
        before: Entry | None = None
        for entry in entries:
            if before is not None:
                apart = entry.apart or before.apart or "\n" in entry.text.plain
                text.append("\n\n" if apart else "\n")
            if entry.name:
                text.append(f"{entry.name}: ", "bold cyan" if entry.name == "you" else "bold")
            text.append_text(entry.text)
            before = entry
        self.query_one("#entries", Static).update(text)


@final
class OutputPane(VerticalScroll, can_focus=False):
    """The shared output: ``+`` before a line that is new, ``-`` before one that is gone."""

    def __init__(self) -> None:
        super().__init__(id="output")
        self._drawn: Sequence[ChangedLine] = ()

    def compose(self) -> ComposeResult:
        """What it shows."""
        yield Static(id="lines")

    def draw(self, lines: Sequence[ChangedLine], title: str) -> None:
        """Draws the current output; scrolls to the change."""
        self.border_title = Text(title)  # verbatim: a name is not markup
        if lines is self._drawn:
            return
        self._drawn = lines
        self.query_one("#lines", Static).update(_marked(lines))
        first = next((at for at, line in enumerate(lines) if line.mark in "+-"), None)
        if first is not None:
            self.call_after_refresh(self._reveal, first / max(len(lines), 1))

    def _reveal(self, share: float) -> None:
        """Scrolls so far that the line at a share of the output can be seen."""
        line = int(share * self.virtual_size.height)
        if not self.scroll_y <= line < self.scroll_y + self.size.height - 1:
            self.scroll_to(y=max(line - 1, 0), animate=False)


def _marked(lines: Sequence[ChangedLine]) -> Table | Padding:
    """Lines with their marks; what wraps stays in its column."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(width=1, no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    for line in lines:
        style = _MARKS[line.mark]
        table.add_row(Text(line.mark, style), Text(clean(line.text), style))
    return table
