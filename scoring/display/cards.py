"""The card of a person who plays a part: their role, goal and knowledge, and how to act the part.

The private part of a session may also hold numbers for simulated users and scorers. The card
leaves these out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, final

import msgspec

from ...engine.events import JSON
from ...engine.text import text_of

__all__ = ("CARD", "KNOWN", "Part", "Section", "card_of", "in_words")

CARD: Final = "card"
"""The key of the ``Part`` in a private part."""

KNOWN: Final = "What you know"
"""The title of the section on the person's wishes and knowledge."""

_LATER: Final = "second thoughts"


@final
class Part(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a task's human, for the person playing it.

    Attributes:
        role: who they are.
        goal: what they want.
        manner: how to act the part, a line each.
    """

    role: str
    goal: str
    manner: tuple[str, ...] = (
        "Say what you want in words of your own, a piece at a time, as it comes up.",
        "Do not show this card. You do not mind what it does not mention.",
        "Say so when something is wrong. End the session when you are content, or give up.",
    )


class Section(NamedTuple):
    """A section of a card: its title, and its lines."""

    title: str
    lines: tuple[str, ...]


def in_words(private: JSON) -> JSON:
    """A private part without what only rules can use.

    If it has a ``profile``, which describes the person in words, its other objects hold the same in
    numbers and are left out.
    """
    if not isinstance(private, Mapping) or "profile" not in private:
        return private
    return {name: part for name, part in private.items() if not isinstance(part, Mapping)}


def card_of(private: JSON) -> tuple[Section, ...]:
    """The card in a private part; if that lacks a ``Part``, only the person's knowledge."""
    known = in_words(private)
    later: JSON = None
    if isinstance(known, Mapping) and "profile" in known:
        later = known.get(_LATER)
        known = [one for name, one in known.items() if name != _LATER]
    part = private.get(CARD) if isinstance(private, Mapping) else None
    try:
        card = None if part is None else msgspec.convert(part, Part)
    except msgspec.ValidationError:
        card = None
    sections = [
        Section("Your role", (card.role,) if card else ()),
        Section("Your goal", (card.goal,) if card else ()),
        Section(KNOWN, tuple(_lines(known))),
        Section("What may change your mind", tuple(_lines(later))),
        Section("How to act the part", card.manner if card else ()),
    ]
    return tuple(section for section in sections if section.lines)


def _lines(value: JSON) -> list[str]:
    if value is None:
        return []
    if isinstance(value, Mapping):
        return [f"{name}: {line}" for name, part in value.items() for line in _lines(part)]
    if isinstance(value, list | tuple):
        return [line for part in value for line in _lines(part)]
    return [text_of(value)]
