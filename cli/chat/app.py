"""The screen of ``duolog chat``: conversation, output, measures, and the input beneath them."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from typing import ClassVar, final

import anyio
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.events import Resize
from textual.widgets import Static

from ..text.terminal import is_closed
from .completion import Completion, complete
from .composer import Composer
from .panes import ConversationPane, OutputPane
from .state import ChatState

__all__ = ("KEYS", "ChatApp")

_WIDE = 100  # columns needed to show the output next to the conversation
_HUNG_UP = 1  # the number of SIGHUP, which Windows lacks
_LOOK = 1.0  # seconds between looks whether the terminal is still there

KEYS = """\
Keys:
  Enter              send; Ctrl+J begins a new line
  Up, Down           what you sent before
  Tab                complete a command
  Ctrl+Left, +Right  a word back or on; Ctrl+W deletes the word before
  PgUp, PgDn         scroll the output
  Ctrl+Up, +Down     scroll the conversation; so does Shift with PgUp, PgDn
  Ctrl+O             the output alone, and back
  Ctrl+C             leave; the session stays open"""
"""What help says of the keys."""

_HINT = "Enter sends · Ctrl+J new line · ↑ history · PgUp/PgDn output · /help · /quit"


@final
class ChatApp(App[int]):
    """Draws a chat, and returns what the person sends; its result is the signal that ended it.

    Args:
        state: what is shown.
        send: takes what the person sends; None for the end of the input.

    Attributes:
        mounted: set once it is on the screen.
    """

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #panes { layout: vertical; height: 1fr; }
    #conversation { height: 3fr; border: round $foreground 50%; padding: 0 1; }
    #side { height: 2fr; display: none; }
    #output { height: 1fr; border: round $foreground 50%; padding: 0 1 0 0; }
    #panes.has-output #side { display: block; }
    Screen.wide #panes { layout: horizontal; }
    Screen.wide #conversation { width: 1fr; height: 1fr; }
    Screen.wide #side { display: block; width: 1fr; height: 1fr; }
    #panes.zoomed #conversation { display: none; }
    #panes.zoomed #side { display: block; height: 1fr; }
    #conversation, #output { scrollbar-size-vertical: 1; }
    #activity, #question { height: auto; padding: 0 1; }
    #measures { height: auto; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    #hint { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    #question { text-style: bold; }
    #side-measures { height: auto; border: round $foreground 50%; padding: 0 1; display: none; }
    Screen.wide #side-measures { display: block; }
    Screen.wide #measures { display: none; }
    #composer { height: auto; max-height: 8; border: round $foreground; padding: 0 1; }
    #composer:focus { border: round $accent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "scroll_output(-1)", show=False, priority=True),
        Binding("pagedown", "scroll_output(1)", show=False, priority=True),
        Binding("shift+pageup,ctrl+pageup", "scroll_conversation(-10)", show=False, priority=True),
        Binding(
            "shift+pagedown,ctrl+pagedown", "scroll_conversation(10)", show=False, priority=True
        ),
        Binding("ctrl+up", "scroll_conversation(-2)", show=False, priority=True),
        Binding("ctrl+down", "scroll_conversation(2)", show=False, priority=True),
        Binding("ctrl+o", "zoom", show=False, priority=True),
        Binding("f1", "help", show=False, priority=True),
        Binding("ctrl+c", "leave", show=False, priority=True),
        Binding("ctrl+q", "leave", show=False, priority=True),
    ]

    def __init__(self, state: ChatState, send: Callable[[str | None], None]) -> None:
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"  # the terminal's own colours, be they dark or light
        self._state = state
        self._send = send
        self._composer = Composer(self._complete)
        self._conversation = ConversationPane()
        self._output = OutputPane()
        self._drawing = False
        self._over: str | None = None
        self.mounted = anyio.Event()

    @property
    def draft(self) -> str:
        """The text that the person has typed but not sent."""
        return self._composer.text

    def compose(self) -> ComposeResult:
        """Yields the widgets of the screen."""
        with Container(id="panes"):
            yield self._conversation
            with Vertical(id="side"):
                yield self._output
                yield Static(id="side-measures")
        yield Static(id="activity")
        yield Static(id="measures")
        yield Static(id="question")
        yield self._composer
        yield Static(id="hint")

    def on_mount(self) -> None:
        """Begins to draw."""
        self._state.changed = self._changed
        self._composer.focus()
        self._draw()
        self._hint(_HINT)
        if not self.is_headless:
            self.set_interval(_LOOK, self._leave_with_terminal)
        self.mounted.set()

    def on_resize(self, event: Resize) -> None:
        """Puts the panes side by side if there is room."""
        self.screen.set_class(event.size.width >= _WIDE, "wide")

    def restore(self, sent: Iterable[str]) -> None:
        """Adds the person's texts from an earlier run to the history."""
        self._composer.past.restore(sent)

    def end(self, farewell: str) -> None:
        """The session is over: the screen stays until the person has read it."""
        self._over = farewell
        self._changed()

    def _leave_with_terminal(self) -> None:
        """Exits if the terminal was closed without a signal; Textual would otherwise read its end
        forever.
        """
        if is_closed():
            self.exit(_HUNG_UP)

    def _complete(self, line: str) -> Completion:
        return complete(line, self._state.actions)

    def _changed(self) -> None:
        """Schedules a redraw of the screen, once for all that changes meanwhile."""
        if not self._drawing:
            self._drawing = True
            self.call_later(self._draw)

    def _draw(self) -> None:
        self._drawing = False
        state = self._state
        self._conversation.draw(state.entries)
        self._output.draw(state.output, state.title)
        self.query_one("#panes").set_class(bool(state.output), "has-output")
        measures = state.measures
        self.query_one("#side-measures", Static).update(Text("\n".join(measures.lines())))
        self.query_one("#measures", Static).update(Text("\n".join(measures.lines(brief=True))))
        self._say("#activity", "" if self._over else state.activity.line)
        question = f"{state.question}\n  /yes or /no, with a reason if you like"
        self._say("#question", question if state.question else "")
        if self._over:
            self._hint(f"{self._over} Enter leaves.")

    def _say(self, where: str, text: str) -> None:
        """Shows a text on a separate line; hides the line if the text is empty."""
        line = self.query_one(where, Static)
        line.display = bool(text)
        line.update(Text(text))

    def _hint(self, text: str) -> None:
        self.query_one("#hint", Static).update(Text(text, no_wrap=True, overflow="ellipsis"))

    def on_composer_edited(self, event: Composer.Edited) -> None:
        """Shows completions of the command being typed."""
        completion = event.completion
        if self._over:
            return
        words = "  ".join(completion.words)
        one = len(completion.words) == 1
        self._hint((completion.hint if one or not words else words) or completion.hint or _HINT)

    def on_composer_sent(self, event: Composer.Sent) -> None:
        """Passes on the text that the person sent; exits if the session is over."""
        if self._over is None:
            self._send(event.text)
        else:
            self.exit()

    def on_composer_ended(self) -> None:
        """The person has nothing more to say."""
        if self._over is None:
            self._send(None)
        else:
            self.exit()

    # --- keys -------------------------------------------------------------------------------------

    def action_scroll_output(self, by: int) -> None:
        """Scrolls the output by a page."""
        self._output.scroll_relative(y=by * max(self._output.size.height - 1, 1), animate=False)

    def action_scroll_conversation(self, by: int) -> None:
        """Scrolls the conversation by lines."""
        self._conversation.scroll_relative(y=by, animate=False)

    def action_zoom(self) -> None:
        """Gives all the room to the output, or takes it back."""
        self.query_one("#panes").toggle_class("zoomed")

    def action_help(self) -> None:
        """Shows the commands and keys."""
        self._send("/help")

    def action_leave(self) -> None:
        """Leaves the session open."""
        self.exit(signal.SIGINT)
