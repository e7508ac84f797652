"""Lays out lines on the terminal: number, time and name on the left, wrapped text on the right."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import final

from rich.console import Console
from rich.text import Text

__all__ = ("Page",)

_GAP = "  "


@final
class Page:
    """Prints lines of three columns (a number, a time, who) and a text that wraps to their right.

    Args:
        console: where to.
        numbers: width of the numbers.
        times: width of the times; 0 for none.
        names: width of the names.
        out: called with each line, no wider than the console; None prints it.
    """

    def __init__(
        self,
        console: Console,
        *,
        numbers: int,
        times: int,
        names: int,
        out: Callable[[Text], object] | None = None,
    ) -> None:
        self.console = console
        self._numbers = numbers
        self._times = times
        self._names = names
        self._take = out or self._show

    @property
    def indent(self) -> int:
        """Columns on the left of the text."""
        gaps = 3 if self._times else 2
        return self._numbers + self._times + self._names + gaps * len(_GAP)

    @property
    def width(self) -> int:
        """Columns for the text."""
        return max(self.console.width - self.indent, 20)

    def line(
        self, text: Text, *, number: str = "", time: str = "", name: str = "", style: str = ""
    ) -> None:
        """Prints a text after its number, time and name; ``style`` is that of the name."""
        when = f"{time:>{self._times}}{_GAP}" if self._times else ""
        left = Text.assemble(
            (f"{number:>{self._numbers}}{_GAP}{when}", "dim"),
            (f"{name:<{self._names}}", style or "none"),
            _GAP,
        )
        self._print(left, self._wrapped(text, self.width))

    def block(self, lines: Iterable[Text]) -> None:
        """Prints lines that belong to the one above, after a vertical bar."""
        bar = Text.assemble(" " * self.indent, ("│ ", "dim"))
        for line in lines:
            left = bar
            for wrapped in self._wrapped(line, self.width - 4):
                self._out(Text.assemble(left, wrapped))
                left = Text.assemble(bar, "  ")

    def rule(self, title: Text, *, right: Text | None = None) -> None:
        """Prints a heading: a title and a rule, with a text at its right end if there is room."""
        width = self.console.width
        used = title.cell_len + 4
        line = Text.assemble(("── ", "dim"), title, " ")
        if right is not None and used + right.cell_len + 4 <= width:
            line.append("─" * (width - used - right.cell_len - 1), style="dim")
            self._out(Text.assemble(line, " ", right))
            return
        line.append("─" * max(width - used, 0), style="dim")
        self._out(line)
        if right is not None:
            self.plain(Text.assemble("   ", right))

    def plain(self, text: Text) -> None:
        """Prints a text over the whole width; wrapped lines keep the indent of the first."""
        depth = len(text.plain) - len(text.plain.lstrip(" "))
        body = text[depth:] if depth else text
        self._print(Text(" " * depth), self._wrapped(body, max(self.console.width - depth, 20)))

    def blank(self) -> None:
        """Prints an empty line."""
        self._take(Text())

    def _print(self, left: Text, lines: Iterable[Text]) -> None:
        first = True
        for line in lines:
            self._out(Text.assemble(left if first else " " * left.cell_len, line))
            first = False

    def _wrapped(self, text: Text, width: int) -> Iterable[Text]:
        for part in text.split("\n", allow_blank=True):
            yield from part.wrap(self.console, width) or [Text("")]

    def _out(self, line: Text) -> None:
        line.rstrip()
        self._take(line)

    def _show(self, line: Text) -> None:
        self.console.print(line, soft_wrap=True)
