"""The screen of ``duolog watch``: two panes, a line that says which moment it is, and the keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, final

import anyio
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.events import Resize
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ...engine.text import quantity
from ...scoring.display.texts import duration, has_times, is_virtual, moment, number, one_line
from ..diagnostics import muted
from ..text.names import distinct
from ..text.terminal import is_closed
from .panes import SessionsPane, TranscriptPane
from .state import WatchedLog

__all__ = ("WatchApp", "watch_log")

_WIDE = 120  # columns needed to show the panes side by side

_LOOK = 1.0  # seconds between looks whether the terminal is still there

_MARK = "bold reverse"  # without a colour, which Textual would replace here

_HELP = """\
↑ ↓  PgUp PgDn   another session, or scroll the transcript
g  G             to the first, to the last
Tab              the other pane
/                search and filter the list; Esc shows all again
s  S             sort the list by something else; turn it round

←  →             back and on by one event
[  ]             back and on by a round
Home             the beginning of the session
End  f           follow what is going on

?                this help
q                quit

Going back shows list and transcript as the log was then.
■ stop advised: a tolerance τ is used up.
Filters: agent=auto,two-stage  state!=open  utility=..0.3
rounds=5..  tau=2  session=menu*  or a text, several at once."""


_KEYS = (
    ("q", "quit"),
    ("?", "help"),
    ("/", "search"),
    ("s", "sort"),
    ("←→", "event"),
    ("f", "follow"),
    ("↑↓", "select"),
    ("Tab", "pane"),
    ("[ ]", "round"),
    ("Home", "begin"),
)


def _keys(width: int) -> Text:
    """The keys in one line; only the first ones if there is not enough room."""
    text = Text(" ", no_wrap=True)
    for key, what in _KEYS:
        if text.cell_len + len(key) + len(what) + 1 > width:
            break
        text.append(key, style="bold").append(f" {what}  ", style="dim")
    return text


class _Help(ModalScreen[None]):
    """The keys; any key closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,enter,space", "dismiss", show=False)
    ]

    def compose(self) -> ComposeResult:
        """What it shows."""
        help_ = Static(Text(_HELP), id="help")
        help_.border_title = "Keys"
        help_.border_subtitle = "Esc closes"
        yield help_

    def on_click(self) -> None:
        """A click closes it, too."""
        self.dismiss()


_HINT = "agent=NAME  state=open,failed  utility=..0.3  rounds=5..  tau=2  or any text"
_PAUSE = 0.2  # seconds without a key after which the list follows what was typed


