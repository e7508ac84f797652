"""Plays the training sessions of rules: the same instances for all, in memory, and nothing is kept of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, final

import msgspec

from ...agents.settings import AgentSettings
from ...engine.errors import InvalidInput
from ...engine.log.memory import MemoryLog
from ...engine.scorers.protocol import stream_of
from ...engine.session.simulation import Outcome, SessionFailure, simulate
from ...engine.task import AgentVariant, Cell, Setting, Task
from ...scoring.control_rules import ControlRules
from ...scoring.live import score_sessions
from ...scoring.trajectory.points import Trajectory
from ..tasks import session_of
from .objective import Played, Weights, played

__all__ = ("Training",)

_ADAPTIVE: Final = "adaptive"
_OTHERS: Final = ("one-stage", "two-stage")


@final
class Training:
    """The training sessions of a task.

    Args:
        task: the task.
        users: kinds of users.
        seeds: of the worlds.
        sessions: instances of each seed, with each kind of user.
        weights: what counts beside utility.
        concurrency: how many sessions run at once.

    Attributes:
        scorer: whose utility counts, as the sessions say; empty before any was played.

    Raises:
        InvalidInput: the task has no adaptive agent, or no such user.
    """

    def __init__(
        self,
        task: Task,
        users: Sequence[str],
        seeds: Sequence[int],
        sessions: int,
        *,
        weights: Weights,
        concurrency: int,
    ) -> None:
        if _ADAPTIVE not in task.agents:
            raise InvalidInput(
                f"task {task.name} has no adaptive agent whose rules could be fitted"
            )
        self._task = task
        self._users = users
        self._instances = [(one, seed) for seed in seeds for one in task.instances(sessions, seed)]
        self._weights = weights
        self._concurrency = concurrency
        self.scorer = ""

    @property
    def users(self) -> Sequence[str]:
        """Kinds of users."""
        return self._users

    async def rules(self, rules: ControlRules, user: str) -> Played:
        """What comes of the adaptive agent by these rules, with one kind of user."""
        name = f"{_ADAPTIVE}:tried"
        settings = msgspec.to_builtins(AgentSettings(rules=rules))
        return await self._play(name, user, {name: AgentVariant(settings=settings)})

    async def others(self, user: str) -> tuple[Played, ...]:
        """What comes of the agents that it is compared with."""
        names = [name for name in _OTHERS if name in self._task.agents]
        return tuple([await self._play(name, user, {}) for name in names])

    async def _play(self, agent: str, user: str, variants: Mapping[str, AgentVariant]) -> Played:
        setting = Setting(variants=variants)
        cells = [
            Cell(agent=agent, user=user, instance=instance, seed=seed)
            for instance, seed in self._instances
        ]
        makers = [partial(session_of, self._task, cell, setting) for cell in cells]
        failures: list[str] = []

        def note(outcome: Outcome) -> None:
            if isinstance(outcome, SessionFailure):
                failures.append(f"session {outcome.session} could not be run: {outcome.error}")

        found: list[Trajectory] = []
        async with MemoryLog() as log:
            await simulate(log, makers, concurrency=self._concurrency, on_outcome=note)
            if failures:
                raise InvalidInput(failures[0])
            found = [item async for item in score_sessions(log)]
        self.scorer = self.scorer or stream_of(makers[0]().scorers[0].ref)
        return played(found, self._weights)
