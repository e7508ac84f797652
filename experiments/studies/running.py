"""Runs the sessions of a study: begins each condition, and ends those of people who withdraw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

import anyio

from ...engine.errors import InvalidInput, SessionClosedError
from ...engine.events import JSON, ConditionAssigned
from ...engine.log.contract import EventLog
from ...engine.session.context import ActorContext
from ...interop.workbench.participation.host import NewSession
from ...scoring.columns.log import folded
from ...scoring.columns.rows import trajectory_of
from ...scoring.report.tidy import tidy_rows
from ..workbench import Beginning, SessionHost
from .people import People

__all__ = ("Sittings",)

_PATIENCE: Final = 5.0  # seconds for the session of a participant who withdraws to end


@final
class Sittings:
    """The sessions of a study's participants.

    Args:
        people: the participants.
        host: runs their sessions.
        log: the log of these sessions.
    """

    def __init__(self, people: People, host: SessionHost, log: EventLog) -> None:
        self._people = people
        self._host = host
        self._log = log
        self._beginning: dict[str, anyio.Lock] = {}
        for person in people.all():
            for place, begun in person.begun.items():
                if person.assigned is not None and not person.withdrew:
                    beginning = self._beginning_of(person.name, place, person.assigned)
                    host.remember(begun.session, beginning)

    async def begin(self, name: str, place: int) -> str:
        """Begins the condition at a place of a participant, or resumes it; gives the session.

        A server that was killed in between begins the same session again.

        Raises:
            DuologError: it is not their turn, or the session cannot be begun.
        """
        async with self._beginning.setdefault(name, anyio.Lock()):
            begun = self._people.person(name).begun.get(place)
            if begun is not None:
                return begun.session
            step = await self._people.step(name)
            assigned = self._people.person(name).assigned
            if (step.kind, step.place) != ("begin", place) or assigned is None:
                raise InvalidInput(f"condition {place} cannot begin now")
            beginning = self._beginning_of(name, place, assigned)
            session = await self._host.begin_as(beginning)
            self._host.remember(session, beginning)
            condition = assigned.conditions[place - 1]
            await self._people.begun(name, place, condition, session)
            return session

    def _beginning_of(self, name: str, place: int, assigned: ConditionAssigned) -> Beginning:
        study = self._people.study
        condition = study.conditions()[assigned.conditions[place - 1]]
        config: dict[str, JSON] = {
            "study": {
                "name": study.name,
                "title": study.title,
                "participant": name,
                "condition": condition.name,
                "place": place,
            }
        }
        if condition.minutes:
            config["seconds"] = condition.minutes * 60
        wanted = NewSession(
            task=condition.task,
            agents=(condition.agent,),
            model=condition.model,
            instance=assigned.instances[place - 1],
            seed=study.seed,
        )
        return Beginning(wanted, config, int(self._people.person(name).since))

    async def seat(self, session: str) -> str:
        """The participant's own name in a session."""
        async for record in self._log.read(session):
            event = record.event
            names = getattr(event, "participants", ())
            return str(next(one.name for one in names if one.role == "human"))
        raise InvalidInput(f"unknown session {session!r}")

    async def withdraw(self, name: str) -> None:
        """Ends a participant's session, and erases all their records."""
        async with self._beginning.setdefault(name, anyio.Lock()):
            for begun in self._people.person(name).begun.values():
                summary = await self._log.summary(begun.session)
                if summary.state == "open":
                    await self._end(begun.session)
            await self._people.withdraw(name)

    async def _end(self, session: str) -> None:
        async def finish(context: ActorContext) -> None:
            await context.finish("withdrew", "abandoned")

        seat = await self._host.seat(session, await self.seat(session))
        try:
            with anyio.move_on_after(_PATIENCE):
                await seat.call(finish)
        except SessionClosedError:  # its time was up meanwhile
            return

    async def result(self, session: str) -> Mapping[str, object]:
        """The outcome of a session: a row of the table of sessions."""
        found = [trajectory_of(one) async for one in folded(self._log, sessions=[session])]
        rows = tidy_rows(found, "sessions")
        return rows[0] if rows else {}
