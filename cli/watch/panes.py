"""The two panes of the screen: they draw the lines that can be seen, and no others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, final

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Click, MouseScrollDown, MouseScrollUp, Resize
from textual.strip import Strip
from textual.widget import Widget

from ...scoring.display.texts import one_line
from ..text.names import distinct
from .painting import Painter, header, name_width, row_line
from .state import WatchedLog

__all__ = ("SessionsPane", "TranscriptPane")

_WHEEL = 3  # lines


def _strip(text: Text, console: Console, width: int, style: str = "") -> Strip:
    line = text.copy()
    line.truncate(width, pad=True)
    if style:
        line.stylize(style)
    plain = Style.null()  # Textual's filters, for NO_COLOR say, take no segment without a style
    parts = [Segment(part.text, part.style or plain) for part in line.render(console)]
    return Strip(parts, width)


@final
class SessionsPane(Widget, can_focus=True):
    """The list of sessions, newest first, with fixed titles."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("k", "move(-1)", show=False),
        Binding("j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("g", "move(-1000000000)", show=False),
        Binding("G,shift+g", "move(1000000000)", show=False),
    ]

    def __init__(self, watched: WatchedLog, measure: str) -> None:
        super().__init__(id="sessions")
        self._watched = watched
        self._measure = measure
        self._top = 0  # row at the top
        self._at = 0  # row of the selected session
        self._count = 0
        self._moment: int | None = None
        self._choosing = False  # whether a session of the list is to be selected
        self._first: str | None = None  # the session at the top
        self._visible: list[str] = []
        self._named: tuple[object, ...] = ()  # the state for which the names were made
        self._names: dict[str, str] = {}

    @property
    def _height(self) -> int:
        return max(self.size.height - 1, 0)

    def update(self) -> None:
        """Draws what there is now."""
        watched = self._watched
        self._count = watched.listed
        self.border_title = self._title()
        rank = None if watched.selected is None else watched.rank(watched.selected)
        if rank is not None:
            self._at = rank
        first = None if self._first is None else watched.rank(self._first)
        if self._top and first is not None and watched.moment is None:
            self._top = first  # others may have come above what can be seen
        if watched.moment != self._moment:
            self._moment = watched.moment
            self._into_view()
        self._top = min(max(self._top, 0), max(self._count - self._height, 0))
        self._look()
        self.refresh()
        if self._choosing and watched.selection.settled:
            self._choosing = False
            if rank is None:
                self._top = self._at = 0
                self.action_move(0)

    def _title(self) -> Text:
        """The title, with the search and order of the list; names and queries are not markup."""
        selection = self._watched.selection
        parts = ["Sessions"]
        if selection.text:
            parts.append(one_line(selection.text))
        if selection.order:
            parts.append(f"by {selection.order}")
        return Text(" · ".join([*parts, f"effort in {self._measure}"]))

    def _look(self) -> None:
        """Notes which sessions can be seen, and finds names that tell them apart."""
        end = self._top + self._height
        self._watched.show(self._top, end)
        visible = self._watched.sessions(self._top, end)
        self._first = visible[0] if visible else None
        self._visible = visible
        if self._named != (visible, self.size.width):
            self._named = visible, self.size.width
            names = distinct(visible, name_width(self.size.width - 3))
            self._names = dict(zip(visible, names, strict=True))
        shown = f"{self._top + 1}–{min(self._top + self._height, self._count)} of {self._count:,}"
        self.border_subtitle = shown if self._count > self._height else ""

    def render_line(self, y: int) -> Strip:
        """A line of the pane."""
        width, console = self.size.width, self.app.console
        if y == 0:
            return _strip(Text.assemble("  ", header(width - 3)), console, width)
        if y > len(self._visible):
            nothing = self._nothing() if y == 1 and not self._count else ""
            return _strip(Text(nothing, "dim"), console, width)
        session = self._visible[y - 1]
        found = self._watched.row(session)
        row = row_line(found, self._measure, width - 3, self._names.get(session, session))
        if session != self._watched.selected:
            late = "dim" if self._watched.is_late(found) else ""
            return _strip(Text.assemble("  ", row), console, width, late)
        line = Text(f"▸ {row.plain}")  # in one colour, whatever it says
        return _strip(line, console, width, "bold reverse" if self.has_focus else "bold")

    def _nothing(self) -> str:
        """The text of an empty list."""
        watched = self._watched
        if watched.listing or watched.selection.searching:
            return ""
        return "no session meets this" if watched.selection.active else "no sessions yet"

    def on_resize(self, event: Resize) -> None:
        """There is more room, or less."""
        self._into_view()
        self.update()

    def action_move(self, by: int) -> None:
        """Selects another session."""
        if self._count:
            self._at = min(max(self._at + by, 0), self._count - 1)
            for session in self._watched.sessions(self._at, self._at + 1):
                self._watched.select(session)
            self._into_view()
            self._first = None
            self.update()

    def select_listed(self) -> None:
        """Selects the first session of the list, once that is read, if the selected one is not there."""
        self._choosing = True
        self.update()

    def action_page(self, by: int) -> None:
        """Selects a session a page away."""
        self.action_move(by * max(self._height - 1, 1))

    def _into_view(self) -> None:
        height = max(self._height, 1)
        if self._at < self._top:
            self._top = self._at
        elif self._at >= self._top + height:
            self._top = self._at - height + 1

    def on_click(self, event: Click) -> None:
        """Selects what was clicked."""
        row = self._top + event.y - 2  # the border, and the titles
        if 0 <= row < self._count:
            self.action_move(row - self._at)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Scrolls the list."""
        self._scroll(_WHEEL)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Scrolls the list."""
        self._scroll(-_WHEEL)

    def _scroll(self, by: int) -> None:
        self._top += by
        self._first = None
        self.update()


