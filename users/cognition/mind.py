"""A mind within cognitive limits: it decides on the part of its view that it has noticed and remembers."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final, final

import msgspec

from ...engine.events import MessageSent, ProgressRated
from ...engine.records import Record
from ...engine.rounds import is_act, is_unproductive
from ...engine.session.decisions import ChangeProfile, Decision, Rate
from ...engine.session.view import View
from ...engine.text import count_words
from ..personas import Cognition, Persona
from ..simulated import Changing, UserIntent, UserMind
from .adaptation import adapted
from .perception import Perception

__all__ = (
    "MOODS",
    "AnewMind",
    "LimitedMind",
    "Satisfaction",
    "limited_changing",
    "limited_mind",
)


@final
class Satisfaction:
    """How satisfied one user is with their session; follows their view.

        s = r + leniency + anchoring (last - r) - reading cost · words / 100 + noise

    ``r`` is what the task's rules make of the round, or what a model says; ``last`` the user's last rating;
    the words are those of others' messages since the user's last act. The rating is ``s``, rounded, within
    1 to 5.

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
        why = rating.explanation
        if why and not fits:
            chance = Random(f"{view.seed}/{view.me}/reason/{self._acts}")
            less = (*_LESS, *(_LONG if self._words >= _MANY else ()))
            why = chance.choice(less if given < brought else _MORE)
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


_LESS: Final = (
    "I had hoped for more.",
    "That did not convince me.",
    "I cannot say that I am happy with that.",
    "I am not in the mood for this.",
)
_LONG: Final = ("It was a lot to read for that.", "Too many words for what they say.")
_MANY: Final = 80
"""Words from which a round is a lot to read."""

_MORE: Final = (
    "All in all I am satisfied with it.",
    "It is going well enough for me.",
    "I have a good feeling about it.",
    "I can live with that.",
)
"""Reasons given when mood moves a rating below or above what the round was worth."""

MOODS: Final = frozenset((*_LESS, *_LONG, *_MORE))
"""All reasons that are about a person's mood, and not about what a round brought."""


@final
class AnewMind:
    """A ``UserMind`` that is made again for each decision.

    Minds that read a session once would remember all of it, and as they first took it.

    Args:
        make: makes the mind.
    """

    def __init__(self, make: Callable[[], UserMind]) -> None:
        self._make = make

    async def choose(self, view: View, persona: Persona) -> UserIntent:
        """Chooses the next act."""
        return await self._make().choose(view, persona)

    async def compose(self, view: View, persona: Persona, intent: UserIntent) -> Decision:
        """Does it."""
        return await self._make().compose(view, persona, intent)

    async def rate(self, view: View, persona: Persona) -> Rate | None:
        """Rates the last round by its result."""
        return await self._make().rate(view, persona)


@final
class LimitedMind:
    """A ``UserMind`` behind a user's limits; one for each session.

    Args:
        mind: decides; it keeps nothing of one decision for the next.
        cognition: the limits.
    """

    def __init__(self, mind: UserMind, cognition: Cognition) -> None:
        self._mind = mind
        self._perception = Perception(cognition)
        self._satisfaction = Satisfaction(cognition)

    async def choose(self, view: View, persona: Persona) -> UserIntent:
        """Chooses the next act from what they took in."""
        return await self._mind.choose(*self._in_mind(view, persona))

    async def compose(self, view: View, persona: Persona, intent: UserIntent) -> Decision:
        """Does it, likewise."""
        return await self._mind.compose(*self._in_mind(view, persona), intent)

    async def rate(self, view: View, persona: Persona) -> Rate | None:
        """Rates the round as the user feels it."""
        rating = await self._mind.rate(*self._in_mind(view, persona))
        return None if rating is None else self._satisfaction.rated(rating, view)

    def _in_mind(self, view: View, persona: Persona) -> tuple[View, Persona]:
        """The view as they remember it, and their persona as it has changed so far."""
        return self._perception.of(view), adapted(persona, self._perception.now)


def limited_mind(make: Callable[[], UserMind], persona: Persona) -> UserMind:
    """A mind for a persona: within limits, if it has any."""
    return LimitedMind(AnewMind(make), persona.cognition) if persona.limited else make()


def limited_changing(make: Callable[[], Changing] | None, persona: Persona) -> Changing | None:
    """Derives changes of a user's goals from what they took in; None if their goals are fixed."""
    if make is None or not persona.limited:
        return None if make is None else make()
    perception = Perception(persona.cognition)

    def changed(view: View) -> ChangeProfile | None:
        return make()(perception.of(view))

    return changed
