"""Writes batches of entries of one session to the log, and reports the result of each."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from contextlib import suppress
from itertools import takewhile
from time import time
from typing import NamedTuple, final
from weakref import WeakKeyDictionary

import msgspec

from ..engine.errors import (
    CodecError,
    DuologError,
    DuplicateConflict,
    InvalidInput,
    LogError,
    LogUnavailable,
    NewerLog,
    NotRecorded,
    OutcomeUnknown,
    PluginFailed,
    SessionClosedError,
    StaleBase,
    VersionConflict,
)
from ..engine.events import ActionTaken, Event, RecordsLate, RecordsLost, Unknown
from ..engine.log.contract import EventLog
from ..engine.logger import log_session_events
from ..engine.records import ENGINE, RECORDING, Draft, Record
from ..engine.session.commands import (
    CloseSession,
    Command,
    GiveFeedback,
    ResolveAction,
    Sender,
    SubmitSnapshot,
    TakeAction,
    about,
    handle,
    repeated,
)
from ..engine.session.state import TraceState, load_state
from .jsonable import storable
from .queue import QueuedCommand, SessionQueue
from .receipt import Receipt, version_of
from .tally import Killed

__all__ = ("BatchCommitter", "CommitResult")


_REFUSED = (CodecError, DuplicateConflict, InvalidInput, PluginFailed, SessionClosedError)
"""Raised before anything of an append is written, on account of one event in it."""


class CommitResult(NamedTuple):
    """The result of an entry.

    Attributes:
        entry: the entry.
        record: its first record; None if there is none.
        error: why it was refused or lost; None if all is well.
        repeated: the log had it already.
    """

    entry: QueuedCommand
    record: Record | None = None
    error: DuologError | None = None
    repeated: bool = False


class _Made(NamedTuple):
    """An entry as drafts, with the index of its event in the batch; None without an event."""

    entry: QueuedCommand
    at: int | None
    error: DuologError | None


class _Batch(NamedTuple):
    """Entries as drafts, to follow a trace version."""

    expected: int
    drafts: list[Draft]
    made: list[_Made]

    def results(self, records: Sequence[Record]) -> list[CommitResult]:
        """The result of each entry, if these are the records of the drafts."""
        return [
            CommitResult(entry, None if at is None else records[at], error)
            for entry, at, error in self.made
        ]


@final
class BatchCommitter:
    """Writes entries; one batch of a session at a time.

    Args:
        log: where they go.
        patient: keep what a log that a newer version has taken over refuses, for that version.
    """

    def __init__(self, log: EventLog, *, patient: bool = False) -> None:
        self._log = log
        self._later = (LogUnavailable, NewerLog) if patient else (LogUnavailable,)
        self._unsure: WeakKeyDictionary[SessionQueue, _Batch] = WeakKeyDictionary()

    async def load(self, queue: SessionQueue) -> TraceState:
        """Reads a session's records from the log, and brings its state up to date.

        Raises:
            CodecError: a required body is damaged.
            LogError: the log cannot be read.
        """
        known, queue.state = queue.state, None  # a read that fails leaves it half read
        state = queue.state = await load_state(self._log, queue.session, known)
        state.ids.update(queue.aliases)
        return state

    async def commit(
        self, queue: SessionQueue, batch: Sequence[QueuedCommand]
    ) -> list[CommitResult]:
        """Writes the head of a batch; returns the result of each of its entries, in order.

        The rest is left to the next call. An entry that the log has already is the whole head. No
        results mean that the batch is to be tried again: another process was first to append, or the
        batch was refused and is tried entry by entry, so that each entry fails alone. An entry that
        refers to an event is refused only if the log lacks that event too. An event that the log cannot
        hold as it is is tried once more, with a text in place of what does not fit.

        Raises:
            LogUnavailable: the log cannot be written now. The batch was not, or the next call finds
                out whether it was (``OutcomeUnknown``).
            NewerLog: a newer version has taken over the log, and the committer is patient.
        """
        try:
            state = queue.state or await self.load(queue)
            if _is_mark(batch[0]):  # nothing of the trace is under way
                self._unsure.pop(queue, None)
                return [await self._mark(queue, state, batch[0])]
            if queue in self._unsure and (found := await self._find(queue)) is not None:
                return found
            if special := self._special(queue, state, batch[0]):
                batch = batch[:1]
                if (result := await special) is not None:
                    return [result]
            return await self._commit(queue, state, batch)
        except self._later:
            raise
        except VersionConflict:
            return []
        except _REFUSED as error:
            return _alone(queue, batch, error)
        except LogError as error:
            return [CommitResult(entry, error=error) for entry in batch]
        except Exception as error:  # noqa: BLE001  (in the receipts, logged and counted)
            if len(batch) == 1:
                self._unsure.pop(queue, None)
            return _alone(queue, batch, _reason(queue.session, error))

    def _special(
        self, queue: SessionQueue, state: TraceState, head: QueuedCommand
    ) -> Coroutine[object, object, CommitResult | None] | None:
        """Writes an entry that cannot be in a batch; None if it can."""
        if head.adopted and head.tried is not None:
            return self._find_tried(queue, state, head)
        if head.id is not None and head.id in state.ids:
            return self._repeat(state, head)
        if _is_too_late(head, state):
            return self._keep_aside(state, head)
        return None

    async def _commit(
        self, queue: SessionQueue, state: TraceState, batch: Sequence[QueuedCommand]
    ) -> list[CommitResult]:
        expected = state.version
        queue.state = None  # the state gets the drafts at once, but they may not be written
        drafts, made = _make(queue, state, batch)
        written = _Batch(expected, drafts, made)
        records: list[Record] = []
        if drafts:
            try:
                records = await self._log.append(queue.session, drafts, expected_version=expected)
            except Exception as error:
                if isinstance(error, OutcomeUnknown) or not isinstance(error, DuologError):
                    self._unsure[queue] = written
                raise
        queue.begun = queue.begun or not expected
        results = written.results(records)
        latest = bool(records) and records[0].version == expected + 1
        if latest or not records:
            queue.state = state  # else the log had all of them
            log_session_events(records)
        if latest or not any(result.error for result in results):
            return results
        # The log has not confirmed that the state is the latest; it may hold what an entry refers to.
        if sure := list(takewhile(lambda result: result.error is None, results)):
            return sure
        return results if (await self.load(queue)).version == expected else []

    async def _find(self, queue: SessionQueue) -> list[CommitResult] | None:
        """Looks for a batch of which it is not known whether it was written; None: it was not."""
        written = self._unsure[queue]
        expected, drafts, _ = written
        records: list[Record] = []
        async for record in self._log.read(queue.session, after_version=expected):
            records.append(record)
            if len(records) == len(drafts):
                break
        del self._unsure[queue]
        if len(records) < len(drafts) or not all(map(_is_from, records, drafts)):
            return None
        queue.begun = queue.begun or not expected
        return written.results(records)

    async def _mark(
        self, queue: SessionQueue, state: TraceState, entry: QueuedCommand
    ) -> CommitResult:
        """Notes in the stream of the recording that events were lost."""
        if not state.version:
            opened = QueuedCommand(
                "session", None, ENGINE, "environment", entry.time, Receipt(queue.session)
            )
            await self._commit(queue, state, [opened])
        assert entry.command is not None
        event = entry.command.event
        if entry.killed is not None and isinstance(event, RecordsLost):
            left = entry.killed.events - await self._written(entry.killed)
            if left <= 0:
                return CommitResult(entry)
            event = msgspec.structs.replace(event, count=left)
        draft = Draft(event, ENGINE, "environment", time(), entry.id)
        record = (await self._log.append(queue.session, [draft], stream=RECORDING))[0]
        return CommitResult(entry, record)

    async def _written(self, killed: Killed) -> int:
        """How many events were written at the moment that their process was killed."""
        count = 0
        async for record in self._log.read(killed.session, after_version=killed.version):
            count += killed.begin <= record.time <= killed.end and record.kind != "SessionOpened"
        return count

    async def _find_tried(
        self, queue: SessionQueue, state: TraceState, entry: QueuedCommand
    ) -> CommitResult | None:
        """The result of an event that was sent before it had an id, if it was written then.

        Only of events that another process has left behind; ``_find`` knows of this process's own.
        """
        version, entry.tried = entry.tried, None
        if version is None or version > state.version:
            return None
        held = await anext(self._log.read(queue.session, after_version=version - 1))
        if (held.time, held.role, held.caller_id) != (entry.time, entry.role, None):
            return None
        if entry.id is not None:
            queue.aliases[entry.id] = state.ids[entry.id] = version
        return CommitResult(entry, held, repeated=True)

    async def _keep_aside(self, state: TraceState, entry: QueuedCommand) -> CommitResult:
        """Writes an event that came after the close of its session into the stream of the recording."""
        command = entry.command
        assert command is not None
        with suppress(DuologError):  # else it is written without what it refers to
            command = _command(entry, command, state)
        events = [command.event]
        if isinstance(command, TakeAction) and command.outcome is not None:
            events.append(command.outcome)
        drafts = [
            Draft(
                event, entry.actor, entry.role, entry.time, f"{entry.id}/{at}" if at else entry.id
            )
            for at, event in enumerate(events)
        ]
        records = await self._log.append(state.session, drafts, stream=RECORDING)
        return CommitResult(entry, records[0])

    async def _repeat(self, state: TraceState, entry: QueuedCommand) -> CommitResult:
        """Makes the log compare an entry with the record that has its id.

        The log compares them, since it may have taken something out of what it holds.
        """
        command, ident = entry.command, entry.id
        assert command is not None
        assert ident is not None
        held = await anext(self._log.read(state.session, after_version=state.ids[ident] - 1))
        event = repeated(command, held.event)
        sender = (entry.actor, entry.role)
        if isinstance(command, ResolveAction):  # an outcome is the environment's
            sender = (held.actor, held.role)
        draft = Draft(event, *sender, entry.time, ident, held.cause)
        await self._log.append(state.session, [draft])
        refused = isinstance(command, SubmitSnapshot) and held.kind == "ActionTaken"
        error = StaleBase(_base_of(event), state.snapshot) if refused else None
        return CommitResult(entry, held, error, repeated=True)


def _alone(
    queue: SessionQueue, batch: Sequence[QueuedCommand], error: DuologError
) -> list[CommitResult]:
    """The result of a batch that was refused: none yet if there is another way to try first."""
    if len(batch) > 1:
        queue.alone = len(batch)
        return []
    if isinstance(error, CodecError) and _shorten(batch[0]):
        return []
    return [CommitResult(batch[0], error=error)]


def _is_mark(entry: QueuedCommand) -> bool:
    return entry.command is not None and isinstance(entry.command.event, RecordsLost | RecordsLate)


def _is_too_late(entry: QueuedCommand, state: TraceState) -> bool:
    """Whether an event waited on the disk while its session was closed."""
    closed = entry.spilled and state.closed is not None and entry.command is not None
    return closed and not isinstance(entry.command, CloseSession | GiveFeedback)


def _is_from(record: Record, draft: Draft) -> bool:
    """Whether a record was made from a draft, as far as redaction leaves that to be seen."""
    return (record.time, record.role, record.caller_id) == (draft.time, draft.role, draft.id)


def _make(
    queue: SessionQueue, state: TraceState, batch: Sequence[QueuedCommand]
) -> tuple[list[Draft], list[_Made]]:
    """Turns entries into drafts on top of the trace; stops at an entry whose id it has already."""
    drafts: list[Draft] = []
    made: list[_Made] = []
    # A sender that only opened the session has received that.
    opened = 1 if queue.begun or not state.version else None
    if not state.version:
        drafts.append(Draft(queue.opened, ENGINE, "environment", batch[0].time))
        state.feed_draft(drafts[0])
    for entry in batch:
        command = entry.command
        if command is None:
            made.append(_Made(entry, None, None))
            continue
        if entry.id is not None and entry.id in state.ids or _is_too_late(entry, state):
            break
        if made and entry.adopted and entry.tried is not None:
            break
        received = opened if entry.received is None else _version_in(entry.received, state)
        entry.time = max(entry.time, state.time)
        sender = Sender(entry.actor, entry.role, entry.time, entry.id, received)
        try:
            handled = handle(_command(entry, command, state), state, sender)
        except Exception as error:  # noqa: BLE001  (in the receipt, logged and counted)
            made.append(_Made(entry, None, _reason(queue.session, error)))
            continue
        found = bool(handled.drafts)
        entry.receipt.at = state.version + 1 + handled.main if found else None
        made.append(_Made(entry, len(drafts) + handled.main if found else None, handled.error))
        for draft in handled.drafts:
            drafts.append(draft)
            state.feed_draft(draft)
    return drafts, made


def _version_in(received: Receipt, state: TraceState) -> int | None:
    """The trace version of an event that another process may have written."""
    if received.at is None and received.ident is not None:
        return state.ids.get(received.ident)
    return received.at


def _shorten(entry: QueuedCommand) -> bool:
    """Replaces what the log cannot hold of a command, if that was not done before."""
    if entry.command is None or entry.shortened:
        return False
    entry.command = storable(entry.command)
    entry.shortened = True
    return True


def _command(entry: QueuedCommand, command: Command, state: TraceState) -> Command:
    """The command with the trace version of the event that it refers to."""
    return command if entry.about is None else about(command, version_of(entry.about, state))


def _base_of(event: Event | Unknown) -> int | None:
    base = event.arguments.get("base") if isinstance(event, ActionTaken) else None
    return base if isinstance(base, int) else None


def _reason(session: str, error: Exception) -> DuologError:
    """Why an entry failed, as its receipt says it."""
    if isinstance(error, DuologError):
        return error
    reason = NotRecorded(session, f"{type(error).__name__}: {error}")
    reason.__cause__ = error
    return reason
