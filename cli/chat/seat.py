"""A seat for a chat, and which one fits: the whole screen of a terminal, or plain lines."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from ...engine.errors import InvalidInput, MissingExtra
from ...experiments.chat import ChatSeat
from ..output import say
from ..text.terminal import screen
from .plain import PlainSeat, StandardInput

__all__ = ("open_seat",)


def open_seat(*, plain: bool) -> ChatSeat:
    """Opens a seat at this program's terminal; uses plain lines without a terminal or on request.

    If Textual is not installed, it also uses plain lines and says what to install.

    Raises:
        InvalidInput: there is no standard input.
    """
    if sys.stdin is None:  # a program that was started with none
        raise InvalidInput("chat needs a standard input to type at")
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
