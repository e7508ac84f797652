"""Group commit on PostgreSQL: many appends become one transaction under the lock of the log.

The writer that holds the lock assigns the next positions and releases the lock by committing. So
positions are gapless and grow in commit order, and a reader that sees one sees all before it. The
writer caches session state between groups until another writer commits; the locked row shows
whether one did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, final

import asyncpg
import msgspec

from ...errors import InvalidInput
from ...records import Record
from ..append import Append
from ..decide import DETACHED, Decided, Known, decide
from ..integrity.checksum import checksum_of
from ..summary import STATE, StreamState, progress_of, state_of, state_row
from .connection import Connection, check_taken_over
from .reader import EVENT, records_of
from .settings import Settings

__all__ = (
    "COLUMNS",
    "Committer",
    "Prepared",
    "Statements",
    "refused",
    "was_committed",
)


class Prepared(NamedTuple):
    """A group as it was sent to be committed, to find out later whether it was.

    Attributes:
        transaction: its id; empty if it was begun without reading the log.
        position: the position of its last record; 0 if it has none.
        crc: the checksum of that record.
        records: its records.
    """

    transaction: str
    position: int
    crc: int
    records: list[Record]


async def was_committed(connection: Connection, sql: Statements, group: Prepared) -> bool | None:
    """Whether a group whose commit was not answered is in the log; None while that is open.

    Args:
        connection: another one than it was sent on.
        sql: the statements of the log.
        group: the group.

    Raises:
        OSError, asyncpg.PostgresError: it cannot be found out now.
    """
    if group.position:
        return await _has(connection, sql, group)
    if not group.transaction:  # there was nothing to be written
        return False
    try:
        status = await connection.fetchval(sql.status, group.transaction)
    except asyncpg.InvalidParameterValueError:  # its number was never written down
        status = None
    if status == "in progress":
        return None
    return bool(status == "committed")


async def _has(connection: Connection, sql: Statements, group: Prepared) -> bool | None:
    """Whether the log has a group's last record; None while another connection has the log locked.

    The group had the lock when its records were sent. So once this connection gets the lock, the
    group is either committed or never will be. The same is true on a server that took over.
    """
    try:
        async with connection.transaction():
            await connection.execute(sql.look)
            crc = await connection.fetchval(sql.record, group.position)
    except asyncpg.LockNotAvailableError:
        return None
    return bool(crc == group.crc)


COLUMNS: Final = tuple(name.strip() for name in f"{EVENT}, crc".split(","))
"""The columns of the table of records, in the order in which a commit writes them."""

_STATE: Final = f"{STATE}, salt"


@final
class Statements:
    """The statements over one log.

    Args:
        settings: which log.
    """

    def __init__(self, settings: Settings) -> None:
        s = self._schema = settings.schema
        self._repeated = _Repeated(s, prepared=not settings.pooler)
        self.prepare = self._repeated.prepare()
        self.begin = "BEGIN"
        if settings.durability == "normal":
            self.begin += "; SET LOCAL synchronous_commit = off"
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
        self.opened = f"""
            INSERT INTO {s}.summaries ({_STATE}, rounds, acted, evaluated)
            SELECT *, 0, 0, false FROM unnest(
                $1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
                $8::bigint[], $9::bigint[], $10::double precision[], $11::double precision[],
                $12::bigint[], $13::bytea[]
            )
            ON CONFLICT (key) DO UPDATE SET
                task = excluded.task, instance = excluded.instance, labels = excluded.labels,
                origin = excluded.origin, state = excluded.state, events = excluded.events,
                version = excluded.version,
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
        # Waits until the process that attached the last partition has released it. By then the
        # server has told all connections about the partition.
        self.attached = (
            f"SELECT pg_relation_size(to_regclass(format('{s}.records_%s', partitioned - partition))) "
            f"FROM {s}.log"
        )
        self.look = f"SET LOCAL lock_timeout = '1s'; SELECT FROM {s}.log FOR UPDATE"
        self.status = "SELECT pg_xact_status($1::text::xid8)"
        self.record = f"SELECT crc FROM {s}.records WHERE position = $1"

    def commit_at(self, position: int, progress: Sequence[Sequence[float]]) -> str:
        """Ends a transaction in which records were copied.

        Args:
            position: the position of the last of them.
            progress: key, events, version, last and position of sessions in which no
                more than these has changed, one sequence for each.
        """
        steps = [self._repeated.run("move", position), f'NOTIFY "{self._schema}"', "COMMIT"]
        if progress:
            columns = [f"'{{{msgspec.json.encode(column).decode()[1:-1]}}}'" for column in progress]
            steps.insert(0, self._repeated.run("summarize", *columns))
        return "; ".join(steps)

    def begin_if(self, position: int, epoch: int) -> str:
        """Begins a transaction; takes the lock if it is free and the log is unchanged.

        The server answers ``SELECT 1`` if it took the lock, else ``SELECT 0``.
        """
        return f"{self.begin}; {self._repeated.run('lock_if', position, epoch)}"

    def begin_at(self, position: int, epoch: int, upto: int) -> str:
        """Begins a transaction and takes the lock, if the log is as it is known; moves its position.

        The server answers ``UPDATE 1``, or ``UPDATE 0`` if others have written since.
        """
        return f"{self.begin}; {self._repeated.run('move_if', position, epoch, upto)}"