@final
class TranscriptPane(Widget, can_focus=True):
    """The selected session; its end stays in view until the user scrolls up."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll(-1)", show=False),
        Binding("down", "scroll(1)", show=False),
        Binding("k", "scroll(-1)", show=False),
        Binding("j", "scroll(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("g", "top", show=False),
        Binding("G,shift+g", "end", show=False),
    ]

    def __init__(self, watched: WatchedLog) -> None:
        super().__init__(id="transcript")
        self._watched = watched
        self._painter: Painter | None = None
        self._top: tuple[int, int] | None = None  # entry and line in it; None keeps the end in view
        self._lines: list[Text] = []

    def update(self) -> None:
        """Draws what there is now."""
        timeline, width = self._watched.timeline, self.size.width
        painter = self._painter
        if timeline is None or not width:
            self._painter = None
        elif painter is None or painter.timeline is not timeline or painter.width != width:
            if painter is None or painter.timeline is not timeline:
                self._top = None
            self._painter = Painter(timeline, width)
        self._fill()
        self.refresh()

    def _fill(self) -> None:
        """Finds the lines that can be seen."""
        height = self.size.height
        count = self._watched.shown.entries
        if self._painter is None or not count:
            self._lines = []
            return
        if self._top is not None:
            entry, line = self._top
            self._lines = self._from(entry, line, height) if entry < count else []
            if len(self._lines) == height:
                return
        self._top = None
        tail: list[Text] = []
        for entry in range(count - 1, -1, -1):
            tail.extend(reversed(self._of(entry)))
            if len(tail) >= height:
                break
        self._lines = tail[:height][::-1]

    def _of(self, entry: int) -> Sequence[Text]:
        assert self._painter is not None
        return self._painter.lines(entry, self._watched.shown)

    def _from(self, entry: int, line: int, height: int) -> list[Text]:
        lines = list(self._of(entry)[line:])
        while len(lines) < height and entry + 1 < self._watched.shown.entries:
            entry += 1
            lines += self._of(entry)
        return lines[:height]

    def _place(self) -> tuple[int, int]:
        """TimelineEntry and line at the top."""
        if self._top is not None:
            return self._top
        left = self.size.height
        for entry in range(self._watched.shown.entries - 1, -1, -1):
            lines = len(self._of(entry))
            if lines >= left:
                return entry, lines - left
            left -= lines
        return 0, 0

    def render_line(self, y: int) -> Strip:
        """A line of the pane."""
        text = self._lines[y] if y < len(self._lines) else Text()
        if not self._lines and y == 0:
            text = Text("reading…" if self._watched.selected else "no session selected", "dim")
        return _strip(text, self.app.console, self.size.width)

    def on_resize(self, event: Resize) -> None:
        """There is more room, or less."""
        self._top = None
        self.update()

    def action_scroll(self, by: int) -> None:
        """Scrolls by a number of lines."""
        if self._painter is None:
            return
        entry, line = self._place()
        count = self._watched.shown.entries
        line += by
        while line < 0 and entry:
            entry -= 1
            line += len(self._of(entry))
        while entry < count and line >= len(self._of(entry)):
            line -= len(self._of(entry))
            entry += 1
        self._top = (entry, max(line, 0)) if entry < count else None
        self.update()

    def action_page(self, by: int) -> None:
        """Scrolls by a page."""
        self.action_scroll(by * max(self.size.height - 2, 1))

    def action_top(self) -> None:
        """Scrolls to the beginning."""
        self._top = (0, 0)
        self.update()

    def action_end(self) -> None:
        """Scrolls to the end, and keeps it in view."""
        self._top = None
        self.update()

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Scrolls the transcript."""
        self.action_scroll(_WHEEL)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Scrolls the transcript."""
        self.action_scroll(-_WHEEL)
