"""A seat for a chat, and which one fits: the whole screen of a terminal, or plain lines."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from typing import Protocol

from ...engine.errors import InvalidInput, MissingExtra
from ...scoring.replay import Step
from ...users.person import Seat
from ..output import say
from ..text.terminal import screen
from .plain import PlainSeat, StandardInput

__all__ = ("ChatSeat", "open_seat")


class ChatSeat(Seat, Protocol):
    """A seat that follows the session's log and its scoring besides."""

    def follow(self, step: Step) -> None:
        """Takes the next record of the session's log, with the updates that it brought about."""
        ...

    async def host(self, play: Callable[[], Awaitable[str | None]]) -> int | None:
        """Runs a chat here, until it ends or the person leaves.

        Args:
            play: runs the session; gives what the person should read before the seat is given up,
                None for nothing.

        Returns:
            The signal that ended it (Ctrl-C counts as SIGINT); None for none.
        """
        ...


def open_seat(*, plain: bool) -> ChatSeat:
    """A seat at this program's terminal; of plain lines where there is none, or they are wanted.

    At a terminal without Textual it is plain lines too, and a line says what to install.

    Raises:
        InvalidInput: there is no standard input.
    """
    if sys.stdin is None:  # a program that was started with none
        raise InvalidInput("there is no standard input to type at")
    console = screen()
    # Textual reads the standard input and draws on the standard error.
    on_screen = sys.stdin.isatty() and console.is_terminal and sys.stderr.isatty()
    if on_screen and not plain:
        if find_spec("textual") is not None:
            from .screen import ScreenSeat

            return ScreenSeat()
        say(
            f"duolog: {MissingExtra('tui', 'chatting on the whole screen')}; plain lines until then"
        )
    return PlainSeat(StandardInput(sys.stdin), console)
