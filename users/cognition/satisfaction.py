"""Ratings from a model of satisfaction: the round's result and cost, the rater, and noise.

    s = r + leniency + anchoring (last - r) - reading cost · words / 100 + noise

``r`` is what the task's rules make of the round, or what a model says; ``last`` the user's last rating; the words are
those of others' messages since the user's last act. The rating is ``s``, rounded, within 1 to 5.
"""

from __future__ import annotations

from random import Random
from typing import final

import msgspec

from ...engine.events import MessageSent, ProgressRated
from ...engine.records import Record
from ...engine.rounds import is_act, is_unproductive
from ...engine.session.decisions import Rate
from ...engine.session.view import View
from ...engine.text import count_words
from ..personas import Cognition

__all__ = ("Satisfaction",)


@final
class Satisfaction:
    """How satisfied one user is with their session; follows their view.

    Args:
        cognition: their limits.
    """

    def __init__(self, cognition: Cognition) -> None:
        self._limits = cognition
        self._fed = 0
        self._acts = 0
        self._words = 0
        self._last: float | None = None

    def rated(self, rating: Rate, view: View) -> Rate:
        """The rating that they give; ``rating`` is ``r``, before these effects."""
        for record in view.records[self._fed :]:
            self._feed(record, view.me)
        self._fed = len(view.records)
        limits, brought = self._limits, rating.rating
        last = brought if self._last is None else self._last
        lenient = Random(f"{view.trait_seed}/{view.me}/leniency").gauss(0.0, limits.leniency)
        noise = Random(f"{view.seed}/{view.me}/rating/{self._acts}").gauss(0.0, limits.rating_noise)
        felt = brought + lenient + noise
        felt += limits.anchoring * (last - brought) - limits.reading_cost * self._words / 100.0
        given = min(5, max(1, round(felt)))
        # A reason for progress explains no unproductive round.
        fits = is_unproductive(given) == is_unproductive(brought) and abs(given - brought) < 2
        why = rating.explanation if fits else ""
        return msgspec.structs.replace(rating, rating=given, explanation=why)

    def _feed(self, record: Record, me: str) -> None:
        event = record.event
        if record.actor != me:
            self._words += count_words(event.text) if isinstance(event, MessageSent) else 0
        elif isinstance(event, ProgressRated) and event.rating is not None:
            self._last = float(event.rating)
        elif is_act(record):
            self._acts += 1
            self._words = 0
