"""The mind of an agent: what decides for it, by rules or through a model."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

from ..engine.session.decisions import Decision
from ..engine.session.view import View

__all__ = ("AgentMind", "Intent")

Intent: TypeAlias = Literal["message", "act", "wait"]
"""A two-stage agent's first decision."""


class AgentMind(Protocol):
    """Makes an agent's decisions, by a task's rules or on a model. It sees only the view."""

    async def step(self, view: View, *, alone: bool) -> Decision:
        """The next thing to do, in a single step.

        Args:
            view: the agent's view.
            alone: whether it works without teammates: task actions and finishing only.
        """
        ...

    async def plan(self, view: View) -> Intent:
        """Whether to message the teammates, to act on the task, or to wait for them."""
        ...

    async def message(self, view: View, *, questions: int = 1) -> Decision:
        """Composes a message to the teammates.

        Args:
            view: the agent's view.
            questions: how many it may ask in it.
        """
        ...

    async def ask(self, view: View, *, questions: int = 1) -> Decision | None:
        """Asks the next questions that matter to the whole output, and says nothing else.

        Args:
            view: the agent's view.
            questions: how many it may ask.

        Returns:
            None if there is none, or if it says whatever it has to say in ``message``.
        """
        ...

    async def report(self, view: View, *, final: bool) -> Decision:
        """Reports the current state to the teammates, asks nothing, and leaves the lead to them.

        Args:
            view: the agent's view.
            final: whether the agent is finished and leaves the remaining work to them.
        """
        ...

    async def act(self, view: View) -> Decision:
        """Takes the next task action."""
        ...

    def estimate(self, view: View) -> float | None:
        """The agent's own estimate of the current output's utility.

        Args:
            view: the agent's view.

        Returns:
            From 0 to 1; None if it cannot say.
        """
        ...
