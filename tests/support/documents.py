"""Reads the snippets of a page in Markdown, for tests that run them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ("Snippet", "commands", "snippets")

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"# (\S+\.\w+)\n")


class Snippet(NamedTuple):
    """A fenced block, and the line where it begins."""

    line: int
    language: str
    text: str

    @property
    def file(self) -> str | None:
        """The file that it says it is, in a comment on its first line."""
        found = _NAME.match(self.text)
        return found[1] if found else None


def snippets(page: str) -> Iterator[Snippet]:
    """The fenced blocks of a page, in order."""
    for found in _FENCE.finditer(page):
        yield Snippet(page.count("\n", 0, found.start()) + 1, found[1], found[2])


def commands(text: str) -> Iterator[list[str]]:
    """The commands of a console: lines that begin with a dollar sign, and those that they go on in."""
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            yield shlex.split(line[2:], comments=True)
