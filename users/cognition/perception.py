"""A simulated user's perception: they skim long messages, misread figures and forget.

The result is a separate view, in which the texts of messages are what the user took in. Old messages
are read again if a reminder, a repeated figure or one more turn makes a difference. All chance is
drawn from the seed of the user's traits and the place in the log, so one view gives one perception.
`LEFT_OUT` replaces unread and forgotten text. The user sees the request, the output and their own
actions unchanged.
"""

from __future__ import annotations

import re
from collections import Counter
from random import Random
from typing import Final, final

import msgspec

from ...engine import codec
from ...engine.events import MessageSent
from ...engine.records import Record
from ...engine.session.view import View
from ..personas import Cognition
from .adaptation import Adaptation

__all__ = ("LEFT_OUT", "Perception")

LEFT_OUT: Final = "[…]"
"""Stands in a message for what was not read, or is forgotten."""

_SENTENCE = re.compile(r"\S.*?(?:(?<=[.!?])(?=\s)|(?=\n)|\Z)\s*", re.DOTALL)
_FIGURE = re.compile(r"(?<![\w.,-])\d+(?:,\d{3})*(?![\w-]|[.,]\d)")


class _Heard(msgspec.Struct):
    """A message, and what may have it read otherwise later.

    Attributes:
        record: the record of the message.
        event: the message.
        trust: in others at that moment.
        turn: number of own turns by then.
        luck: how soon it is forgotten, by chance; from 0 to 1.
        figures: those that may be misread.
        state: by what it was read last.
    """

    record: Record
    event: MessageSent
    trust: float
    turn: int
    luck: float
    figures: tuple[str, ...]
    state: tuple[object, ...] = ()


@final
class Perception:
    """One user's memory of their session, within their limits; follows their view.

    Args:
        cognition: their limits.

    Attributes:
        now: how they have changed by then.
    """

    def __init__(self, cognition: Cognition) -> None:
        self.now = Adaptation(cognition)
        self._limits = cognition
        self._mind = View("", "human")
        self._heard: list[_Heard] = []
        self._times: Counter[str] = Counter()
        self._turns = 0
        self._nudged = 0

    def of(self, view: View) -> View:
        """The view as they have it in mind, until the next call.

        Args:
            view: always theirs, with what came since the last call.
        """
        self._mind.keep_up(view)  # chance is drawn by its actor and seeds
        for record in view.records[len(self._mind.records) :]:
            self._take(record)
        self._heard = [one for one in self._heard if not self._recall(one, view.request)]
        self._mind.keep_up(view)
        return self._mind

    def _take(self, record: Record) -> None:
        event = record.event
        self.now.feed(record, mine=record.actor == self._mind.me)
        self._mind.feed(record)
        if record.kind == "Nudged":
            self._nudged = record.version
        if not isinstance(event, MessageSent):
            return
        figures: tuple[str, ...] = ()
        if record.actor == self._mind.me:
            self._turns += 1
        elif self._limits.misreads:
            figures = tuple(dict.fromkeys(_FIGURE.findall(event.text)))
            self._times.update(figures)
        forgets = self._limits.memory is not None
        luck = self._chance("forget", record.version) if forgets else 0.0
        self._heard.append(_Heard(record, event, self.now.trust, self._turns, luck, figures))

    def _recall(self, one: _Heard, request: str) -> bool:
        """Reads a message again if the result may differ by now; returns whether it is forgotten for good."""
        version, text = one.record.version, one.event.text
        asked, forgotten = text == request, self._is_forgotten(one)
        repeated = tuple(self._times[figure] > 1 for figure in one.figures)
        state = (asked, forgotten, version < self._nudged, repeated)
        if state != one.state:
            one.state = state
            if forgotten and not asked:
                text = LEFT_OUT
            elif not asked and one.record.actor != self._mind.me:
                text = self._misread(version, self._read(one))
            self._mind.swap(_reworded(one, text))
        return forgotten and not asked

    def _read(self, one: _Heard) -> str:
        """The beginning and some of the later sentences; all of it if they were reminded since.

        Users who trust less read more.
        """
        limits, trust, version, text = self._limits, one.trust, one.record.version, one.event.text
        if limits.attention is None or version < self._nudged:
            return text
        budget = limits.attention / max(trust, 0.01)
        read: list[str] = []
        words = 0
        for number, sentence in enumerate(_SENTENCE.findall(text)):
            skimmed = words >= budget
            words += len(sentence.split())
            if not skimmed or self._chance("read", version, number) < self._skims(trust):
                read.append(sentence)
            elif not read or not read[-1].startswith(LEFT_OUT):
                read.append(f"{LEFT_OUT} ")
        return "".join(read) if f"{LEFT_OUT} " in read else text

    def _skims(self, trust: float) -> float:
        return 1.0 - (1.0 - self._limits.skims) * trust

    def _misread(self, version: int, text: str) -> str:
        """The figures as the user took them; correct if others said them twice."""
        share = self._limits.misreads
        if share == 0.0:
            return text

        def taken(found: re.Match[str]) -> str:
            figure = found[0]
            if self._times[figure] > 1 or self._chance("figure", version, figure) >= share:
                return figure
            return _another(figure, self._random("digit", version, figure))

        return _FIGURE.sub(taken, text)

    def _is_forgotten(self, one: _Heard) -> bool:
        """Whether a message is: retention halves with so many own turns since."""
        if self._limits.memory is None:
            return False
        retained: float = 0.5 ** ((self._turns - one.turn) / self._limits.memory)
        return one.luck >= retained

    def _chance(self, what: str, version: int, part: object = "") -> float:
        return self._random(what, version, part).random()

    def _random(self, what: str, version: int, part: object) -> Random:
        return Random(f"{self._mind.trait_seed}/{self._mind.me}/{what}/{version}/{part}")


def _reworded(one: _Heard, text: str) -> Record:
    """The record of a message as the user remembers it."""
    if text == one.event.text:
        return one.record
    other = msgspec.structs.replace(one.event, text=text)
    return msgspec.structs.replace(one.record, body=codec.encode_body(other), _event=other)


def _another(figure: str, chance: Random) -> str:
    """A figure of which one digit was taken for another one."""
    places = [place for place, sign in enumerate(figure) if sign.isdigit()]
    place = chance.choice(places)
    digit = chance.choice([one for one in "123456789" if one != figure[place]])
    return figure[:place] + digit + figure[place + 1 :]
