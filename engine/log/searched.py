"""Searching the contents of sessions: the texts that a store keeps of them, and finds words in.

The texts are not part of the log. Folds make them of the records of a session for a search, so
appending costs nothing more. They can be dropped at any time, and ``forget`` erases those of its sessions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias, final, runtime_checkable

import msgspec

__all__ = ("Phrases", "Searchable", "SessionText", "found_in", "phrases_in", "words_in")

Phrases: TypeAlias = Sequence[Sequence[str]]
"""The search terms: phrases, each of which is words in a row. The last word may be the beginning of a longer one."""

_WORD: Final = re.compile(r"[^\W_]+")
_PHRASE: Final = re.compile(r'"([^"]*)"|(\S+)')
_LONGEST: Final = 100  # characters of a word that count


@final
class SessionText(msgspec.Struct, frozen=True):
    """What can be searched of a session.

    Attributes:
        session: session id.
        version: the version of the fold that made it.
        position: the position of the last record that it includes.
        parts: the text, in parts that are searched one by one.
    """

    session: str
    version: int
    position: int
    parts: tuple[str, ...]


def words_in(text: str) -> list[str]:
    """The words of a text: letters and digits, in lower case."""
    return [word[:_LONGEST].lower() for word in _WORD.findall(text)]


def phrases_in(text: str) -> list[list[str]]:
    """The phrases in a search as it is typed: words, and words in a row within double quotes."""
    found = [words_in(quoted or word) for quoted, word in _PHRASE.findall(text)]
    return [words for words in found if words]


def found_in(text: str, phrases: Phrases) -> bool:
    """Whether all phrases occur in a text."""
    words = f" {' '.join(words_in(text))}"
    return all(f" {' '.join(phrase)}" in words for phrase in phrases)


@runtime_checkable
class Searchable(Protocol):
    """A log whose store keeps the texts of sessions and searches them."""

    async def unread_texts(self, version: int) -> Sequence[str]:
        """The sessions without a current text, in order of their first records, without forgotten ones.

        Args:
            version: the version of the fold that makes the texts.

        Raises:
            LogClosed: the log is closed.
        """
        ...

    async def keep_texts(self, texts: Sequence[SessionText]) -> int:
        """Keeps texts, and returns how many were kept: none if the log cannot be written.

        A text of a session that was forgotten meanwhile is not kept.

        Raises:
            LogClosed: the log is closed.
        """
        ...

    async def search_texts(self, phrases: Phrases, version: int) -> Sequence[str]:
        """The sessions with a part in which all phrases occur, in order of their first records.

        Args:
            phrases: at least one.
            version: the version of the fold that made the texts.

        Raises:
            LogClosed: the log is closed.
        """
        ...

    async def found_texts(
        self, phrases: Phrases, version: int, sessions: Sequence[str]
    ) -> Sequence[tuple[str, str]]:
        """Of some sessions, the parts in which all phrases occur, each with its session.

        Args:
            phrases: at least one.
            version: the version of the fold that made the texts.
            sessions: which sessions.

        Raises:
            LogClosed: the log is closed.
        """
        ...
