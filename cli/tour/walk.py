"""Walks through the pages of the tour: one at a time at a terminal, else all at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from .pages import TourPage

__all__ = ("walk",)

_QUIT = ("q", "Q", "\x04", "\x1b", "")


def walk(console: Console, pages: Sequence[TourPage]) -> None:
    """Prints the pages; at a terminal, waits for a key after each."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        for index in range(len(pages)):
            _print(console, pages, index)
        return
    with _key_by_key():
        for index in range(len(pages)):
            _print(console, pages, index)
            if index < len(pages) - 1 and not _goes_on():
                return


def _print(console: Console, pages: Sequence[TourPage], index: int) -> None:
    page, where = pages[index], f"{index + 1}/{len(pages)}"
    rest = max(console.width - len(page.title) - len(where) - 7, 1)
    console.print(
        Text.assemble(("━━ ", "dim"), (page.title, "bold"), (f" {'━' * rest} {where} ━", "dim")),
        soft_wrap=True,
    )
    console.print()
    page.print(console)


@contextmanager
def _key_by_key() -> Iterator[None]:
    """Makes the terminal pass on each key at once, and show none; Ctrl-C interrupts as ever."""
    if sys.platform == "win32":  # it takes lines: Enter has to be pressed after a key
        yield
        return
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin, termios.TCSANOW)  # keeps what was typed already
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _goes_on() -> bool:
    """Waits for a key; returns whether it asks for the next page. False if the terminal closed."""
    sys.stdout.write("Enter: next   q: quit ")
    sys.stdout.flush()
    key = os.read(sys.stdin.fileno(), 16).decode(errors="replace")
    # A terminal that cannot erase the line gets a new one.
    sys.stdout.write("\n" if os.environ.get("TERM", "dumb") == "dumb" else "\r\x1b[2K")
    sys.stdout.flush()
    return key not in _QUIT
