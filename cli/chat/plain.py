"""A seat of plain lines, in and out: for pipes, and for terminals that can do no more."""

from __future__ import annotations

import codecs
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, final

import anyio
from rich.console import Console
from rich.text import Text

from ...engine.records import Record
from ...engine.session.view import View
from ...scoring.display.texts import clean, number
from ...scoring.replay import Step
from ...scoring.trajectory.updates import UtilityUpdated
from ..text.records import RecordFormatter
from .editor import edit_text
from .measures import advice_text
from .state import SHOWN
from .trouble import trouble_text

__all__ = ("PlainSeat", "StandardInput")


@final
class StandardInput:
    """Bytes from a terminal or a pipe, as text, without ever blocking the loop.

    Args:
        source: e.g. the standard input.
    """

    def __init__(self, source: IO[bytes] | IO[str]) -> None:
        self._fd = source.fileno()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._resumed = anyio.Event()
        self._resumed.set()

    async def read(self) -> str | None:
        """Reads the text typed since the last call; None at the end of input."""
        while True:
            await self._readable()
            if self._resumed.is_set():
                break
            await self._resumed.wait()  # input typed meanwhile is for another program
        data = os.read(self._fd, 4096)
        return self._decoder.decode(data) if data else None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leaves what is typed to another program, an editor say."""
        self._resumed = anyio.Event()
        try:
            yield
        finally:
            self._resumed.set()

    async def _readable(self) -> None:
        try:
            await anyio.wait_readable(self._fd)
        except PermissionError:
            pass  # a plain file, which is always readable


@final
class PlainSeat:
    """Lines in, lines out; a ``ChatSeat``.

    Args:
        source: of what is typed.
        console: where lines are printed.
    """

    def __init__(self, source: StandardInput, console: Console) -> None:
        self._source = source
        self._console = console
        self._formatter = RecordFormatter(full=True)
        self._buffer = ""
        self._said: set[str] = set()
        self._ended = False
        self._utility: float | None = None

    async def host(self, play: Callable[[], Awaitable[str | None]]) -> int | None:
        """Runs the chat; signals do what they do to any program."""
        await play()
        return None

    async def read_line(self) -> str | None:
        """The next line."""
        while "\n" not in self._buffer and not self._ended:
            typed = await self._source.read()
            self._ended = typed is None
            self._buffer += typed or ""
        if "\n" not in self._buffer:
            line, self._buffer = self._buffer, ""
            return line or None
        line, _, self._buffer = self._buffer.partition("\n")
        self._said.add(line.strip())
        return line

    def show(self, view: View, fresh: Sequence[Record]) -> None:
        """Prints what others did, and what followed from the person's own actions."""
        for record in fresh:
            shown = self._formatter.format(record)
            typed = record.actor == view.me and getattr(record.event, "text", None) in self._said
            if shown is None or typed or record.kind not in SHOWN:
                continue
            name = "" if shown.quiet else f"{clean(record.actor)}: "
            self._console.print(Text.assemble((name, "bold"), shown.text))
            for line in shown.block:
                self._console.print(Text("  ") + line)
            if record.kind == "ApprovalAsked" and record.actor != view.me:
                self._console.print(
                    Text("  /yes or /no, with a reason if you like", style="italic")
                )

    def follow(self, step: Step) -> None:
        """Prints the utility when it changes, advice to stop, and trouble with a model."""
        trouble = trouble_text(step.record)
        if trouble is not None:
            self._console.print(Text(trouble, style="yellow"))
        for update in step.updates:
            advice = advice_text(update)
            if advice is not None:
                self._console.print(Text(advice, style="yellow"))
            if isinstance(update, UtilityUpdated) and update.utility != self._utility:
                self._utility = update.utility
                self._console.print(Text(f"utility: {number(update.utility)}", style="dim"))

    def notify(self, text: str) -> None:
        """Prints a text."""
        self._console.print(Text(clean(text), style="italic"))

    async def edit(self, text: str) -> str | None:
        """Opens the editor, if there is one."""
        with self._source.paused():
            return await edit_text(text)
