"""Performs the actions of one session: applies their effects in log order, and resolves them when
their time has passed, so that several may be in flight and resolve out of order.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import final

from ..errors import InvalidInput, error_text
from ..events import ActionResolved, ActionTaken
from ..plugins import PluginCall
from ..records import ENVIRONMENT, Record
from .commands import (
    ResolveAction,
    Sender,
    handle,
)
from .environment import Action, Environment, Outcome
from .sequencer import Sequencer
from .time.scheduler import Turns

__all__ = ("Performer",)


_LATER = 1.0
"""Seconds after the last record, for an outcome that is not to come before it."""

_INTERRUPTED = Outcome(error="interrupted: the process ended while the action was in flight")


@final
class Performer:
    """The environment of one session at work.

    Args:
        environment: what applies the effects.
        sequencer: where outcomes go.
        turns: the session's clock.
        seconds: how long an action takes whose outcome does not say.
        recorded: the recorded trace that is being re-executed.
        outcomes: in a fork, what its origin's log holds after the cut.
        held: trace versions of which an earlier run may have performed the actions; all that is
            recorded if not given. In a fork that begins, none were: its environment is new.
    """

    def __init__(
        self,
        environment: Environment,
        sequencer: Sequencer,
        turns: Turns,
        *,
        seconds: float,
        recorded: Sequence[Record] = (),
        outcomes: Sequence[Record] = (),
        held: int | None = None,
    ) -> None:
        self._environment = environment
        self._sequencer = sequencer
        self._turns = turns
        self._seconds = seconds
        self._taken: dict[int, Action] = {}
        self._due: list[tuple[float, int, ActionResolved]] = []
        self._recorded: dict[int, Record] = {}
        self._last_recorded = len(recorded) if held is None else held
        self._end_of_record = recorded[-1].time if recorded else 0.0
        for record in (*outcomes, *recorded):
            event = record.event if record.kind == "ActionResolved" else None
            if isinstance(event, ActionResolved):
                self._recorded[event.action] = record

    def deliver(self, record: Record) -> None:
        """Notes an action that was taken, or one that was refused immediately."""
        event = record.event if record.kind in ("ActionTaken", "ActionResolved") else None
        if isinstance(event, ActionTaken):
            self._taken[record.version] = _action(record, event)
            self._turns.wake(ENVIRONMENT)
        elif isinstance(event, ActionResolved):
            self._taken.pop(event.action, None)

    def restore(self, records: Sequence[Record]) -> None:
        """Takes over a trace to continue from: outcomes are recalled in the order of the actions,
        and actions in flight are performed again or fail as interrupted.
        """
        if records:
            self._last_recorded = max(self._last_recorded, records[-1].version)
        outcomes: dict[int, Record] = {}
        for record in records:
            if record.kind == "ActionResolved" and isinstance(record.event, ActionResolved):
                outcomes[record.event.action] = record
        for record in records:
            if record.kind != "ActionTaken":
                continue
            held = outcomes.get(record.version)
            if held is None:
                self.deliver(record)
            elif held.actor == ENVIRONMENT and isinstance(record.event, ActionTaken):
                resolved = held.event
                if isinstance(resolved, ActionResolved):
                    self._recall(_action(record, record.event), resolved)

    async def run(self) -> None:
        """Performs and resolves until it is cancelled."""
        while True:
            while self._taken:
                await self._perform(self._taken.pop(next(iter(self._taken))))
            if self._due and self._due[0][0] <= self._turns.now():
                _, _, resolved = heapq.heappop(self._due)
                if resolved.action in self._sequencer.state.in_flight:
                    await self._resolve(resolved)
                continue
            until = self._due[0][0] if self._due else None
            await self._turns.park(ENVIRONMENT, until=until, news=True)

    async def _perform(self, action: Action) -> None:
        """Applies an action's effect, and sets the time when its outcome is due."""
        held = self._recorded.get(action.version)
        if held is not None and isinstance(held.event, ActionResolved):
            resolved, due = held.event, held.time
            if resolved.outcome == "cancelled":
                due += _LATER  # it was due after the close, at an unknown time
            elif action.name in self._environment.actions:
                self._recall(action, resolved)
        else:
            outcome = await self._outcome(action)
            failed = outcome.error is not None
            resolved = ActionResolved(
                action=action.version,
                outcome="failed" if failed else "ok",
                observation=outcome.observation,
                error=outcome.error,
            )
            seconds = self._seconds if outcome.seconds is None else outcome.seconds
            due = self._turns.now() + max(0.0, seconds)
            if outcome is _INTERRUPTED or due < self._end_of_record:
                due = self._end_of_record + _LATER  # recorded events come first
        heapq.heappush(self._due, (due, action.version, resolved))

    def _recall(self, action: Action, resolved: ActionResolved) -> None:
        with PluginCall(ENVIRONMENT):
            self._environment.recall(action, resolved)

    async def _outcome(self, action: Action) -> Outcome:
        spec = self._environment.actions.get(action.name)
        if spec is None:
            known = ", ".join(sorted(self._environment.actions)) or "none"
            return Outcome(error=f"unknown action {action.name!r}; choose from {known}")
        if action.version <= self._last_recorded and not spec.repeatable:
            return _INTERRUPTED
        if not spec.repeatable:
            await self._sequencer.flush()
        try:
            return await self._environment.perform(action)
        except InvalidInput as error:
            return Outcome(error=error_text(error))

    async def _resolve(self, resolved: ActionResolved) -> None:
        sequencer = self._sequencer
        sender = Sender(ENVIRONMENT, "environment", self._turns.now())
        command = ResolveAction(resolved)
        await sequencer.emit("environment", lambda: handle(command, sequencer.state, sender).drafts)


def _action(record: Record, event: ActionTaken) -> Action:
    return Action(
        version=record.version,
        actor=record.actor,
        role=record.role,
        name=event.name,
        arguments=event.arguments,
    )
