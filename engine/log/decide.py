"""What becomes of a group of appends: decided once, for all stores, without a look at any of them.

A store looks up what a group asks about (``Known``), has the group decided, and writes what was decided
(``Decided``). Keys of sessions and streams are the positions of their first records, so that a store
counts nothing but positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, final
from zlib import crc32

from ..errors import (
    CheckpointConflict,
    DuplicateConflict,
    LogClosed,
    LogError,
    NotALog,
    SessionClosedError,
    VersionConflict,
)
from ..records import Record
from .append import Append, same
from .contract import Advance
from .integrity.checksum import envelope_checksum
from .integrity.hash_chain import START, link, mac, new_salt
from .summary import SessionState, StreamState

__all__ = ("DETACHED", "Decided", "Known", "Row", "decide")

DETACHED: Final = -1
"""Version of a stream whose records were all taken out of the log, with the part that held them."""

_SESSIONS: Final = 20_000  # kept between groups; a few hundred bytes each

Row: TypeAlias = tuple[object, ...]
"""A record as a store writes it: position, key of the stream, version, kind, schema, time, actor, role,
cause, seen, caller's id, body, checksum, key of the session."""


@final
class Known:
    """The part of a log that a decision needs; a decision brings it up to date.

    A session that is not here does not exist, nor does an id or a consumer that a group asks about: the
    store has looked all of them up. If what was decided is not written, the store clears the sessions.

    Args:
        where: the log, for messages.

    Attributes:
        position: the position of the last record.
        sessions: states by name; may be kept between groups while no other program writes.
        ids: records by session and caller's id.
        consumers: positions by consumer and version.
        chained: whether the log keeps a hash chain.
        stored: whether decisions give rows to be written; a log in memory needs none.
    """

    __slots__ = ("chained", "consumers", "ids", "position", "sessions", "stored", "where")

    def __init__(self, where: object, *, stored: bool = True) -> None:
        self.where = where
        self.position = 0
        self.sessions: dict[str, SessionState] = {}
        self.ids: dict[tuple[str, str], Record] = {}
        self.consumers: dict[tuple[str, str], int] = {}
        self.chained = False
        self.stored = stored

    def forget_questions(self) -> None:
        """Knows nothing any more of the ids and consumers that the last group asked about."""
        self.ids.clear()
        self.consumers.clear()

    def evict(self) -> None:
        """Lets go of the sessions that came first, if there are too many."""
        for session in list(self.sessions)[: max(0, len(self.sessions) - _SESSIONS)]:
            del self.sessions[session]


@final
class Decided:
    """The records and changes to write for a group; each append has its outcome already.

    Attributes:
        records: in order of position.
        rows: the same, to be written.
        begun: sessions that are new.
        streams: new ones: key, key of the session, name.
        touched: sessions with new records, and whether more changed of them than how far they are.
        ids: callers' ids: key of the session, id, position.
        links: links of the hash chain: position, m_n, h_n.
        moved: consumers whose checkpoint moved, with the new position.
    """

    __slots__ = ("begun", "ids", "links", "moved", "records", "rows", "streams", "touched")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.rows: list[Row] = []
        self.begun: list[SessionState] = []
        self.streams: list[tuple[int, int, str]] = []
        self.touched: dict[SessionState, bool] = {}
        self.ids: list[tuple[int, str, int]] = []
        self.links: list[tuple[int, bytes, bytes]] = []
        self.moved: dict[tuple[str, str], int] = {}


def decide(known: Known, group: Sequence[Append]) -> Decided:
    """Decides a group in order, and leaves in each append its outcome: records, or a ``LogError``.

    An append that is refused changes nothing, and the others do not suffer.
    """
    decided = Decided()
    for append in group:
        before = append.after
        if before is not None and not isinstance(before.outcome, list):
            append.outcome = before.outcome or LogClosed("the append before it was withdrawn")
            continue
        try:
            append.outcome = _take(append, known, decided)
        except LogError as error:
            # Its traceback leads to this frame, and back to the append.
            append.outcome = error.with_traceback(None)
    return decided


