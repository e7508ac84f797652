"""A person who works without an agent obeys the limits of their persona, as with one."""

from __future__ import annotations

from typing import Final, final

import msgspec

from ..engine.events import ActionResolved, ActionTaken
from ..engine.session.actors import Policy
from ..engine.session.decisions import Decision, Finish
from ..engine.session.time.timing import Timing
from ..engine.session.view import View
from ..engine.text import count_words, text_of
from ..users.personas import Persona

__all__ = ("LimitedAlone",)

_READ: Final = 0.28
"""Share of the words of a result that is read: at most 28 % of those of an average page are (Nielsen
2008, on the data of Weinreich et al. 2008)."""

_OWN: Final = "SnapshotTaken"


@final
class LimitedAlone:
    """The policy of a person alone, within limits: they read what they find, tire, and settle.

    A first output is finished in any case. After that they stop once their ``stamina`` is used up;
    and each time they look at it again, one in whom ``contentment`` is c is satisfied with the chance 1 - c.

    Args:
        policy: their decisions without limits.
        persona: their persona.
    """

    def __init__(self, policy: Policy, persona: Persona) -> None:
        self._policy = policy
        self._persona = persona

    async def decide(self, view: View) -> Decision:
        """The next step, or the end."""
        pending = view.pending
        if pending is None and not view.in_flight and view.own_snapshot is not None:
            if view.now >= 60.0 * self._persona.stamina:
                return Decision((Finish("tired of it"),))
            content = view.random.random() >= self._persona.contentment
            if content and _looks_again(view):
                return Decision((Finish("good enough"),))
        decision = await self._policy.decide(view)
        reading = _found(view) * _READ * 60.0
        if decision == pending or not decision.verbs or not reading:
            return decision
        timing = _timing(view)
        seconds = timing.working(view.role, view, decision) + reading / timing.read_wpm
        return msgspec.structs.replace(decision, seconds=seconds)


def _looks_again(view: View) -> bool:
    """Whether the last thing that they did was to put up a version of the output."""
    own = [record.kind for record in view.records if record.actor == view.me]
    return bool(own) and own[-1] == _OWN


def _found(view: View) -> int:
    """Number of words in the results of their last actions."""
    words = 0
    for record in reversed(view.records):
        event = record.event
        if isinstance(event, ActionResolved) and event.observation is not None:
            words += count_words(text_of(event.observation))
        elif (
            record.actor == view.me
            and isinstance(event, ActionTaken)
            and words
            or record.actor == view.me
            and record.kind == _OWN
        ):
            break
    return words


def _timing(view: View) -> Timing:
    """The pace of the session."""
    held = None if view.opened is None else view.opened.config.get("timing")
    try:
        return Timing() if held is None else msgspec.convert(held, Timing)
    except msgspec.ValidationError:
        return Timing()
