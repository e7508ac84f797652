"""Group commit on PostgreSQL: many appends become one transaction under the lock of the log.

Who holds the lock gives out the next positions, and lets go of it by committing; so positions have no
gaps, grow in commit order, and a reader who sees one sees all before. What is known of sessions is
kept between groups as long as nobody else writes; the row that is locked shows whether somebody did.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final
from zlib import crc32

from ...errors import (
    InvalidInput,
    LogError,
    NotALog,
)
from ...records import Record
from ..admission import advances, check_admitted
from ..append import Append, originals
from ..contract import Advance
from ..integrity.checksum import envelope_checksum
from ..integrity.hash_chain import START, link, mac, new_salt
from ..summary import SessionState, StreamState
from .connection import Connection, check_taken_over
from .prepared import Prepared
from .reader import records_of
from .session_rows import progress_of, state_of, state_row
from .settings import Settings
from .statements import COLUMNS, Statements

__all__ = ("Committer", "refused")

_SESSIONS: Final = 20_000  # kept; a few hundred bytes each
_DETACHED: Final = -1  # version of a stream whose records are all in partitions that were detached


@final
class Committer:
    """Commits groups of appends, one after the other, on the connection that it is given.

    Args:
        settings: which log.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._sql = Statements(settings)
        self._cache: dict[str, SessionState] = {}
        self._known = (-1, -1)  # position and epoch up to which the cache holds
        self._alone = False  # whether nobody else has written between the last two groups
        self._ahead: Sequence[Append] = ()  # a group that was decided of before it is begun
        self._begun: bool | None = None  # whether with the lock, where a transaction is begun
        self._partitioned = 0
        self._position = 0
        self._chained = False
        self._connection: Connection
        self._crc = 0
        self._rows: list[tuple[object, ...]] = []
        self._records: list[Record] = []
        self._touched: dict[SessionState, bool] = {}  # whether more changed than how far it has got
        self._new: list[tuple[int, int, str]] = []  # streams
        self._links: list[tuple[int, bytes, bytes]] = []
        self._ids: dict[tuple[str, str], Record | None] = {}
        self._taken: list[tuple[int, str, int]] = []
        self._consumers: dict[tuple[str, str], int] = {}
        self._moved: set[tuple[str, str]] = set()

    def reset(self) -> None:
        """Has everything read afresh."""
        self._cache.clear()
        self._known = (-1, -1)
        self._alone = False
        self._ahead = ()

    def take_ahead(self, group: Sequence[Append]) -> None:
        """Decides of a group while the one before is being committed, if that needs no look at the log.

        Where that one fails, ``reset`` has everything decided anew.
        """
        if self._knows_all_of(group):
            try:
                self._take_all(group, self._known[0])
            except BaseException:
                self.reset()  # what is kept of sessions counts a part of the group already
                raise
            self._ahead = group

    async def begin(self, connection: Connection) -> None:
        """Begins the transaction of the next group, and locks the log if nobody has written since.

        Who has the lock is not waited for: the outcomes of the group before are still to be handed out.
        """
        answer = await connection.execute(self._sql.begin_if(*self._known))
        self._begun = answer == "SELECT 1"

    async def end(self, connection: Connection) -> None:
        """Ends a transaction that was begun for a group which is not coming any more."""
        begun, self._begun = self._begun, None
        if begun is not None:
            await connection.execute("ROLLBACK")

    def lose(self) -> None:
        """Takes notice that the connection is gone, and with it what was begun on it."""
        self._begun = None
        self.reset()

    async def prepare(self, connection: Connection, group: Sequence[Append]) -> Prepared:
        """Begins a transaction under the lock of the log and writes what belongs to a group besides its
        records; leaves each append's outcome in it. An append in conflict fails alone.

        Raises:
            NewerLog: a newer Duolog has taken the log over.
            OSError, asyncpg.PostgresError: nothing was written.
        """
        self._connection = connection
        begun, self._begun = self._begun, None
        if self._ahead and group is not self._ahead:
            self.reset()
        while True:
            if group is self._ahead or self._knows_all_of(group):
                transaction = await self._begin_as_known(group, begun)
            else:
                if begun is None:
                    await connection.execute(self._sql.begin)
                transaction = await self._lock(group)
            if self._position < self._partitioned:
                break
            # The server shows what a transaction wrote a moment before it has others look for a new
            # partition. So one is attached before the transaction that first writes to it: else who
            # saw its position, and not yet the partition, would miss its records.
            await connection.execute("ROLLBACK")
            self.reset()
            begun = None
            await connection.execute(self._sql.partition)
        await self._write()
        self._known = (self._position, self._known[1])
        if len(self._cache) > _SESSIONS:
            for session in list(self._cache)[: len(self._cache) - _SESSIONS]:
                del self._cache[session]
        records = self._records
        return Prepared(transaction, records[-1].position if records else 0, self._crc, records)

    async def commit(self, connection: Connection) -> None:
        """Writes the records of the group that was prepared, and commits it, in one go.

        Raises:
            OSError, asyncpg.PostgresError: it was not committed, or that is unknown.
        """
        rows, sql = self._rows, self._sql
        if not rows:
            await connection.execute("COMMIT")
            return
        known = [progress_of(state) for state, about in self._touched.items() if not about]
        # The client sends what stands there as it is, behind the COPY: further statements that stand
        # there, too, save two exchanges with the server.
        await connection.copy_records_to_table(
            "records",
            schema_name=self._settings.schema,
            columns=COLUMNS,
            records=rows,
            where=f"true; {sql.commit_at(self._position, list(zip(*known, strict=True)))}",
        )

    # --- beginning --------------------------------------------------------------------------------

    def _knows_all_of(self, group: Sequence[Append]) -> bool:
        """Whether a group can be taken without a look at the log, if nobody else has written to it."""
        if not self._alone:
            return False
        for append in group:
            state = self._cache.get(append.session)
            if state is None or append.ids or append.checkpoint is not None:
                return False
            stream = state.streams.get(append.stream)
            if self._chained and stream is not None and stream.hash is None:
                return False
        return True

    async def _begin_as_known(self, group: Sequence[Append], begun: bool | None) -> str:
        """Takes a group, then begins and locks in one go; as ``_lock`` where others have written since."""
        position, epoch = self._known
        if group is not self._ahead:
            self._take_all(group, position)
        self._ahead = ()
        if begun is None:
            begin = self._sql.begin_at(position, epoch, self._position)
            begun = await self._connection.execute(begin) == "UPDATE 1"
        if begun:
            return ""
        self.reset()
        return await self._lock(group)

    async def _lock(self, group: Sequence[Append]) -> str:
        """Locks the log, looks up what is to be known of a group, and takes it; gives the id of the
        transaction.

        Raises:
            NewerLog: a newer Duolog has taken the log over.
        """
        row = await self._connection.fetchrow(self._sql.lock)
        assert row is not None
        position, epoch, layout, self._chained, partitioned, transaction = row
        check_taken_over(layout, self._settings.url)
        if partitioned != self._partitioned:
            await self._connection.execute(self._sql.attached)
            self._partitioned = partitioned
        self._alone = self._known == (position, epoch)
        if not self._alone:
            self._cache.clear()
            self._known = (position, epoch)
        self._ids.clear()
        self._consumers.clear()
        await self._look_up(group)
        self._take_all(group, position)
        return str(transaction)

    # --- looking up -------------------------------------------------------------------------------

    async def _look_up(self, group: Sequence[Append]) -> None:
        """Reads all that is to be known of the sessions, ids and consumers of a group."""
        fetch = self._connection.fetch
        cache = self._cache
        wanted = {append.session for append in group} - cache.keys()
        if wanted:
            by_key = {}
            for row in await fetch(self._sql.states, list(wanted)):
                state = state_of(row)
                by_key[state.key] = cache[state.session] = state
            if by_key:
                for owner, stream, key, version in await fetch(self._sql.streams, list(by_key)):
                    known = _DETACHED if version is None else version
                    by_key[owner].streams[stream] = StreamState(key, known)
        if self._chained:
            await self._look_up_hashes(group)
        ids = [
            (known.key, append.session, own)
            for append in group
            if append.ids and (known := cache.get(append.session)) is not None
            for own in append.ids
        ]
        if ids:
            await self._look_up_ids(ids)
        moves = [append.checkpoint for append in group if append.checkpoint is not None]
        if moves:
            for consumer, version, at in await fetch(
                self._sql.consumers, [m.consumer for m in moves], [m.version for m in moves]
            ):
                self._consumers[consumer, version] = at

    async def _look_up_hashes(self, group: Sequence[Append]) -> None:
        streams: dict[int, StreamState] = {}
        for append in group:
            known = self._cache.get(append.session)
            entry = known.streams.get(append.stream) if known is not None else None
            if entry is not None and entry.hash is None:
                streams[entry.key] = entry
        found = await self._connection.fetch(
            self._sql.hashes, list(streams), [entry.version for entry in streams.values()]
        )
        for key, value in found:
            streams[key].hash = value

    async def _look_up_ids(self, ids: Sequence[tuple[int, str, str]]) -> None:
        names = {
            entry.key: (session, stream)
            for session in {session for _, session, _ in ids}
            for stream, entry in self._cache[session].streams.items()
        }
        rows = await self._connection.fetch(
            self._sql.by_ids, [key for key, _, _ in ids], [own for _, _, own in ids]
        )
        for record in records_of(rows, names):
            self._ids[record.session, record.caller_id or ""] = record

    # --- taking -----------------------------------------------------------------------------------

    def _take_all(self, group: Sequence[Append], position: int) -> None:
        """Decides of all appends of a group, behind a position, and gathers what is to be written."""
        self._rows, self._records = [], []  # the client may still be sending those before
        for gathered in (self._links, self._taken, self._new):
            gathered.clear()
        self._touched.clear()
        self._moved.clear()
        self._position = position
        for append in group:
            try:
                append.outcome = self._take(append)
            except LogError as error:
                # Its traceback leads to this frame, and back to the append.
                append.outcome = error.with_traceback(None)

    def _take(self, append: Append) -> list[Record]:
        session, envelopes = append.session, append.envelopes
        state = self._cache.get(session) or SessionState(session)
        if append.ids:
            there = originals(append, [self._ids.get((session, own)) for own in append.ids])
            if there is not None:
                self._move(append.checkpoint, redelivered=True)
                return there
        entry = state.streams.get(append.stream)
        if entry is not None and entry.version == _DETACHED:
            raise NotALog(
                f"{self._settings.url}: the records of session {session!r} were detached with their "
                "partition: attach it again to append to them"
            )
        check_admitted(append, state, 0 if entry is None else entry.version)
        self._move(append.checkpoint)
        if not envelopes:
            return []
        if not state.key:
            state.key = self._position + 1
            state.salt = new_salt() if self._chained else None
            self._cache[session] = state
            self._touched[state] = True
        if entry is None:
            entry = state.streams[append.stream] = StreamState(self._position + 1, 0)
            self._new.append((entry.key, state.key, append.stream))
        return self._add(append, state, entry)

    def _add(self, append: Append, state: SessionState, entry: StreamState) -> list[Record]:
        session, stream, version = append.session, append.stream, entry.version
        position, records = self._position, []
        stream_key, rows, crc = entry.key, self._rows, 0
        # Each field by its name: splicing the envelope in takes twice as long.
        for kind, schema, time, actor, role, cause, seen, own, body, event in append.envelopes:
            position += 1
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
                )
            )
            record = Record(
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
            records.append(record)
            if own is not None:
                self._ids[session, own] = record
                self._taken.append((state.key, own, position))
            if self._chained:
                body_mac = mac(state.salt, body)
                entry.hash = link(entry.hash or START, record, body_mac)
                self._links.append((position, body_mac, entry.hash))
        self._position, self._crc, entry.version = position, crc, version
        self._records += records
        before = state.state, state.utility, state.evaluated
        about = state.advance(append, position)
        about = about or before != (state.state, state.utility, state.evaluated)
        self._touched[state] = about or self._touched.get(state, False)
        return records

    def _move(self, advance: Advance | None, *, redelivered: bool = False) -> None:
        if advance is None:
            return
        key = (advance.consumer, advance.version)
        actual = self._consumers.get(key, 0)
        if advances(advance, actual, redelivered=redelivered):
            self._consumers[key] = advance.position
            self._moved.add(key)

    # --- writing ----------------------------------------------------------------------------------

    async def _write(self) -> None:
        """Writes what was gathered besides records, and how far sessions have got."""
        connection, sql = self._connection, self._sql
        moved = [(*key, self._consumers[key]) for key in self._moved]
        opened = [state_row(state) for state, about in self._touched.items() if about]
        for statement, rows in (
            (sql.opened, opened),
            (sql.begun, self._new),
            (sql.ids, self._taken),
            (sql.chain, self._links),
            (sql.advance, moved),
        ):
            if rows:
                await connection.execute(statement, *zip(*rows, strict=True))


def refused(append: Append, error: Exception) -> InvalidInput:
    """What an append is answered that the server refuses for its values."""
    return InvalidInput(f"an event of session {append.session!r} cannot be stored: {error}")
