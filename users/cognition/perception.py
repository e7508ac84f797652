"""What a simulated user takes in of a session: long messages in part, figures sometimes wrong, and not for ever.

The view is folded again from records whose texts are replaced by what was taken in; all chance is drawn from
the seed of the user's traits and the place in the log, so one view gives one perception. What was not
read, or is forgotten, is `LEFT_OUT`. The request, the output and one's own actions are seen as they are.
"""

from __future__ import annotations

import re
from bisect import bisect_right
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

__all__ = ("LEFT_OUT", "perceived")

LEFT_OUT: Final = "[…]"
"""Stands in a message for what was not read, or is forgotten."""

_SENTENCE = re.compile(r"\S.*?(?:(?<=[.!?])(?=\s)|(?=\n)|\Z)\s*", re.DOTALL)
_FIGURE = re.compile(r"(?<![\w.,-])\d+(?:,\d{3})*(?![\w-]|[.,]\d)")


def perceived(view: View, cognition: Cognition) -> View:
    """The view as a user with these limits has it in mind."""
    return view.revised(_Taken(view, cognition).record)


@final
class _Taken:
    """What is taken in of each record, in order."""

    def __init__(self, view: View, cognition: Cognition) -> None:
        self._view = view
        self._limits = cognition
        self._now = Adaptation(cognition, view.me)
        others = [one for one in view.messages if one.actor != view.me]
        self._times = Counter(f for one in others for f in {*_FIGURE.findall(one.text)})
        self._turns = [one.version for one in view.messages if one.actor == view.me]
        nudges = [record.version for record in view.records if record.kind == "Nudged"]
        self._nudged = nudges[-1] if nudges else 0

    def record(self, record: Record) -> Record:
        """The record as it is in mind now."""
        event = record.event if record.kind == "MessageSent" else None
        self._now.feed(record)
        if not isinstance(event, MessageSent) or event.text == self._view.request:
            return record
        text = event.text
        if self._is_forgotten(record.version):
            text = LEFT_OUT
        elif record.actor != self._view.me:
            text = self._misread(record.version, self._read(record.version, text))
        if text == event.text:
            return record
        other = msgspec.structs.replace(event, text=text)
        return msgspec.structs.replace(record, body=codec.encode_body(other), _event=other)

    def _read(self, version: int, text: str) -> str:
        """The beginning, and some of the sentences after that; all of it where they were reminded since.

        Who trusts less reads more.
        """
        limits, trust = self._limits, self._now.trust
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
        """Figures as they were taken; right where others said them twice."""
        share = self._limits.misreads
        if share == 0.0:
            return text

        def taken(found: re.Match[str]) -> str:
            figure = found[0]
            if self._times[figure] > 1 or self._chance("figure", version, figure) >= share:
                return figure
            return _another(figure, self._random("digit", version, figure))

        return _FIGURE.sub(taken, text)

    def _is_forgotten(self, version: int) -> bool:
        """Whether a message is: retention halves with so many own turns since."""
        if self._limits.memory is None:
            return False
        age = len(self._turns) - bisect_right(self._turns, version)
        retained: float = 0.5 ** (age / self._limits.memory)
        return self._chance("forget", version) >= retained

    def _chance(self, what: str, version: int, part: object = "") -> float:
        return self._random(what, version, part).random()

    def _random(self, what: str, version: int, part: object) -> Random:
        return Random(f"{self._view.trait_seed}/{self._view.me}/{what}/{version}/{part}")


def _another(figure: str, chance: Random) -> str:
    """A figure of which one digit was taken for another one."""
    places = [place for place, sign in enumerate(figure) if sign.isdigit()]
    place = chance.choice(places)
    digit = chance.choice([one for one in "123456789" if one != figure[place]])
    return figure[:place] + digit + figure[place + 1 :]
