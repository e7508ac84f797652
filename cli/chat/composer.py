"""The input of a chat: several lines with a cursor, history, completion and paste."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, final

from textual.binding import Binding, BindingsMap, BindingType
from textual.events import Key
from textual.message import Message
from textual.widgets import TextArea

from .completion import Completion

__all__ = (
    "Composer",
    "History",
)


@final
class History:
    """Lines that were sent, the newest last, and a place among them.

    The line that is being written follows the newest. Changes to any line are kept until a line is
    sent, so looking back loses nothing.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._changed: dict[int, str] = {}
        self._at = 0

    def add(self, line: str) -> None:
        """Takes a line that was sent, unless it is the newest already."""
        if line and self._lines[-1:] != [line]:
            self._lines.append(line)
        self._at = len(self._lines)
        self._changed.clear()

    def restore(self, lines: Iterable[str]) -> None:
        """Takes what was sent in an earlier run, as older than all that is here."""
        older = list(lines)
        self._lines[:0] = older
        self._changed = {at + len(older): line for at, line in self._changed.items()}
        self._at += len(older)

    def back(self, current: str) -> str | None:
        """The previous line; None if there is none.

        Args:
            current: the text in the input.
        """
        return self._go(self._at - 1, current)

    def forward(self, current: str) -> str | None:
        """The line after, in the end the one that is being written; None behind that.

        Args:
            current: the text in the input.
        """
        return self._go(self._at + 1, current)

    def _go(self, at: int, current: str) -> str | None:
        if not 0 <= at <= len(self._lines):
            return None
        self._changed[self._at] = current
        self._at = at
        return self._changed.get(at, self._lines[at] if at < len(self._lines) else "")


_NEW_LINE = frozenset({"ctrl+j", "alt+enter", "shift+enter"})

_WORDS: list[BindingType] = [
    Binding("alt+left,alt+b", "cursor_word_left", show=False),
    Binding("alt+right,alt+f", "cursor_word_right", show=False),
    Binding("alt+d,ctrl+delete", "delete_word_right", show=False),
]
"""Word keys as in shells, in addition to those of Textual."""

_EDITING = BindingsMap([*TextArea.BINDINGS, *_WORDS]).key_to_bindings


@final
class Composer(TextArea):
    """The person's input. Enter sends, and Ctrl+J begins a new line; so do
    Shift+Enter and Alt+Enter at a terminal that reports them.

    Args:
        complete: completes a line.
    """

    BINDINGS: ClassVar[list[BindingType]] = _WORDS

    class Sent(Message):
        """The person has sent a text.

        Attributes:
            text: without what no message can hold.
        """

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Ended(Message):
        """The person has ended the input: Ctrl+D in an empty one."""

    class Edited(Message):
        """The text or the cursor changed.

        Attributes:
            completion: how the text may go on.
        """

        def __init__(self, completion: Completion) -> None:
            super().__init__()
            self.completion = completion

    def __init__(self, complete: Callable[[str], Completion]) -> None:
        super().__init__(
            id="composer",
            compact=True,
            highlight_cursor_line=False,
            tab_behavior="focus",
            placeholder="Write to the agent, or / for a command",
        )
        self.border_title = "say"
        self._complete = complete
        self.past = History()

    @property
    def _completion(self) -> Completion:
        at_end = self.cursor_location == self.document.end
        return self._complete(self.text) if at_end else Completion(len(self.text))

    async def _on_key(self, event: Key) -> None:
        """Takes the keys that mean something else here than in an editor of texts."""
        key = event.key
        if key == "enter":
            self._send()
        elif key in _NEW_LINE:
            self.insert("\n")
        elif key == "tab":
            self._extend()
        elif key == "ctrl+d" and not self.text:
            self.post_message(self.Ended())
        elif key == "escape":
            self.selection = self.selection._replace(start=self.selection.end)
        elif key in _EDITING:  # at once: Textual's own way lets a key typed soon after overtake it
            for binding in _EDITING[key]:
                await self.run_action(binding.action)
        else:
            return
        event.stop()
        event.prevent_default()

    def _send(self) -> None:
        text = "".join(c for c in self.text if c.isprintable() or c in "\n\t").strip()
        self.past.add(text)
        self.text = ""
        self.post_message(self.Sent(text))

    def _extend(self) -> None:
        longer = self._completion.extend(self.text)
        if longer != self.text:
            self.put(longer)

    def put(self, text: str) -> None:
        """Replaces the text, the cursor at its end; can be undone."""
        self.replace(text, (0, 0), self.document.end)
        self.move_cursor(self.document.end)

    def update_suggestion(self) -> None:
        """Offers what would complete the line, and says so; called after each change."""
        completion = self._completion
        self.suggestion = completion.suggestion(self.text) if len(self.text) > 1 else ""
        self.post_message(self.Edited(completion))

    def action_cursor_up(self, select: bool = False) -> None:
        """Moves up; from the first line, to the previous text sent."""
        if select or not self.navigator.is_first_wrapped_line(self.cursor_location):
            super().action_cursor_up(select)
            return
        earlier = self.past.back(self.text)
        if earlier is not None:
            self.put(earlier)

    def action_cursor_down(self, select: bool = False) -> None:
        """Moves down; from the last line, to the next text sent."""
        if select or not self.navigator.is_last_wrapped_line(self.cursor_location):
            super().action_cursor_down(select)
            return
        later = self.past.forward(self.text)
        if later is not None:
            self.put(later)