def _take(append: Append, known: Known, decided: Decided) -> list[Record]:
    session = append.session
    state = known.sessions.get(session) or SessionState(session)
    if append.ids and (there := _originals(append, known)) is not None:
        _move(append.checkpoint, known, decided, redelivered=True)
        return there
    entry = state.streams.get(append.stream)
    _check_admitted(append, state, entry, known.where)
    _move(append.checkpoint, known, decided)
    if not append.envelopes:
        return []
    first = known.position + 1
    if not state.key:
        state.key = first
        state.salt = new_salt() if known.chained else None
        known.sessions[session] = state
        decided.begun.append(state)
        decided.touched[state] = True
    if entry is None:
        entry = state.streams[append.stream] = StreamState(first, 0)
        decided.streams.append((first, state.key, append.stream))
    records = _records(append, known.position, entry.version)
    if known.stored:
        _add_rows(append, first, state, entry, decided)
    if known.chained:
        _chain(records, state, entry, decided)
    for record in records if append.ids else ():
        if record.caller_id is not None:
            known.ids[session, record.caller_id] = record
            decided.ids.append((state.key, record.caller_id, record.position))
    decided.records += records
    known.position += len(records)
    entry.version += len(records)
    changed = state.advance(append, known.position)
    decided.touched[state] = changed or decided.touched.get(state, False)
    return records


def _originals(append: Append, known: Known) -> list[Record] | None:
    """The records that an append with callers' ids repeats; None if it is new.

    Raises:
        DuplicateConflict: some are there and some not, or one says something else.
    """
    session = append.session
    there = [record for own in append.ids if (record := known.ids.get((session, own))) is not None]
    if not there:
        return None
    if len(there) < len(append.envelopes):
        taken = there[0].id
        raise DuplicateConflict(session, taken, "but not all events of this append are there")
    for record, envelope in zip(there, append.envelopes, strict=True):
        if record.stream != append.stream or not same(record, envelope):
            raise DuplicateConflict(session, record.id, "by another event")
    return there


def _check_admitted(
    append: Append, state: SessionState, entry: StreamState | None, where: object
) -> None:
    """Refuses an append that its session or stream does not take.

    Raises:
        SessionClosedError: a trace event after the close, or contents of a forgotten session.
        VersionConflict: the stream is at another version.
        NotALog: the stream's records are not in the log.
    """
    version = 0 if entry is None else entry.version
    if version == DETACHED:
        raise NotALog(
            f"{where}: the records of session {append.session!r} were detached with their partition: "
            "attach it again to append to them"
        )
    if append.envelopes and state.refuses(append):
        raise SessionClosedError(append.session)
    if append.expected is not None and append.expected != version:
        raise VersionConflict(append.session, append.stream, append.expected, version)


def _move(
    advance: Advance | None, known: Known, decided: Decided, *, redelivered: bool = False
) -> None:
    """Moves a checkpoint by compare-and-set.

    Args:
        advance: where from and to; None for no move.
        known: what is known of the log, including the current position of the checkpoint.
        decided: takes the move.
        redelivered: whether the records that it came with are in the log; then it may have moved, too.

    Raises:
        CheckpointConflict: it is not at the expected position.
    """
    if advance is None:
        return
    key = (advance.consumer, advance.version)
    actual = known.consumers.get(key, 0)
    if redelivered and actual == advance.position:
        return
    if actual != advance.expected:
        raise CheckpointConflict(*key, advance.expected, actual)
    known.consumers[key] = decided.moved[key] = advance.position


def _records(append: Append, position: int, version: int) -> list[Record]:
    session, stream, records = append.session, append.stream, []
    # Each field by its name: splicing the envelope in takes twice as long.
    for kind, schema, time, actor, role, cause, seen, own, body, event in append.envelopes:
        position += 1
        version += 1
        records.append(
            Record(
                position,
                session,
                stream,
                version,
                kind,
                schema,
                time,
                actor,
                role,
                cause,
                seen,
                own,
                body,
                event,
            )
        )
    return records


def _add_rows(
    append: Append, position: int, state: SessionState, entry: StreamState, decided: Decided
) -> None:
    """The rows of an append whose first record has a position."""
    session, stream, rows = append.session, append.stream, decided.rows
    session_key, stream_key, version = state.key, entry.key, entry.version
    for kind, schema, time, actor, role, cause, seen, own, body, _ in append.envelopes:
        version += 1
        crc = envelope_checksum(
            (
                position,
                session,
                stream,
                version,
                kind,
                schema,
                time,
                actor,
                role,
                cause,
                seen,
                own,
            )
        )
        if body is not None:
            crc = crc32(body, crc)
        rows.append(
            (
                position,
                stream_key,
                version,
                kind,
                schema,
                time,
                actor,
                role,
                cause,
                seen,
                own,
                body,
                crc,
                session_key,
            )
        )
        position += 1


def _chain(
    records: Sequence[Record], state: SessionState, entry: StreamState, decided: Decided
) -> None:
    before = entry.hash or START
    for record in records:
        body_mac = mac(state.salt, record.body)
        before = link(before, record, body_mac)
        decided.links.append((record.position, body_mac, before))
    entry.hash = before
