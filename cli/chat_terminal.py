"""Where a person sits who chats: at a terminal with the output beside the chat, or at plain text."""

from __future__ import annotations

import codecs
import os
import re
import sys
import tempfile
import termios
import tty
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Protocol, final

import anyio
from rich.console import Console, Group, RenderableType
from rich.layout import Layout
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from ..engine.errors import InvalidInput
from ..engine.records import Record
from ..engine.session.view import View
from ..users.terminal import HELP, Seat
from .text.records import RecordFormatter
from .text.terminal import clean, number, screen

__all__ = ("ChatSeat", "Keys", "PlainSeat", "ScreenSeat", "chat_seat")

_ACTS = frozenset({"MessageSent", "ActionTaken", "SnapshotTaken", "ApprovalAsked", "ApprovalGiven"})
_TOLD = _ACTS | {"ActionResolved", "SessionClosed", "ProgressRated"}
_PROMPT = "> "
_SPECIAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[ -~])")
"""What a terminal sends for a key that is no text: an arrow, say, or page up."""
_CUT_OFF = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O)?\Z")
"""The beginning of one, whose rest is still to come."""
_MOVES = {"\x1b[5~": -10, "\x1b[6~": 10}
_LAST_WORD = re.compile(r"\S*\s*\Z")
_END = "\x04"


class ChatSeat(Seat, Protocol):
    """A seat that shows the utility too."""

    def score(self, utility: float | None) -> None:
        """Shows what the output is worth now."""
        ...

    def open(self) -> AbstractContextManager[None]:
        """Takes the terminal over, and gives it back."""
        ...


def chat_seat(*, plain: bool) -> ChatSeat:
    """A seat at this program's terminal; of plain lines where there is none, or they are wanted."""
    console = screen()
    if sys.stdin is None:  # a program that was started with none
        raise InvalidInput("there is no standard input to type at")
    keys = Keys(sys.stdin)
    if plain or not (console.is_terminal and sys.stdin.isatty()):
        return PlainSeat(keys, console)
    return ScreenSeat(keys, console, sys.stdin)


@final
class Keys:
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
        """What was typed since the last time; None at the end."""
        while True:
            await self._readable()
            if self._resumed.is_set():
                break
            await self._resumed.wait()  # what comes meanwhile is for somebody else
        data = os.read(self._fd, 4096)
        return self._decoder.decode(data) if data else None

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """Leaves what is typed to somebody else, an editor say."""
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
    """Lines in, lines out: for pipes, and for terminals that can do no more."""

    def __init__(self, keys: Keys, console: Console) -> None:
        self._keys = keys
        self._console = console
        self._formatter = RecordFormatter(full=True)
        self._buffer = ""
        self._said: set[str] = set()
        self._ended = False
        self._utility: float | None = None

    @contextmanager
    def open(self) -> Iterator[None]:
        """Nothing is taken over."""
        yield

    async def line(self) -> str | None:
        """The next line."""
        while "\n" not in self._buffer and not self._ended:
            typed = await self._keys.read()
            self._ended = typed is None
            self._buffer += typed or ""
        if "\n" not in self._buffer:
            line, self._buffer = self._buffer, ""
            return line or None
        line, _, self._buffer = self._buffer.partition("\n")
        self._said.add(line.strip())
        return line

    def show(self, view: View, fresh: Sequence[Record]) -> None:
        """Prints what others did, and what came of the person's own actions."""
        for record in fresh:
            told = self._formatter.format(record)
            typed = record.actor == view.me and getattr(record.event, "text", None) in self._said
            if told is None or typed or record.kind not in _TOLD:
                continue
            name = "" if told.quiet else f"{clean(record.actor)}: "
            self._console.print(Text.assemble((name, "bold"), told.text))
            for line in told.block:
                self._console.print(Text("  ") + line)

    def score(self, utility: float | None) -> None:
        """Prints the utility when it changes."""
        if utility != self._utility:
            self._utility = utility
            self._console.print(Text(f"utility: {number(utility)}", style="dim"))

    def tell(self, text: str) -> None:
        """Prints a text."""
        self._console.print(Text(clean(text), style="italic"))

    async def edit(self, text: str) -> str | None:
        """Opens the editor, if there is one."""
        with self._keys.elsewhere():
            return await edit_text(text)