class _Repeated:
    """What each group has the server do: planned once for a connection, if it stays ours.

    To read and plan them again for each group of 100 took a fifth of the server's time.

    Args:
        schema: the schema of the log.
        prepared: whether the connection keeps what is prepared on it, as behind a pooler it does not.
    """

    def __init__(self, schema: str, *, prepared: bool) -> None:
        self._prepared = prepared
        self._statements: Mapping[str, tuple[tuple[str, ...], str]] = {
            "lock_if": (
                ("bigint", "bigint"),
                f"""
                SELECT FROM {schema}.log WHERE position = {{}} AND epoch = {{}}
                FOR UPDATE SKIP LOCKED""",
            ),
            "move_if": (
                ("bigint", "bigint", "bigint"),
                f"UPDATE {schema}.log SET position = {{2}} WHERE position = {{0}} AND epoch = {{1}}",
            ),
            "move": (
                ("bigint",),
                f"UPDATE {schema}.log SET position = {{0}} WHERE position <> {{0}}",
            ),
            "summarize": (
                (*("bigint[]",) * 3, "double precision[]", "bigint[]"),
                f"""
                UPDATE {schema}.summaries AS o SET
                    events = n.events, version = n.version, last = n.last, position = n.position
                FROM unnest({{}}, {{}}, {{}}, {{}}, {{}}) AS n (key, events, version, last, position)
                WHERE o.key = n.key""",
            ),
        }

    def prepare(self) -> str:
        """Prepares all statements on a new connection; empty if statements are not prepared."""
        if not self._prepared:
            return ""
        return "; ".join(
            f"PREPARE {name} ({', '.join(types)}) AS "
            + text.format(*(f"${number}" for number in range(1, len(types) + 1)))
            for name, (types, text) in self._statements.items()
        )

    def run(self, name: str, *values: object) -> str:
        """The statement that does one of them, with values as SQL has them."""
        if self._prepared:
            return f"EXECUTE {name} ({', '.join(map(str, values))})"
        types, text = self._statements[name]
        return text.format(*(f"{value}::{of}" for value, of in zip(values, types, strict=True)))