@final
class _SearchLine(ModalScreen[None]):
    """Takes a query; the list narrows while it is typed. Enter keeps it, Esc restores the old one.

    Args:
        text: the query so far.
        search: called with what was typed.
        outcome: what to say of it.
    """

    CSS = """
    _SearchLine { background: transparent; align: left bottom; }
    _SearchLine > Vertical { height: 2; background: ansi_default; }
    _SearchLine Input { border: none; height: 1; padding: 0 1; background: ansi_default; }
    _SearchLine Input:focus { border: none; }
    _SearchLine Static { height: 1; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "give_up", show=False, priority=True),
        Binding("ctrl+c,ctrl+q", "app.quit", show=False, priority=True),
    ]

    def __init__(
        self, text: str, search: Callable[[str], None], outcome: Callable[[], str]
    ) -> None:
        super().__init__()
        self._before = text
        self._search = search
        self._outcome = outcome
        self._typed = 0

    def compose(self) -> ComposeResult:
        """What it shows."""
        with Vertical():
            yield Static(Text(_HINT, style="dim"), id="outcome")
            yield Input(self._before, placeholder="search", id="query", select_on_focus=False)

    def update(self) -> None:
        """Shows what came of the query."""
        typed = bool(self.query_one(Input).value.strip())
        text = Text(self._outcome() if typed else _HINT, style="dim", no_wrap=True)
        self.query_one("#outcome", Static).update(text)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Searches as soon as the user stops typing."""
        self._typed += 1
        typed = self._typed

        def follow() -> None:
            if typed == self._typed:
                self._search(event.value)
                self.update()

        self.set_timer(_PAUSE, follow)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Keeps the query."""
        self._leave(event.value)

    def action_give_up(self) -> None:
        """Restores the query that there was."""
        self._leave(self._before)

    def _leave(self, text: str) -> None:
        self._typed += 1
        self._search(text)
        self.dismiss()


@final
class WatchApp(App[None]):
    """Shows a log that is being watched.

    Args:
        watched: the log; the caller awaits its ``run``.
        name: the name of the log.
        measure: the measure of the effort, for the list.
    """

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #title { height: 1; }
    #moment { height: auto; max-height: 6; } /* a failure may name a long path */
    #keys { height: 1; }
    #panes { layout: vertical; height: 1fr; }
    #sessions { height: 35%; min-height: 5; border: round $foreground 50%; }
    #transcript { height: 1fr; border: round $foreground 50%; padding: 0 1 0 0; }
    #panes.wide { layout: horizontal; }
    #panes.wide #sessions { width: 50%; max-width: 84; height: 1fr; }
    #panes.wide #transcript { width: 1fr; }
    #sessions:focus, #transcript:focus { border: heavy $accent; }
    _Help { align: center middle; }
    #help { width: auto; height: auto; max-width: 100%; max-height: 100%; border: round $accent; padding: 0 1; overflow: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "step(-1)", show=False, priority=True),
        Binding("right", "step(1)", show=False, priority=True),
        Binding("left_square_bracket,shift+left", "step_round(-1)", show=False),
        Binding("right_square_bracket,shift+right", "step_round(1)", show=False),
        Binding("home", "begin", show=False, priority=True),
        Binding("f,end", "follow", show=False, priority=True),
        Binding("question_mark", "help", show=False),
        Binding("slash", "search", show=False),
        Binding("escape", "search_nothing", show=False),
        Binding("s", "sort", show=False),
        Binding("S,shift+s", "sort_reversed", show=False),
        Binding("q,ctrl+c,ctrl+q", "quit", show=False, priority=True),
    ]

    def __init__(self, watched: WatchedLog, name: str, measure: str) -> None:
        self._choose = watched.selected is None  # nobody did
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"  # the terminal's own colours, be they dark or light
        self._watched = watched
        self._name_of_log = name
        self._sessions = SessionsPane(watched, measure)
        self._transcript = TranscriptPane(watched)
        self._draw_pending = False

    def compose(self) -> ComposeResult:
        """Yields the widgets of the screen."""
        yield Static(id="title")
        yield Container(self._sessions, self._transcript, id="panes")
        yield Static(id="moment")
        yield Static(id="keys")

    def on_mount(self) -> None:
        """Begins to draw."""
        self._watched.changed = self._changed
        self._sessions.focus()
        self._draw()
        if self._choose:
            self._sessions.select_listed()
        if not self.is_headless:
            self.set_interval(_LOOK, self._leave_with_terminal)

    def _leave_with_terminal(self) -> None:
        """Exits if the terminal was closed without a signal; Textual would otherwise read its end
        forever.
        """
        if is_closed():
            self.exit()

    def on_resize(self, event: Resize) -> None:
        """Puts the panes side by side if there is room."""
        self.query_one("#panes").set_class(event.size.width >= _WIDE, "wide")
        self.query_one("#keys", Static).update(_keys(event.size.width))

    def _changed(self) -> None:
        """Schedules a redraw that covers all changes until then."""
        if not self._draw_pending:
            self._draw_pending = True
            self.call_later(self._draw)

    def _draw(self) -> None:
        self._draw_pending = False
        if isinstance(self.screen, _SearchLine):
            self.screen.update()
        self._sessions.update()
        self._transcript.update()
        [title] = distinct([self._watched.selected or "Transcript"], max(self.size.width - 8, 4))
        self._transcript.border_title = Text(title)  # verbatim: a name is not markup
        self._transcript.border_subtitle = self._outcome()
        self.query_one("#title", Static).update(self._title())
        self.query_one("#moment", Static).update(self._moment())

    def _title(self) -> Text:
        watched = self._watched
        sessions = quantity(watched.count, "session")
        if watched.selection.text:
            sessions = f"{watched.listed:,} of {sessions}"
        reading = " (reading the list…)" if watched.listing else ""
        if watched.selection.searching:
            reading = " (searching…)"
        return Text.assemble(
            (" duolog watch ", "bold"), one_line(self._name_of_log), f" · {sessions}{reading}"
        )

    def _outcome(self) -> str:
        shown = self._watched.shown
        if not shown.count:
            return ""
        parts = [shown.state, quantity(len(shown.points), "round")]
        if shown.missing is not None:
            parts.append(f"no utility, {shown.missing}")
        elif shown.points:
            parts.append(f"utility {number(shown.points[-1].utility)}")
        return " · ".join(parts)

    def _moment(self) -> Text:
        """The moment shown, and its place in the session."""
        watched = self._watched
        if watched.failure is not None:
            return Text(f" ✗ {watched.failure} ", style=_MARK)
        if watched.selection.problem and not isinstance(self.screen, _SearchLine):
            return Text(f" ✗ {watched.selection.problem} ", style=_MARK)
        timeline, shown = watched.timeline, watched.shown
        if watched.loading and timeline is not None and not shown.count:
            return Text(" reading…", style="dim")
        now = watched.moment is None
        text = Text(" ● following " if now else " ◀ looking back ", style="" if now else _MARK)
        if timeline is None or not shown.count:
            return text
        total = len(timeline.records)
        text.append(f" event {shown.count:,} of {total:,}", style="bold")
        text.append(f" · round {len(shown.points)}")
        time = timeline.records[shown.count - 1].time
        if has_times(timeline.records[0].time, timeline.records[-1].time):
            text.append(f" · {duration(time) if is_virtual(time) else moment(time)}")
        text.append(f" · position {timeline.position_of(shown.count):,}", style="dim")
        if watched.loading:
            text.append(" · reading…", style="dim")
        return text

    # --- keys -------------------------------------------------------------------------------------

    def action_step(self, by: int) -> None:
        """Goes back or on by an event."""
        self._transcript.action_end()
        self._watched.step(by)

    def action_step_round(self, by: int) -> None:
        """Goes back or on by a round."""
        self._transcript.action_end()
        self._watched.step_round(by)

    def action_begin(self) -> None:
        """Goes to the beginning of the session."""
        self._transcript.action_end()
        self._watched.go(1)

    def action_follow(self) -> None:
        """Follows the session live."""
        self._transcript.action_end()
        self._watched.follow()

    def action_search(self) -> None:
        """Asks the user for a search text."""
        selection = self._watched.selection
        line = _SearchLine(selection.text, selection.search, self._found)
        self.push_screen(line, lambda _: self._sessions.select_listed())

    def _found(self) -> str:
        """The result of a search."""
        selection = self._watched.selection
        if selection.problem:
            return f"✗ {selection.problem}"
        searching = " (searching…)" if selection.searching else ""
        return f"{self._watched.listed:,} of {quantity(self._watched.count, 'session')}{searching}"

    def action_search_nothing(self) -> None:
        """Shows the whole list again."""
        self._watched.selection.search("")

    def action_sort(self) -> None:
        """Sorts the list by something else."""
        self._watched.selection.next_order()

    def action_sort_reversed(self) -> None:
        """Turns the order of the list round."""
        self._watched.selection.reverse()

    def action_help(self) -> None:
        """Shows the keys."""
        self.push_screen(_Help())


async def watch_log(watched: WatchedLog, name: str, measure: str) -> None:
    """Shows a log until the user quits.

    Raises:
        DuologError: the log could not be followed to the end.
    """
    app = WatchApp(watched, name, measure)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watched.run)
        with muted():
            await app.run_async()
        tasks.cancel_scope.cancel()
    if watched.failure is not None:
        raise watched.failure