@final
class ScreenSeat:
    """A terminal's whole screen: the chat, and beside it the output and what it is worth.

    Args:
        keys: of the terminal.
        console: of the terminal.
        source: the terminal itself.
    """

    def __init__(self, keys: Keys, console: Console, source: IO[str]) -> None:
        self._keys = keys
        self._console = console
        self._source = source
        self._formatter = RecordFormatter()
        self._chat: list[Text] = []
        self._output = ""
        self._scores: list[float | None] = []
        self._typed = ""
        self._cut_off = ""
        self._pending: list[str | None] = []
        self._scroll = 0
        self._live = Live(console=console, screen=True, auto_refresh=False, transient=True)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Takes the screen, and the keys one by one."""
        self.tell(f"{HELP}\nPage up and page down move the output.")
        with self._raw(), self._live:
            self._draw()
            yield

    async def line(self) -> str | None:
        """The next line that the person ends with return."""
        while not self._pending:
            typed = await self._keys.read()
            if typed is None:
                return None
            self._type(typed)
            self._draw()
        return self._pending.pop(0)

    def show(self, view: View, fresh: Sequence[Record]) -> None:
        """Adds to the chat, and shows the output as it stands."""
        for record in fresh:
            told = self._formatter.format(record)
            if told is not None and record.kind in _TOLD:
                mine = record.actor == view.me
                name = "" if told.quiet else f"{'you' if mine else clean(record.actor)}: "
                style = "bold cyan" if mine else "bold"
                self._chat.append(Text.assemble((name, style), told.text))
        self._output = view.snapshot_text
        self._draw()

    def score(self, utility: float | None) -> None:
        """Shows the utility, and what it was before."""
        self._scores.append(utility)
        self._draw()

    def tell(self, text: str) -> None:
        """Adds a text to the chat that only the person sees."""
        self._chat.append(Text(clean(text), style="dim italic"))
        self._draw()

    async def edit(self, text: str) -> str | None:
        """Leaves the screen to the editor."""
        self._live.stop()
        try:
            with self._keys.elsewhere(), self._cooked():
                return await edit_text(text)
        finally:
            self._live.start()
            self._draw()

    def _type(self, typed: str) -> None:
        """Takes keys: text, the few that edit it, and those that move the output."""
        typed = self._cut_off + typed
        cut_off = _CUT_OFF.search(typed)
        self._cut_off = cut_off[0] if cut_off else ""
        typed = typed.removesuffix(self._cut_off)
        for key in _SPECIAL.findall(typed):
            self._scroll = max(0, self._scroll + _MOVES.get(key, 0))
        for key in _SPECIAL.sub("", typed):
            if key == _END and not self._typed:
                self._pending.append(None)
            elif key in "\r\n":
                self._pending.append(self._typed)
                self._typed = ""
            elif key in "\x7f\b":
                self._typed = self._typed[:-1]
            elif key == "\x15":
                self._typed = ""
            elif key == "\x17":
                self._typed = _LAST_WORD.sub("", self._typed)
            elif key.isprintable():
                self._typed += key

    def _draw(self) -> None:
        if not self._live.is_started:
            return
        width, height = self._console.size
        inside = max(height - 5, 1)
        chat_width = max(width // 2 - 4, 10)
        lines = [line for text in self._chat for line in text.wrap(self._console, chat_width)]
        layout = Layout()
        layout.split_column(Layout(name="top"), Layout(self._input(width), size=3))
        output = clean(self._output).split("\n")
        self._scroll = min(self._scroll, max(0, len(output) - inside))
        shown: RenderableType = Text("\n".join(output[self._scroll :]), no_wrap=True)
        layout["top"].split_row(
            Layout(Panel(Group(*lines[-inside:]), title="chat")),
            Layout(Panel(shown, title=self._title())),
        )
        self._live.update(layout, refresh=True)

    def _input(self, width: int) -> Panel:
        room = max(width - 8, 1)
        return Panel(Text(f"{_PROMPT}{clean(self._typed)[-room:]}▌"), title="say, or /help")

    def _title(self) -> str:
        if not self._scores:
            return "output"
        return f"output, utility {' → '.join(number(score) for score in self._scores[-4:])}"

    @contextmanager
    def _raw(self) -> Iterator[None]:
        """Has the terminal give keys one by one, and not show them by itself."""
        fd = self._source.fileno()
        before = termios.tcgetattr(fd)
        tty.setcbreak(fd)
        try:
            yield
        finally:
            termios.tcsetattr(fd, termios.TCSADRAIN, before)

    @contextmanager
    def _cooked(self) -> Iterator[None]:
        """As a terminal is for other programs."""
        fd = self._source.fileno()
        now = termios.tcgetattr(fd)
        usual = list(now)
        usual[3] |= termios.ICANON | termios.ECHO
        termios.tcsetattr(fd, termios.TCSADRAIN, usual)
        try:
            yield
        finally:
            termios.tcsetattr(fd, termios.TCSADRAIN, now)


async def edit_text(text: str) -> str | None:
    """The text as the person left it in their editor; None where none is set or it failed."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        return None
    with tempfile.TemporaryDirectory(prefix="duolog-") as directory:
        path = Path(directory) / "output.txt"
        path.write_text(text, encoding="utf-8")
        command = f'{editor} "$1"'
        process = await anyio.run_process(
            ["sh", "-c", command, "sh", str(path)],
            check=False,
            stdin=sys.stdin,
            stdout=sys.stderr,
            stderr=sys.stderr,
        )
        return path.read_text(encoding="utf-8") if process.returncode == 0 else None
