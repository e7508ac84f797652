"""The simulated user (paper, 4.1 and appendix B), on any mind: rules, or a model.

Each time it decides among answering a question, offering feedback, acting on the task, finishing
and doing nothing; then it composes that. Before its next message it rates how far the agent's last
round brought them. It alone knows the hidden profile: the mind reads it from the view's private
part, which is in no other view.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias, final, runtime_checkable

from ..engine.rounds import is_act
from ..engine.session.decisions import (
    NOTHING,
    Act,
    ChangeProfile,
    Decision,
    Finish,
    Rate,
    Say,
    Submit,
)
from ..engine.session.view import View
from .personas import Persona

__all__ = ("Changing", "ChangingMind", "SimulatedUser", "UserIntent", "UserMind")

UserIntent: TypeAlias = Literal["answer", "feedback", "act", "finish", "leave", "nothing"]
"""A simulated user's first decision: ``finish`` if content, ``leave`` to give up. Rules choose ``finish`` for
both, and then compose the reason."""


Changing: TypeAlias = Callable[[View], ChangeProfile | None]
"""Returns a user's change of mind that is not recorded yet; None if there is none."""


class UserMind(Protocol):
    """Makes a simulated user's decisions. It sees only the view."""

    async def choose(self, view: View, persona: Persona) -> UserIntent:
        """Chooses the next act."""
        ...

    async def compose(self, view: View, persona: Persona, intent: UserIntent) -> Decision:
        """Does it: a message in the user's own words, an edit, a search, a closing word."""
        ...

    async def rate(self, view: View, persona: Persona) -> Rate | None:
        """Rates the progress from the agent's acts since the user's last one; None for no opinion."""
        ...


@runtime_checkable
class ChangingMind(Protocol):
    """A ``UserMind`` that knows its own changes of goals."""

    def changed(self, view: View) -> ChangeProfile | None:
        """How its goals have changed, if they have; see ``SimulatedUser``."""
        ...


@final
class SimulatedUser:
    """A simulated user with a persona.

    It ends the session when it is satisfied or gives up. A run may also end it by its ratings: see
    ``Limits.patience``.

    Args:
        mind: makes its decisions.
        persona: its willingness and its limits.
        changing: says how its goals have changed. It is recorded with the next thing that it does, and
            before that, so that it lies in the round that brought it about.
    """

    def __init__(self, mind: UserMind, persona: Persona, changing: Changing | None = None) -> None:
        self._mind = mind
        self._persona = persona
        self._changing = changing

    async def decide(self, view: View) -> Decision:
        """Chooses, rates the round if this will end it, and composes."""
        intent = await self._mind.choose(view, self._persona)
        if intent == "nothing":
            return NOTHING
        decision = await self._mind.compose(view, self._persona, intent)
        if not decision.verbs or decision == view.pending:
            return decision
        rating = None
        if _ends_round(decision, view):
            rating = await self._mind.rate(view, self._persona)
        change = None if self._changing is None else self._changing(view)
        before = [verb for verb in (rating, change) if verb is not None]
        return Decision((*before, *decision.verbs), decision.seconds) if before else decision


def _ends_round(decision: Decision, view: View) -> bool:
    """Whether a decision hands over: the agent has acted since the user last did, and now the user
    acts, or ends the session.
    """
    if not any(isinstance(verb, Say | Act | Submit | Finish) for verb in decision.verbs):
        return False
    for record in reversed(view.records):
        if is_act(record):
            return record.role == "agent"
    return False
