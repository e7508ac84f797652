"""Many ways to say a thing, and reading them: phrases by key, and patterns over words.

The writer and the reader share nothing but the text. The writer picks one of many variants. The reader
goes by key words and the words around them, and can misread, as people do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Final, final

import msgspec

from ..engine.text import NUMBER_WORDS
from ..users.deferrals import DEFERRALS, is_deferral, say_deferral

__all__ = (
    "DEFERRALS",
    "Heard",
    "Patterns",
    "Phrases",
    "counted",
    "is_deferral",
    "number_in",
    "say_deferral",
    "sentences",
    "spelled",
    "unread",
)

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_LONGEST: Final = 500  # characters of a sentence that are read: patterns may be slow on more

_KNOWN: Final = 1024
"""Most sentences whose meaning is kept."""

_NUMBERS: Final = ("no", *NUMBER_WORDS)
_SPELLED: Final = 10  # numbers up to this are words
_NUMBER = re.compile(rf"\b(\d[\d,]{{0,14}}|{'|'.join(NUMBER_WORDS)})\b")


@final
class Phrases:
    """Ways to say things.

    Args:
        variants: templates by key, with ``{fields}``.
        openings: texts that may come before any of them; repeat the likelier ones.
    """

    def __init__(
        self, variants: Mapping[str, Sequence[str]], *, openings: Sequence[str] = ("",)
    ) -> None:
        self._variants = {key: tuple(texts) for key, texts in variants.items()}
        self._openings = tuple(openings)

    @property
    def keys(self) -> tuple[str, ...]:
        """All that can be said."""
        return tuple(self._variants)

    def variants(self, key: str, **fields: object) -> tuple[str, ...]:
        """All ways to say a thing, without openings.

        Raises:
            KeyError: there is no such key, or a field is missing.
        """
        return tuple(text.format(**fields) for text in self._variants[key])

    def say(self, key: str, words: Random, **fields: object) -> str:
        """One of the ways, with a capital at its beginning.

        Raises:
            KeyError: there is no such key, or a field is missing.
        """
        text = words.choice(self._openings) + words.choice(self.variants(key, **fields))
        return text[:1].upper() + text[1:]


class Heard(msgspec.Struct, frozen=True):
    """Something that was read.

    Attributes:
        key: its phrase's key.
        fields: the pattern's named groups, without those that did not match.
        sentence: the sentence that it is in.
    """

    key: str
    fields: Mapping[str, str]
    sentence: str


@final
class Patterns:
    """Reads texts by words and their neighbourhood.

    Args:
        patterns: regular expressions by key, the first that matches counts; upper and lower case are
            alike. Named groups are the fields.
    """

    def __init__(self, patterns: Mapping[str, str | Sequence[str]]) -> None:
        self._patterns = {
            key: [re.compile(p, re.IGNORECASE) for p in ((one,) if isinstance(one, str) else one)]
            for key, one in patterns.items()
        }
        self._known: dict[str, tuple[Heard, ...]] = {}

    def read(self, text: str) -> tuple[Heard, ...]:
        """All that is read, sentence by sentence: each key at most once in a sentence."""
        return tuple(heard for sentence in sentences(text) for heard in self._in(sentence))

    def questions(self, text: str) -> tuple[Heard, ...]:
        """All that is read in sentences that end in a question mark."""
        asked = (sentence for sentence in sentences(text) if sentence.endswith("?"))
        return tuple(heard for sentence in asked for heard in self._in(sentence))

    def _in(self, sentence: str) -> tuple[Heard, ...]:
        """All that is read in a sentence; minds read the same ones again and again."""
        found = self._known.get(sentence)
        if found is None:
            if len(self._known) >= _KNOWN:
                self._known.clear()
            found = self._known[sentence] = tuple(self._found(sentence))
        return found

    def _found(self, sentence: str) -> Iterator[Heard]:
        plain = sentence.replace("’", "'")
        for key, patterns in self._patterns.items():
            found = next((m for p in patterns if (m := p.search(plain)) is not None), None)
            if found is not None:
                fields = {name: text for name, text in found.groupdict().items() if text}
                yield Heard(key, fields, sentence)


def unread(
    phrases: Phrases, patterns: Patterns, fields: Mapping[str, Mapping[str, object]] = {}
) -> list[str]:
    """The variants that are not read as what they say: for a test of both.

    Args:
        phrases: what is said.
        patterns: reads it.
        fields: values for the fields of the templates, by key.
    """
    return [
        text
        for key in phrases.keys
        for text in phrases.variants(key, **fields.get(key, {}))
        if key not in [heard.key for heard in patterns.read(text)]
    ]


def sentences(text: str) -> list[str]:
    """The sentences of a text, with their punctuation; very long ones are cut short."""
    return [part[:_LONGEST] for part in _SENTENCE_END.split(text.strip()) if part]


def counted(number: int, one: str, many: str) -> str:
    """A number of things in words: ``one city``, ``three cities``, ``14 cities``."""
    said = _NUMBERS[number] if number <= _SPELLED else str(number)
    return f"{said} {one if number == 1 else many}"


def spelled(names: Sequence[str]) -> str:
    """Names as a list in words: ``Chinese, French and Indian``."""
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def number_in(text: str) -> int | None:
    """The first number in a text, in digits or as a word up to twelve; None if it has none."""
    found = _NUMBER.search(text.lower())
    if found is None:
        return None
    word = found[1]
    return NUMBER_WORDS[word] if word in NUMBER_WORDS else int(word.replace(",", ""))
