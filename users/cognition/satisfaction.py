"""Ratings from a model of satisfaction: what the round brought, who rates, what it cost, and noise.

    s = r + leniency + anchoring (last - r) - reading cost · words / 100 + noise

``r`` is what the task's rules make of the round, or what a model says; ``last`` the user's last rating; the words are
those of others' messages since the user's last act. The rating is ``s``, rounded, within 1 to 5.
"""

from __future__ import annotations

from random import Random

import msgspec

from ...engine.events import MessageSent, ProgressRated
from ...engine.rounds import is_act
from ...engine.session.decisions import Rate
from ...engine.session.view import View
from ...engine.text import count_words
from ..personas import Cognition

__all__ = ("rated",)

_PROGRESS = 3
"""The least rating that counts as progress; a reason for progress explains no rating below it."""


def rated(rating: Rate, view: View, cognition: Cognition) -> Rate:
    """The rating that a user gives, where ``rating`` is what the round brought them."""
    words, acts = 0, 0
    last = float(rating.rating)
    for record in view.records:
        event = record.event
        if record.actor == view.me:
            acts += is_act(record)
            words = 0 if is_act(record) else words
            if isinstance(event, ProgressRated) and event.rating is not None:
                last = float(event.rating)
        elif isinstance(event, MessageSent):
            words += count_words(event.text)
    lenient = Random(f"{view.trait_seed}/{view.me}/leniency").gauss(0.0, cognition.leniency)
    noise = Random(f"{view.seed}/{view.me}/rating/{acts}").gauss(0.0, cognition.rating_noise)
    felt = rating.rating + lenient + noise
    felt += cognition.anchoring * (last - rating.rating) - cognition.reading_cost * words / 100.0
    given = min(5, max(1, round(felt)))
    fits = (given < _PROGRESS) == (rating.rating < _PROGRESS) and abs(given - rating.rating) < 2
    why = rating.explanation if fits else ""
    return msgspec.structs.replace(rating, rating=given, explanation=why)
