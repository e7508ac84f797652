"""A seat on the whole screen of a terminal."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import final

import anyio

from ...engine.records import Record
from ...engine.session.view import View
from ...scoring.replay import Step
from ...users.person_commands import HELP
from ..diagnostics import muted
from ..output import say
from ..runtime import requests_to_end
from ..text.terminal import is_closed
from .app import KEYS, ChatApp
from .editor import edit_text
from .state import ChatState

__all__ = ("ScreenSeat",)


@final
class ScreenSeat:
    """A terminal's whole screen; a ``ChatSeat``.

    Attributes:
        state: what is shown.
        app: what draws it.
    """

    def __init__(self) -> None:
        self.state = ChatState()
        self.app = ChatApp(self.state, self._send)
        self._sent: deque[str | None] = deque()
        self._has_sent = anyio.Event()
        self._error: Exception | None = None
        self._editing = False
        self._begun = False

    async def host(self, play: Callable[[], Awaitable[str | None]]) -> int | None:
        """Takes the screen, runs the chat, and gives the screen back."""
        with muted():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self.run, play)
                tasks.start_soon(self._leave_on_signal)
                ended_by = await self.app.run_async()
                tasks.cancel_scope.cancel()
        if is_closed():
            _discard_errors()
        if self.app.draft.strip():
            say(f"You had typed this, and not sent it:\n{self.app.draft}")
        if self._error is not None:
            raise self._error
        return ended_by

    async def run(self, play: Callable[[], Awaitable[str | None]]) -> None:
        """Runs the chat on a screen that is taken; an error waits until the screen is given back."""
        await self.app.mounted.wait()
        try:
            farewell = await play()
        except Exception as error:  # noqa: BLE001  (``host`` raises it)
            self._error = error
            farewell = None
        if farewell is None:
            self.app.exit()
        else:
            self.app.end(farewell)

    async def read_line(self) -> str | None:
        """Waits for the person's next text."""
        while not self._sent:
            self._has_sent = anyio.Event()
            await self._has_sent.wait()
        return self._sent.popleft()

    def show(self, view: View, fresh: Sequence[Record]) -> None:
        """Takes the person's available actions; events come with the log, see ``follow``."""
        if not self._begun:  # texts from before the session was resumed can be sent again
            self._begun = True
            mine = [m.text for m in view.messages if m.actor == view.me and m.text != view.request]
            self.app.restore(mine)
        self.state.offer(view.actions_available)

    def follow(self, step: Step) -> None:
        """Shows events and measurements."""
        self.state.follow(step)

    def notify(self, text: str) -> None:
        """Adds a text to the conversation that only the person sees."""
        first = not self._begun  # instructions go above all events
        self.state.notify(f"{text}\n{KEYS}" if text == HELP else text, first=first)

    async def edit(self, text: str) -> str | None:
        """Leaves the screen to the editor."""
        self._editing = True
        try:
            with self.app.batch_update(), self.app.suspend():
                return await edit_text(text)
        finally:
            self._editing = False

    def _send(self, line: str | None) -> None:
        self._sent.append(line)
        self._has_sent.set()

    async def _leave_on_signal(self) -> None:
        """Restores the screen if the program is asked to end."""
        with requests_to_end(hang_up=True) as requests:
            async for number in requests:
                if number != signal.SIGINT or not self._editing:  # Ctrl-C was for the editor
                    self.app.exit(number)


def _discard_errors() -> None:
    """Discards what is written to standard error, which is closed by then: writing to it would fail."""
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
