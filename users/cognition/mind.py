"""A mind within cognitive limits: it decides by what it has taken in and by who it has become."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from ...engine.session.decisions import ChangeProfile, Decision, Rate
from ...engine.session.view import View
from ..personas import Cognition, Persona
from ..simulated import Changing, UserIntent, UserMind
from .adaptation import adapted
from .perception import Perception
from .satisfaction import Satisfaction

__all__ = ("AnewMind", "LimitedMind", "limited_changing", "limited_mind")


@final
class AnewMind:
    """A ``UserMind`` that is made anew for each decision.

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
