"""Group commit on PostgreSQL: many appends become one transaction under the lock of the log.

Who holds the lock gives out the next positions, and lets go of it by committing; so positions have no
gaps, grow in commit order, and a reader who sees one sees all before. What is known of sessions is
kept between groups as long as nobody else writes; the row that is locked shows whether somebody did.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, final

import asyncpg
import msgspec

from ...errors import (
    InvalidInput,
    LogError,
    NewerLog,
)
from ...records import Record
from ...rounds import RoundCount
from ..admission import advances, check_admitted
from ..append import Append, originals
from ..checksum import checksum, envelope_checksum
from ..contract import Advance
from ..hash_chain import START, link, mac, new_salt
from ..summary import SessionState, StreamState
from .connection import Connection
from .reader import EVENT, records_of
from .settings import Settings
from .tables import LAYOUT

__all__ = ("Committer", "Prepared", "refused")

_SESSIONS: Final = 20_000  # kept; a few hundred bytes each

_STATE: Final = (
    "key, session, task, instance, labels, origin, state, events, version, rounds, acted, utility, "
    "evaluated, opened, last, position, salt"
)


class Prepared(NamedTuple):
    """A group as it was sent to be committed, to find out later whether it was.

    Attributes:
        transaction: its id.
        position: of its last record; 0 where it has none.
        crc: of that record.
        records: its records.
    """

    transaction: str
    position: int
    crc: int
    records: list[Record]


class _Sql:
    """The statements over one log."""

    def __init__(self, settings: Settings) -> None:
        s = settings.schema
        self.lock = (
            "SELECT position, epoch, layout, chained, partitioned, pg_current_xact_id()::text "
            f"FROM {s}.log FOR UPDATE"
        )
        self.states = f"SELECT {_STATE} FROM {s}.summaries WHERE session = ANY($1::text[])"
        self.streams = (
            "SELECT t.session, t.stream, t.key, (SELECT version FROM "
            f"{s}.records WHERE stream = t.key ORDER BY version DESC LIMIT 1) FROM {s}.streams t "
            "WHERE t.session = ANY($1::bigint[])"
        )
        self.hashes = (
            "SELECT w.stream, c.hash FROM unnest($1::bigint[], $2::bigint[]) AS w (stream, version) "
            f"JOIN {s}.records r USING (stream, version) JOIN {s}.chain c ON c.position = r.position"
        )
        events = ", ".join(f"r.{name.strip()}" for name in EVENT.split(","))
        self.by_ids = (
            f"SELECT {events} FROM unnest($1::bigint[], $2::text[]) AS wanted (session, id) "
            f"JOIN {s}.ids i USING (session, id) JOIN {s}.records r ON r.position = i.position"
        )
        self.consumers = (
            "SELECT c.consumer, c.version, c.position FROM unnest($1::text[], $2::text[]) "
            f"AS wanted (consumer, version) JOIN {s}.consumers c USING (consumer, version)"
        )
        self.write = f"""
            WITH written AS (
                INSERT INTO {s}.records (
                    position, stream, version, kind, schema, time, actor, role, cause, seen, id, body,
                    crc
                )
                SELECT * FROM unnest(
                    $1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[],
                    $6::double precision[], $7::text[], $8::text[], $9::text[], $10::bigint[],
                    $11::text[], $12::bytea[], $13::bigint[]
                )
            ), summed AS (
                UPDATE {s}.summaries AS o SET
                    state = n.state, events = n.events, version = n.version, rounds = n.rounds,
                    acted = n.acted, utility = n.utility, evaluated = n.evaluated, last = n.last,
                    position = n.position
                FROM unnest(
                    $14::bigint[], $15::text[], $16::bigint[], $17::bigint[], $18::bigint[],
                    $19::bigint[], $20::double precision[], $21::boolean[], $22::double precision[],
                    $23::bigint[]
                ) AS n (
                    key, state, events, version, rounds, acted, utility, evaluated, last, position
                )
                WHERE o.key = n.key
            ), moved AS (
                UPDATE {s}.log SET position = $24
            )
            SELECT pg_notify('{s}', '')"""
        self.opened = f"""
            INSERT INTO {s}.summaries ({_STATE})
            SELECT * FROM unnest(
                $1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
                $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::double precision[],
                $13::boolean[], $14::double precision[], $15::double precision[], $16::bigint[],
                $17::bytea[]
            )
            ON CONFLICT (key) DO UPDATE SET
                task = excluded.task, instance = excluded.instance, labels = excluded.labels,
                origin = excluded.origin, state = excluded.state, events = excluded.events,
                version = excluded.version, rounds = excluded.rounds, acted = excluded.acted,
                utility = excluded.utility, evaluated = excluded.evaluated,
                opened = excluded.opened, last = excluded.last, position = excluded.position"""
        self.begun = (
            f"INSERT INTO {s}.streams (key, session, stream) "
            "SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[])"
        )
        self.ids = (
            f"INSERT INTO {s}.ids (session, id, position) "
            "SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[])"
        )
        self.advance = (
            f"INSERT INTO {s}.consumers (consumer, version, position) "
            "SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[]) "
            "ON CONFLICT (consumer, version) DO UPDATE SET position = excluded.position"
        )
        self.chain = (
            f"INSERT INTO {s}.chain (position, mac, hash) "
            "SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[])"
        )
        self.partition = f"SELECT {s}.add_partition()"
        self.status = "SELECT pg_xact_status($1::text::xid8)"
        self.record = f"SELECT crc FROM {s}.records WHERE position = $1"


@final
class Committer:
    """Commits groups of appends, one after the other, on the connection that it is given.

    Args:
        settings: which log.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._sql = _Sql(settings)
        self._cache: dict[str, SessionState] = {}
        self._known = (-1, -1)  # position and epoch up to which the cache holds
        self._position = 0
        self._chained = False
        self._connection: Connection
        self._crc = 0
        self._rows: list[tuple[object, ...]] = []
        self._records: list[Record] = []
        self._touched: dict[SessionState, bool] = {}  # whether what it is about changed
        self._begun: list[tuple[int, int, str]] = []  # new streams
        self._links: list[tuple[int, bytes, bytes]] = []
        self._ids: dict[tuple[str, str], Record | None] = {}
        self._taken: list[tuple[int, str, int]] = []
        self._consumers: dict[tuple[str, str], int] = {}
        self._moved: set[tuple[str, str]] = set()

    def reset(self) -> None:
        """Has everything read afresh."""
        self._cache.clear()
        self._known = (-1, -1)

    async def prepare(self, connection: Connection, group: Sequence[Append]) -> Prepared:
        """Begins a transaction and does all of a group but the commit; leaves each append's outcome
        in it. An append in conflict fails alone.

        Raises:
            NewerLog: a newer Duolog has taken the log over.
            OSError, asyncpg.PostgresError: nothing was written.
        """
        self._connection = connection
        for gathered in (self._rows, self._records, self._links, self._taken, self._begun):
            gathered.clear()
        for mapped in (self._touched, self._ids, self._consumers):
            mapped.clear()
        self._moved.clear()
        await connection.execute("BEGIN")
        if self._settings.durability == "normal":
            await connection.execute("SET LOCAL synchronous_commit = off")
        row = await connection.fetchrow(self._sql.lock)
        assert row is not None
        position, epoch, layout, self._chained, partitioned, transaction = row
        if layout > LAYOUT:
            raise NewerLog(f"{self._settings.url}: a newer Duolog has taken over this log")
        if self._known != (position, epoch):
            self._cache.clear()
        self._position = position
        await self._look_up(group)
        for append in group:
            try:
                append.outcome = self._take(append)
            except LogError as error:
                # Its traceback leads to this frame, and back to the append.
                append.outcome = error.with_traceback(None)
        while self._position >= partitioned:
            partitioned = await connection.fetchval(self._sql.partition)
        await self._write()
        self._known = (self._position, epoch)
        if len(self._cache) > _SESSIONS:
            for session in list(self._cache)[: len(self._cache) - _SESSIONS]:
                del self._cache[session]
        records = list(self._records)
        return Prepared(transaction, records[-1].position if records else 0, self._crc, records)

    async def was_committed(self, connection: Connection, group: Prepared) -> bool | None:
        """Whether a group whose commit was not answered is in the log; None while that is open."""
        try:
            status = await connection.fetchval(self._sql.status, group.transaction)
        except asyncpg.InvalidParameterValueError:  # its number was never written down
            status = None
        if status == "in progress":
            return None
        if status == "aborted":
            return False
        if not group.position:
            return bool(status)
        # A server that took over may know nothing of the transaction, or of another by its number.
        return bool(await connection.fetchval(self._sql.record, group.position) == group.crc)

    # --- looking up -------------------------------------------------------------------------------

    async def _look_up(self, group: Sequence[Append]) -> None:
        """Reads all that is to be known of the sessions, ids and consumers of a group."""
        fetch = self._connection.fetch
        cache = self._cache
        wanted = {append.session for append in group} - cache.keys()
        if wanted:
            by_key = {}
            for row in await fetch(self._sql.states, list(wanted)):
                state = _state(row)
                by_key[state.key] = cache[state.session] = state
            if by_key:
                for owner, stream, key, version in await fetch(self._sql.streams, list(by_key)):
                    by_key[owner].streams[stream] = StreamState(key, version)
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

    def _take(self, append: Append) -> list[Record]:
        session, envelopes = append.session, append.envelopes
        state = self._cache.get(session) or SessionState(session)
        if append.ids:
            there = originals(append, [self._ids.get((session, own)) for own in append.ids])
            if there is not None:
                self._move(append.checkpoint, redelivered=True)
                return there
        entry = state.streams.get(append.stream)
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
            self._begun.append((entry.key, state.key, append.stream))
        return self._add(append, state, entry)

    def _add(self, append: Append, state: SessionState, entry: StreamState) -> list[Record]:
        session, stream, version = append.session, append.stream, entry.version
        position, records = self._position, []
        crc = 0
        for envelope in append.envelopes:
            position += 1
            version += 1
            own, body = envelope[7], envelope[8]
            crc = checksum(
                envelope_checksum((position, session, stream, version, *envelope[:8])), body
            )
            self._rows.append((position, entry.key, version, *envelope[:9], crc))
            record = Record(position, session, stream, version, *envelope)
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
        about = state.advance(append, position)
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
        execute, sql = self._connection.execute, self._sql
        if self._rows:
            known = [_progress(state) for state, about in self._touched.items() if not about]
            await execute(
                sql.write,
                *zip(*self._rows, strict=True),
                *(zip(*known, strict=True) if known else [()] * 10),
                self._position,
            )
        opened = [_state_row(state) for state, about in self._touched.items() if about]
        if opened:
            await execute(sql.opened, *zip(*opened, strict=True))
        if self._begun:
            await execute(sql.begun, *zip(*self._begun, strict=True))
        if self._taken:
            await execute(sql.ids, *zip(*self._taken, strict=True))
        if self._links:
            await execute(sql.chain, *zip(*self._links, strict=True))
        if self._moved:
            rows = [(*key, self._consumers[key]) for key in self._moved]
            await execute(sql.advance, *zip(*rows, strict=True))


