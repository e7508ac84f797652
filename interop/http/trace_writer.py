"""Writes what clients post into the traces of sessions, by the command handler that all doors share."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final, final

import anyio
import msgspec

from ..._version import __version__
from ...engine.errors import DuplicateConflict, SessionClosedError, StaleBase, VersionConflict
from ...engine.events import ActionTaken, Participant, SessionOpened
from ...engine.log.contract import EventLog
from ...engine.logger import log_session_events
from ...engine.records import ENGINE, TRACE, Draft, Record
from ...engine.session.commands import Sender, SubmitSnapshot, command_of, handle, repeated
from ...engine.session.state import TraceState

__all__ = ("TraceWriter",)

_KNOWN: Final = 1024  # sessions whose state is cached
_NEAR: Final = 256  # records between two that are read on, instead of asking again


@final
class TraceWriter:
    """Appends posted events to traces: all events of a batch, or none.

    A snapshot that says no base was made from the latest one, a rating that names no round is about
    the latest in which an agent acted, and a close cancels what is in flight.

    Args:
        log: an open log; others may write it too.
    """

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._sessions: OrderedDict[str, _KnownSession] = OrderedDict()

    async def write(
        self, session: str, drafts: Sequence[Draft], expected: int | None
    ) -> Sequence[Record]:
        """The records of a batch; those that the log has already, if it is sent again.

        Args:
            session: session id; opened if it is not there and no version is expected.
            drafts: the posted events.
            expected: version that the trace must have.

        Raises:
            StaleBase: a snapshot was made from an outdated one; it is recorded as an action that
                failed, and the rest of the batch is dropped.
            InvalidInput: an event refers to a missing event.
            VersionConflict, DuplicateConflict, SessionClosedError, LogError: as ``append`` of logs.
        """
        held = self._sessions.get(session)
        if held is None:
            held = self._sessions[session] = _KnownSession(self._log, session)
        self._sessions.move_to_end(session)
        if len(self._sessions) > _KNOWN:
            self._sessions.popitem(last=False)
        async with held.lock:
            while True:
                try:
                    return await held.write(drafts, expected)
                except (DuplicateConflict, VersionConflict):
                    if not await held.catch_up():
                        raise


@final
class _KnownSession:
    """The trace of one session, as far as it is known here."""

    def __init__(self, log: EventLog, session: str) -> None:
        self.lock = anyio.Lock(fast_acquire=True)
        self._log = log
        self._session = session
        self._state = TraceState(session)
        self._read = False

    async def catch_up(self) -> bool:
        """Reads what others have written; False if that is nothing."""
        before = self._state.version
        async for record in self._log.read(self._session, after_version=before):
            self._state.feed(record)
        self._read = True
        return self._state.version > before

    async def write(self, drafts: Sequence[Draft], expected: int | None) -> Sequence[Record]:
        """Appends a batch, or gives what the log has of it; raises as ``TraceWriter.write``."""
        if not self._read:
            await self.catch_up()
        state = self._state
        known = [draft for draft in drafts if draft.id is not None and draft.id in state.ids]
        if known:
            records = await self._repeat(known)
            if len(known) < len(drafts):
                taken = known[0].id or ""
                why = "but not all events of this append are there"
                raise DuplicateConflict(self._session, taken, why)
            return records
        if expected is not None and expected != state.version:
            raise VersionConflict(self._session, TRACE, expected, state.version)
        opening = [] if state.version or expected is not None else [_opening(drafts)]
        made, error = self._make(opening, drafts)
        records = await self._log.append(self._session, made, expected_version=state.version)
        for record in records:
            state.feed(record)
        log_session_events(records)
        if error is not None:
            raise error
        return records[len(opening) :]

    def _make(
        self, opening: Sequence[Draft], posted: Sequence[Draft]
    ) -> tuple[list[Draft], StaleBase | None]:
        """The drafts for posted events, and the reason if the last of them was refused."""
        state = self._state.copy()
        made = list(opening)
        for draft in made:
            state.feed_draft(draft)
        for draft in posted:
            sender = Sender(draft.actor, draft.role, draft.time, draft.id, draft.seen)
            found = handle(command_of(draft.event), state, sender)
            if not found.drafts:  # a second close
                raise SessionClosedError(self._session)
            for number, one in enumerate(found.drafts):
                if number == found.main and draft.cause is not None:
                    one = msgspec.structs.replace(one, cause=draft.cause)
                state.feed_draft(one)
                made.append(one)
            if found.error is not None:
                return made, found.error
        return made, None

    async def _repeat(self, drafts: Sequence[Draft]) -> list[Record]:
        """The records that the log has of events with these ids, compared by the log, and those
        that go with them.
        """
        ids = self._state.ids
        related = {draft.id or "": self._related(draft.id or "") for draft in drafts}
        held = await self._held(
            ids[one] for ident, others in related.items() for one in (ident, *others)
        )
        same: list[Draft] = []
        found: list[Record] = []
        error: StaleBase | None = None
        for draft in drafts:
            ident = draft.id or ""
            command = command_of(draft.event)
            event = repeated(command, held[ids[ident]].event)
            same.append(msgspec.structs.replace(draft, event=event))
            if isinstance(command, SubmitSnapshot) and isinstance(event, ActionTaken):
                base = event.arguments.get("base")
                error = StaleBase(base if isinstance(base, int) else None, self._state.snapshot)
                break
            versions = sorted(ids[one] for one in (ident, *related[ident]))
            found += [held[version] for version in versions]
        await self._log.append(self._session, same)
        if error is not None:
            raise error
        return found

    def _related(self, ident: str) -> list[str]:
        """The ids of the records that go with one."""
        others: list[str] = []
        while (other := f"{ident}/{len(others) + 1}") in self._state.ids:
            others.append(other)
        return others

    async def _held(self, versions: Iterable[int]) -> dict[int, Record]:
        """Records by their versions; those that lie close together are read in one go."""
        found: dict[int, Record] = {}
        wanted = sorted(set(versions), reverse=True)
        while wanted:
            async for record in self._log.read(self._session, after_version=wanted[-1] - 1):
                if record.version < wanted[-1]:
                    continue
                found[wanted.pop()] = record
                if not wanted or wanted[-1] > record.version + _NEAR:
                    break
        return found


def _opening(drafts: Sequence[Draft]) -> Draft:
    """Opens a session for a client that has just begun to write, with those who act in it."""
    actors = {draft.actor: draft.role for draft in drafts if draft.role in ("human", "agent")}
    opened = SessionOpened(
        task="",
        instance="",
        participants=tuple(Participant(name=name, role=role) for name, role in actors.items()),
        clock="utc",
        package=__version__,
    )
    return Draft(opened, ENGINE, "environment", drafts[0].time)
