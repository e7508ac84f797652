"""Texts of the shared output and of messages: their lines, their words, and the new ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from .diff import Matching, matching
from .events import JSON

__all__ = (
    "NUMBER_WORDS",
    "count_words",
    "lines_of",
    "natural",
    "new_lines",
    "new_words",
    "one_of",
    "quantity",
    "suggestion",
    "text_of",
    "written_words",
)

NUMBER_WORDS: Mapping[str, int] = {
    word: number
    for number, word in enumerate(
        "one two three four five six seven eight nine ten eleven twelve".split(), start=1
    )
}
"""The numbers that are commonly written as words."""

_encoder = msgspec.json.Encoder()
_DIGITS = re.compile(r"(\d+)")
_LONGEST_NUMBER = 19  # digits of a number that counts as one
_CHARACTERS = (
    r"[\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]"
)
"""Characters of Chinese and Japanese; compiled when a text first needs it, since that takes long."""


def text_of(content: JSON) -> str:
    """A content as text: itself, or the JSON of a structure, a line per entry."""
    if isinstance(content, str):
        return content
    return msgspec.json.format(_encoder.encode(content), indent=1).decode()


def lines_of(content: JSON) -> list[str]:
    """The lines of a content's text; none if it is blank."""
    text = text_of(content)
    return text.splitlines() if text.strip() else []


def count_words(text: str) -> int:
    """How many words a text has: runs of characters between white space.

    Chinese and Japanese are written without spaces, so each of their characters counts as a word.
    """
    if text.isascii():
        return len(text.split())
    others, characters = re.subn(_CHARACTERS, " ", text)
    return len(others.split()) + characters


def new_lines(old: Sequence[str], new: Sequence[str]) -> str:
    """The lines that a diff of two texts adds, which a reader has to look at.

    A line that was changed, moved or repeated is read as a whole; deleted lines are not read. See
    ``diff.matching`` for the work that this takes, and the result beyond its limit.
    """
    return "\n".join(matching(old, new).added(new) if old else new)


def new_words(old: Sequence[str], new: Sequence[str]) -> str:
    """The words of ``new_lines`` minus the words of the lines that the diff removes.

    So a changed word counts as one word, a moved line as none, and a repeated line as its words.
    """
    return written_words(matching(old, new), old, new)


def written_words(found: Matching, old: Sequence[str], new: Sequence[str]) -> str:
    """``new_words`` of two texts that were compared already."""
    fresh, gone = found.added(new), found.removed(old)
    if not fresh or not gone:
        return "\n".join(fresh)
    removed = Counter(" ".join(gone).split())
    written: list[str] = []
    for word in " ".join(fresh).split():
        if removed[word]:
            removed[word] -= 1
        else:
            written.append(word)
    return " ".join(written)


def quantity(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun, in the plural unless it is 1.

    Args:
        number: how many there are.
        noun: the word for one of them.
        plural: of several; None for the noun with an s.
    """
    return f"1 {noun}" if number == 1 else f"{number:,} {plural or f'{noun}s'}"


def natural(text: str) -> tuple[str | int, ...]:
    """What texts are compared by so that 2 comes before 10, in any case: their words and numbers in turn."""
    words = _DIGITS.split(text.casefold())
    parts: list[str | int] = [*words]
    parts[1::2] = [int(word) if len(word) <= _LONGEST_NUMBER else 0 for word in words[1::2]]
    return tuple(parts)


def one_of(names: Sequence[str]) -> str:
    """Names to choose from: ``a``, ``a or b``, ``a, b or c``."""
    return " or ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def suggestion(name: str, known: Iterable[str]) -> str:
    """A hint at the name that may have been meant, for the end of an error message.

    Args:
        name: the name that is not known.
        known: the names that are.

    Returns:
        ``; did you mean 'task'?``, or the first of the known names if none is similar; empty if there are none.
    """
    from difflib import get_close_matches  # imported only on an error

    names = sorted(set(known))
    close = get_close_matches(name, names, n=3, cutoff=0.6)
    if close:
        return f"; did you mean {one_of([repr(match) for match in close])}?"
    if not names:
        return ""
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"; choose from {shown}"
