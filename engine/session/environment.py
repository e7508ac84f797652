"""The protocol of task environments: their actions, and the outcomes of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from ..events import JSON, ActionResolved, Role

__all__ = ("Action", "ActionSpec", "Environment", "NoEnvironment", "Outcome")


class ActionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of action, as it is described to actors.

    Attributes:
        name: the name of the action.
        description: its effect, for a model or a person to read.
        parameters: JSON schema of its arguments.
        repeatable: doing it again after a crash does no harm (a search, say). Before any other action,
            the session waits until the log is written.
        consequential: it cannot be undone, or costs something (a booking, say): a careful agent asks
            before it does it.
        roles: the roles that may take it; others are not offered it.
    """

    name: str
    description: str
    parameters: Mapping[str, JSON] = {}
    repeatable: bool = False
    consequential: bool = False
    roles: tuple[Role, ...] = ("human", "agent")


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """An action that was taken: the trace version of its ``ActionTaken``, its actor and content."""

    version: int
    actor: str
    role: Role
    name: str
    arguments: Mapping[str, JSON]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of an action.

    Attributes:
        observation: the part that the actor sees.
        error: why it failed; None if it did not.
        seconds: how long it takes; None for the session's default.
    """

    observation: JSON = None
    error: str | None = None
    seconds: float | None = None


class Environment(Protocol):
    """A task's environment for one session. It applies actions one at a time, in log order."""

    @property
    def actions(self) -> Mapping[str, ActionSpec]:
        """The actions that humans and agents can take, by name."""
        ...

    async def perform(self, action: Action) -> Outcome:
        """Applies an action's effect.

        A wrong argument or a failed look-up is an ``Outcome`` with an error that the one who acted
        can use (raising ``InvalidInput`` has the same effect); any other exception closes the session
        as failed.
        """
        ...

    def recall(self, action: Action, resolved: ActionResolved) -> None:
        """Takes over the recorded outcome of an action instead of performing it (on resuming).

        A stateless environment does nothing here.
        """
        ...


class NoEnvironment:
    """The environment of a collaboration without task actions."""

    @property
    def actions(self) -> Mapping[str, ActionSpec]:
        """None at all."""
        return {}

    async def perform(self, action: Action) -> Outcome:
        """Every action fails: there are none."""
        return Outcome(error=f"unknown action {action.name!r} in this session", seconds=0.0)

    def recall(self, action: Action, resolved: ActionResolved) -> None:
        """Nothing to take over."""
