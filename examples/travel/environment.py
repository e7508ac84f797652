"""Travel planning as a task environment: searches over a sandbox, the same for human and agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from ...engine.events import ActionResolved
from ...engine.session.environment import Action, ActionSpec, Outcome
from .actions import ACTIONS, perform
from .data.tables import Sandbox

__all__ = ("TravelEnvironment",)

_SEARCH_SECONDS = 1.5


@final
class TravelEnvironment:
    """The searches of one session. They have no effect, so no state is kept between them."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    @property
    def actions(self) -> Mapping[str, ActionSpec]:
        """The six searches, by name."""
        return _SPECS

    async def perform(self, action: Action) -> Outcome:
        """Searches; the message of an error says how to continue."""
        found = perform(self._sandbox, action.name, action.arguments)
        return Outcome(observation=found, seconds=_SEARCH_SECONDS)

    def recall(self, action: Action, resolved: ActionResolved) -> None:
        """Does nothing, since a search has no effect."""


_SPECS: Mapping[str, ActionSpec] = {
    action.name: ActionSpec(
        name=action.name,
        description=action.description,
        parameters=action.parameters,
        repeatable=True,
    )
    for action in ACTIONS.values()
}
