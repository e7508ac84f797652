"""Data analysis as a task environment: queries run in a worker thread, so that none holds the loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from anyio import to_thread

from ...engine.events import ActionResolved
from ...engine.session.environment import Action, ActionSpec, Outcome
from .actions import ACTIONS, World

__all__ = ("DataEnvironment",)


@final
class DataEnvironment:
    """The actions of one session. They have no effect, so no state is kept between them.

    Args:
        world: the instance's.
    """

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def actions(self) -> Mapping[str, ActionSpec]:
        """Schema, Query and Chart."""
        return ACTIONS.specs

    async def perform(self, action: Action) -> Outcome:
        """Selects; the message of an error says how to continue."""
        found = ACTIONS.find(action.name, action.role)
        observation = await to_thread.run_sync(found.perform, self._world, action.arguments)
        return Outcome(observation=observation, seconds=found.seconds(action.arguments))

    def recall(self, action: Action, resolved: ActionResolved) -> None:
        """Does nothing, since no action has an effect."""