def refused(append: Append, error: Exception) -> InvalidInput:
    """What an append is answered that the server refuses for its values."""
    return InvalidInput(f"an event of session {append.session!r} cannot be stored: {error}")


def _state(row: asyncpg.Record) -> SessionState:
    state = SessionState(row["session"], row["key"])
    state.task, state.instance = row["task"], row["instance"]
    state.group = msgspec.json.decode(row["labels"], type=dict[str, str])
    state.origin, state.state = row["origin"], row["state"]
    state.events, state.version = row["events"], row["version"]
    state.counted = RoundCount(row["rounds"], row["acted"])
    state.utility, state.evaluated = row["utility"], row["evaluated"]
    state.opened, state.last, state.position = row["opened"], row["last"], row["position"]
    state.salt = row["salt"]
    return state


def _state_row(state: SessionState) -> tuple[object, ...]:
    """A session's values in the order of ``_STATE``."""
    return (
        state.key,
        state.session,
        state.task,
        state.instance,
        msgspec.json.encode(state.group).decode(),
        state.origin,
        state.state,
        state.events,
        state.version,
        state.counted.number,
        state.counted.acted,
        state.utility,
        state.evaluated,
        state.opened,
        state.last,
        state.position,
        state.salt,
    )


def _progress(state: SessionState) -> tuple[object, ...]:
    """What of a session changes with each append."""
    return (
        state.key,
        state.state,
        state.events,
        state.version,
        state.counted.number,
        state.counted.acted,
        state.utility,
        state.evaluated,
        state.last,
        state.position,
    )
