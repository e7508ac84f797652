"""The rating of a round by a person on rules: gain, cost, and repeated questions.

    s = value(gain) - effort cost · minutes - 1 if asked the same again - strictness

The gain is the change in utility as they estimate it, from -1 to 1. The minutes are those of reading
what others wrote since their last act, and of typing that act. The rating is ``s``, rounded, within 1 to 5.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from ..engine.events import MessageSent
from ..engine.rounds import is_act
from ..engine.session.decisions import Rate
from ..engine.session.view import View
from ..engine.text import count_words
from .manner import is_query
from .personas import Persona

__all__ = ("QUESTION", "Felt", "felt", "rated")

_NOTHING: Final = 2.0
"""The value of a round that changed nothing."""

_SLOPE, _ENOUGH, _FURTHER = 20.0, 0.1, 3.0
"""Points for each unit of utility gained, the gain up to which that holds, and the points after it."""

QUESTION: Final = 0.05
"""The gain that a person expects of a question about something that they care for."""

_READS, _TYPES = 238.0, 52.0
"""Words a minute, as in ``docs/people.md``."""

_AGAIN: Final = 1.0
_ENDS = re.compile(r"(?<=[.!?])")  # a pattern for questions takes quadratic time


class Felt(msgspec.Struct, frozen=True):
    """The worth of a round to a person, before its cost.

    Attributes:
        value: in points of the scale from 1 to 5.
        why: in their words.
    """

    value: float
    why: str = ""


def felt(gain: float, why: str = "") -> Felt:
    """The worth of a round by its gain in estimated utility, from -1 to 1."""
    value = _NOTHING + _SLOPE * min(gain, _ENOUGH) + _FURTHER * max(0.0, gain - _ENOUGH)
    return Felt(min(5.0, max(1.0, value)), why)


def rated(one: Felt, view: View, persona: Persona) -> Rate:
    """The rating that follows: less what the round cost, by how strict the person is."""
    since, typed = 0, 0
    for record in view.records:
        if record.actor == view.me and is_act(record):
            since = record.version
            event = record.event
            typed = count_words(event.text) if isinstance(event, MessageSent) else 0
    heard = [m for m in view.messages if m.actor != view.me and m.version > since]
    read = sum(count_words(message.text) for message in heard)
    value = one.value - persona.strictness
    value -= persona.effort_cost * (read / _READS + typed / _TYPES)
    again = _is_asked_again(view, since)
    given = min(5, max(1, round(value - again * _AGAIN)))
    return Rate(given, "I have been asked that before." if again and given < 3 else one.why)


def _is_asked_again(view: View, since: int) -> bool:
    """Whether all that was asked since the person's last act had been asked before; not if they asked back."""
    own = [message.text for message in view.messages if message.actor == view.me]
    if own and is_query(own[-1]):
        return False
    before: set[str] = set()
    now: set[str] = set()
    for message in view.messages:
        if message.actor != view.me:
            parts = _ENDS.split(message.text)
            asked = {one.strip().lower() for one in parts if one.endswith("?") and one != "?"}
            (now if message.version > since else before).update(asked)
    return bool(now) and now <= before
