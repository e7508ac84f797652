"""Writes batches of entries of one session to the log, and says what became of each entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, final

from ..engine.codec import kind_of
from ..engine.errors import (
    CodecError,
    DuologError,
    DuplicateConflict,
    InvalidInput,
    LogUnavailable,
    NotRecorded,
    SessionClosedError,
    StaleBase,
    VersionConflict,
)
from ..engine.events import ActionTaken, Event, Unknown
from ..engine.log.contract import EventLog
from ..engine.records import ENGINE, TRACE, Draft, Record
from .commands import Submitting, Written
from .queue import Entry, Lane
from .state import Trace, load_trace

__all__ = ("Committing", "Fate")


class Fate(NamedTuple):
    """What became of an entry.

    Attributes:
        entry: the entry.
        record: its first record; None where there is none.
        error: what its doer is told; None where all is well.
        repeated: the log had it already.
    """

    entry: Entry
    record: Record | None = None
    error: DuologError | None = None
    repeated: bool = False


class _Made(NamedTuple):
    """An entry as drafts: where its first one is in its batch, None where it came to none."""

    entry: Entry
    at: int | None
    error: DuologError | None


@final
class Committing:
    """Writes entries; one batch of a session at a time.

    Args:
        log: where they go.
    """

    def __init__(self, log: EventLog) -> None:
        self._log = log

    async def load(self, lane: Lane) -> Trace:
        """Reads what the log holds of a session.

        Raises:
            CodecError: a body that is needed is damaged.
            LogError: the log cannot be read.
        """
        trace = lane.trace = await load_trace(self._log, lane.session)
        return trace

    async def commit(self, lane: Lane, batch: Sequence[Entry]) -> list[Fate]:
        """Writes a batch; gives the fate of each entry, or nothing where it is to be tried again.

        It is, if another process was first to append, and, entry by entry, if the batch as a whole
        was refused on account of one of them.

        Raises:
            LogUnavailable: the log cannot be written now; nothing of the batch was.
        """
        try:
            return await self._commit(lane, lane.trace or await self.load(lane), batch)
        except LogUnavailable:
            raise
        except VersionConflict:
            return []
        except (CodecError, DuplicateConflict, InvalidInput, SessionClosedError) as error:
            if len(batch) == 1:
                return [Fate(batch[0], error=error)]
            lane.alone = len(batch)
            return []
        except Exception as error:  # noqa: BLE001  (told in the receipts, logged and counted)
            reason = error if isinstance(error, DuologError) else _unexpected(lane, error)
            return [Fate(entry, error=reason) for entry in batch]

    async def _commit(self, lane: Lane, trace: Trace, batch: Sequence[Entry]) -> list[Fate]:
        expected = trace.version
        lane.trace = None  # what is made is in it at once, and may come to nothing
        drafts, made, again = _make(lane, trace, batch)
        records: list[Record] = []
        if drafts:
            records = await self._log.append(lane.session, drafts, expected_version=expected)
        if not records or records[0].version == expected + 1:
            lane.trace = trace  # else the log had all of them
        fates = [
            Fate(entry, records[at] if at is not None else None, error) for entry, at, error in made
        ]
        for entry, ident in again:
            fates.append(await self._repeat(lane.session, trace, entry, ident))
        return fates

    async def _repeat(self, session: str, trace: Trace, entry: Entry, ident: str) -> Fate:
        """Has the log compare an entry with the record that has its id.

        The log does it, and not we, since it may have taken something out of what it holds.
        """
        held = await anext(self._log.read(session, after_version=trace.ids[ident] - 1))
        event = entry.deed.repeat(held.event)
        draft = Draft(event, entry.actor, entry.role, entry.time, ident)
        try:
            await self._log.append(session, [draft])
        except DuplicateConflict as conflict:
            return Fate(entry, error=conflict)
        refused = isinstance(entry.deed, Submitting) and held.kind == "ActionTaken"
        error = StaleBase(_base_of(event), trace.snapshot) if refused else None
        return Fate(entry, held, error, repeated=True)


def _make(
    lane: Lane, trace: Trace, batch: Sequence[Entry]
) -> tuple[list[Draft], list[_Made], list[tuple[Entry, str]]]:
    """Turns entries into drafts, as the trace stands; sets those aside that the log has already."""
    drafts: list[Draft] = []
    made: list[_Made] = []
    again: list[tuple[Entry, str]] = []
    if not trace.version:
        drafts.append(Draft(lane.opened, ENGINE, "environment", batch[0].time))
        _feed(trace, lane.session, drafts[0])
    for entry in batch:
        if entry.id is not None and entry.id in trace.ids:
            again.append((entry, entry.id))
            continue
        try:
            written = entry.deed.write(trace, lane.session)
        except DuologError as error:
            made.append(_Made(entry, None, error))
            continue
        at = len(drafts) if written.facts else None
        entry.receipt.at = trace.version + 1 if written.facts else None
        made.append(_Made(entry, at, written.error))
        for draft in _drafts(entry, written, max(entry.time, trace.time)):
            drafts.append(draft)
            _feed(trace, lane.session, draft)
    return drafts, made, again


def _drafts(entry: Entry, written: Written, time: float) -> list[Draft]:
    """The drafts of an entry; where it has an id, those after the first have one made from it."""
    drafts: list[Draft] = []
    for number, (event, cause, by) in enumerate(written.facts):
        actor, role = by or (entry.actor, entry.role)
        ident = entry.id
        if ident is not None and number:
            ident = f"{ident}/{number}"
        drafts.append(Draft(event, actor, role, time, ident, cause))
    return drafts


def _feed(trace: Trace, session: str, draft: Draft) -> None:
    """Takes a draft into the trace as the record that it is about to be."""
    kind, schema = kind_of(draft.event)
    trace.feed(
        Record(
            0,
            session,
            TRACE,
            trace.version + 1,
            kind,
            schema,
            draft.time,
            draft.actor,
            draft.role,
            draft.cause,
            draft.seen,
            draft.id,
            None,
            draft.event,
        )
    )


def _base_of(event: Event | Unknown) -> int | None:
    base = event.arguments.get("base") if isinstance(event, ActionTaken) else None
    return base if isinstance(base, int) else None


def _unexpected(lane: Lane, error: Exception) -> NotRecorded:
    reason = NotRecorded(lane.session, f"{type(error).__name__}: {error}")
    reason.__cause__ = error
    return reason