@final
class Committer:
    """Commits groups of appends, one after the other, on the connection that it is given.

    Args:
        settings: which log.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._sql = Statements(settings)
        self._known = Known(settings.url)
        self._decided = Decided()
        self._seen = (-1, -1)  # position and epoch of the log up to which its sessions are known
        self._alone = False  # whether no other writer committed between the last two groups
        self._ahead: Sequence[Append] = ()  # a group that is decided before its transaction begins
        self._begun: bool | None = None  # whether the open transaction has the lock
        self._partitioned = 0
        self._connection: Connection

    def reset(self) -> None:
        """Discards what is known, so that it is read again."""
        self._known.sessions.clear()
        self._seen = (-1, -1)
        self._alone = False
        self._ahead = ()

    def take_ahead(self, group: Sequence[Append]) -> None:
        """Decides a group while the last one is being committed, if it need not read the log.

        If that commit fails, ``reset`` makes the group be decided again.
        """
        if self._knows_all_of(group):
            try:
                self._decide(group, self._seen[0])
            except BaseException:
                self.reset()  # the cached sessions already count a part of the group
                raise
            self._ahead = group

    async def begin(self, connection: Connection) -> None:
        """Begins the transaction of the next group; locks the log if it has not changed since.

        Does not wait for another process that has the lock: the outcomes of the last group have
        not been handed out yet.
        """
        answer = await connection.execute(self._sql.begin_if(*self._seen))
        self._begun = answer == "SELECT 1"

    async def end(self, connection: Connection) -> None:
        """Ends a transaction that was begun for a group that no longer comes."""
        begun, self._begun = self._begun, None
        if begun is not None:
            await connection.execute("ROLLBACK")

    def lose(self) -> None:
        """Notes that the connection is gone, and its open transaction with it."""
        self._begun = None
        self.reset()

    async def prepare(self, connection: Connection, group: Sequence[Append]) -> Prepared:
        """Begins a transaction under the lock of the log and writes a group, except its records.

        Stores each append's outcome in the append. An append in conflict fails alone.

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
            if self._known.position < self._partitioned:
                break
            # The server shows what a transaction wrote a moment before it has others look for a new
            # partition. So this attaches one before the transaction that first writes to it. A
            # reader that saw the position before the partition would miss the records.
            await connection.execute("ROLLBACK")
            self.reset()
            begun = None
            await connection.execute(self._sql.partition)
        await self._write()
        self._seen = (self._known.position, self._seen[1])
        self._known.evict()
        records = self._decided.records
        if not records:
            return Prepared(transaction, 0, 0, records)
        return Prepared(transaction, records[-1].position, checksum_of(records[-1]), records)

    async def commit(self, connection: Connection) -> None:
        """Writes the records of the group that was prepared, and commits it, in one go.

        Raises:
            OSError, asyncpg.PostgresError: it was not committed, or that is unknown.
        """
        decided = self._decided
        if not decided.rows:
            await connection.execute("COMMIT")
            return
        advanced = [progress_of(state) for state, about in decided.touched.items() if not about]
        # The client sends ``where`` unchanged after the COPY. Further statements in it save two
        # round trips to the server.
        end = self._sql.commit_at(self._known.position, list(zip(*advanced, strict=True)))
        await connection.copy_records_to_table(
            "records",
            schema_name=self._settings.schema,
            columns=COLUMNS,
            records=[row[:-1] for row in decided.rows],
            where=f"true; {end}",
        )

    # --- beginning --------------------------------------------------------------------------------

    def _knows_all_of(self, group: Sequence[Append]) -> bool:
        """Whether a group can be decided without reading the log, if no other writer committed."""
        if not self._alone:
            return False
        for append in group:
            state = self._known.sessions.get(append.session)
            if state is None or append.ids or append.checkpoint is not None:
                return False
            stream = state.streams.get(append.stream)
            if self._known.chained and stream is not None and stream.hash is None:
                return False
        return True

    async def _begin_as_known(self, group: Sequence[Append], begun: bool | None) -> str:
        """Decides a group, then begins and locks in one go; as ``_lock`` if others wrote since."""
        position, epoch = self._seen
        if group is not self._ahead:
            self._decide(group, position)
        self._ahead = ()
        if begun is None:
            begin = self._sql.begin_at(position, epoch, self._known.position)
            begun = await self._connection.execute(begin) == "UPDATE 1"
        if begun:
            return ""
        self.reset()
        return await self._lock(group)

    async def _lock(self, group: Sequence[Append]) -> str:
        """Locks the log, looks up what a group needs and decides it; returns the transaction's id.

        Raises:
            NewerLog: a newer Duolog has taken the log over.
        """
        row = await self._connection.fetchrow(self._sql.lock)
        assert row is not None
        position, epoch, layout, self._known.chained, partitioned, transaction = row
        check_taken_over(layout, self._settings.url)
        if partitioned != self._partitioned:
            await self._connection.execute(self._sql.attached)
            self._partitioned = partitioned
        self._alone = self._seen == (position, epoch)
        if not self._alone:
            self._known.sessions.clear()
            self._seen = (position, epoch)
        await self._look_up(group)
        self._decide(group, position)
        return str(transaction)

    def _decide(self, group: Sequence[Append], position: int) -> None:
        """Decides a group behind a position."""
        self._known.position = position
        self._decided = decide(self._known, group)
        self._known.forget_questions()

    # --- looking up -------------------------------------------------------------------------------

    async def _look_up(self, group: Sequence[Append]) -> None:
        """Reads the state of the sessions, ids and consumers of a group."""
        fetch = self._connection.fetch
        sessions = self._known.sessions
        wanted = {append.session for append in group} - sessions.keys()
        if wanted:
            by_key = {}
            for row in await fetch(self._sql.states, list(wanted)):
                state = state_of(tuple(row))
                state.salt = row["salt"]
                by_key[state.key] = sessions[state.session] = state
            if by_key:
                for owner, stream, key, version in await fetch(self._sql.streams, list(by_key)):
                    known = DETACHED if version is None else version
                    by_key[owner].streams[stream] = StreamState(key, known)
        if self._known.chained:
            await self._look_up_hashes(group)
        ids = [
            (known.key, append.session, own)
            for append in group
            if append.ids and (known := sessions.get(append.session)) is not None
            for own in append.ids
        ]
        if ids:
            await self._look_up_ids(ids)
        moves = [append.checkpoint for append in group if append.checkpoint is not None]
        if moves:
            names = ([move.consumer for move in moves], [move.version for move in moves])
            for consumer, version, at in await fetch(self._sql.consumers, *names):
                self._known.consumers[consumer, version] = at

    async def _look_up_hashes(self, group: Sequence[Append]) -> None:
        streams: dict[int, StreamState] = {}
        for append in group:
            known = self._known.sessions.get(append.session)
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
            for stream, entry in self._known.sessions[session].streams.items()
        }
        rows = await self._connection.fetch(
            self._sql.by_ids, [key for key, _, _ in ids], [own for _, _, own in ids]
        )
        for record in records_of(rows, names):
            self._known.ids[record.session, record.caller_id or ""] = record

    # --- writing ----------------------------------------------------------------------------------

    async def _write(self) -> None:
        """Writes everything but the records: sessions, streams, ids, hash chain and checkpoints."""
        connection, sql, decided = self._connection, self._sql, self._decided
        moved = [(*key, position) for key, position in decided.moved.items()]
        changed = [
            (*state_row(state), state.salt) for state, about in decided.touched.items() if about
        ]
        for statement, rows in (
            (sql.opened, changed),
            (sql.begun, decided.streams),
            (sql.ids, decided.ids),
            (sql.chain, decided.links),
            (sql.advance, moved),
        ):
            if rows:
                await connection.execute(statement, *zip(*rows, strict=True))


def refused(append: Append, error: Exception) -> InvalidInput:
    """The error of an append whose values the server refuses."""
    return InvalidInput(f"an event of session {append.session!r} cannot be stored: {error}")
