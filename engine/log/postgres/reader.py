"""Reads a PostgreSQL log, a batch at a time, on a few connections that are opened when needed."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar, final

import anyio
import anyio.to_thread
import msgspec

from ...errors import LogClosed, NotALog, SessionNotFound
from ...records import Record
from ..backoff import Backoff
from ..contract import Derived, SessionSummary
from ..integrity.verify import Link
from ..parts import Part, check_count, divided
from ..ranked import (
    LABEL,
    NUMBERS,
    ROW,
    TEXTS,
    Arranged,
    Arrangement,
    RowNumbers,
    Rows,
    SessionGroup,
    first_keys,
    groups_in,
    label_in,
    meeting,
)
from ..searched import Phrases
from ..summary import summary_of
from .connection import LOST, PATIENCE, Connection, connect, is_lost, translate
from .derived import DIALECT, JOINED, find_keys, is_readable, outdated, read_numbers, read_rows
from .settings import Settings
from .texts import found_texts, search_texts, unread_texts

__all__ = ("BATCH", "EVENT", "Names", "Reader", "detached", "records_of")

T = TypeVar("T")

BATCH: Final = 512
"""Records in a batch."""

_STRETCH: Final = 4096  # records that a scan reads in one go
_IN_PART: Final = 1 << 14  # positions among which the records of a part are looked for in one go
_CONNECTIONS: Final = 4
_NAMES: Final = 50_000  # cached names of streams, so that queries can do without a join

EVENT: Final = "position, stream, version, kind, schema, time, actor, role, cause, seen, id, body"
"""The columns of a record, in the order that ``records_of`` takes them."""

_SUMMARY: Final = (
    "key, session, task, instance, labels, state, events, version, opened, last, position"
)

Names: TypeAlias = dict[int, tuple[str, str]]
"""Session and stream by the stream's key."""


def records_of(rows: Sequence[Any], names: Names) -> list[Record]:
    """The records in rows of ``EVENT``, whose streams are all among the names."""
    return [Record(row[0], *names[row[1]], *row[2:]) for row in rows]


def detached(where: str, first: int) -> str:
    """Says that records were taken out of a log, up to the first position that is left."""
    return (
        f"{where}: the records before position {first} were detached with their partitions: read what "
        f"follows position {first - 1}, or attach them again"
    )


@final
class Reader:
    """Reads on separate connections, several at once.

    Args:
        settings: which log.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._url = settings.url
        self._schema = settings.schema
        self._idle: list[Connection] = []
        self._room = anyio.CapacityLimiter(_CONNECTIONS)
        self._closed = False
        self._names: Names = {}

    # --- connections ------------------------------------------------------------------------------

    async def call(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Reads on one of the connections; if the server goes away, again on another one.

        Raises:
            LogClosed: the log is closed.
            LogError: it cannot be read.
        """
        backoff = Backoff(0.05, longest=1.0)
        until = time.monotonic() + PATIENCE
        while True:
            if self._closed:
                raise LogClosed(f"{self._url} is closed")
            try:
                return await self._call(work)
            except LOST as error:
                if not is_lost(error) or time.monotonic() >= until:
                    raise translate(error, self._url, so="try again") from error
            await backoff.wait()

    async def _call(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        async with self._room:
            connection = self._idle.pop() if self._idle else await connect(self._settings)
            try:
                found = await work(connection)
            except BaseException:
                connection.terminate()
                raise
            if self._closed:
                connection.terminate()
            else:
                self._idle.append(connection)
            return found

    async def close(self) -> None:
        """Closes all connections."""
        self._closed = True
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.terminate()

    # --- records ----------------------------------------------------------------------------------

    async def first(self, connection: Connection) -> int:
        """The first position in the partitions that are attached."""
        query = (
            "SELECT min(substring(c.relname FROM 'records_([0-9]+)$')::bigint) FROM pg_inherits i "
            "JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = $1::text::regclass"
        )
        return int(await connection.fetchval(query, f"{self._schema}.records") or 1)

    async def _gap(self, connection: Connection, what: str, after: int = 0) -> NotALog:
        """Why records are missing: their partition was detached, or the log is damaged."""
        first = await self.first(connection)
        if first > after + 1:
            return NotALog(detached(self._url, first))
        return NotALog(
            f"{self._url}: the log is damaged: {what} are missing; verify it, or restore a backup"
        )

    async def head(self) -> int:
        """Last position in the log."""
        query = f"SELECT position FROM {self._schema}.log"
        return int(await self.call(lambda connection: connection.fetchval(query)) or 0)

    async def fetch(self, session: str | None, after: int, upto: int) -> tuple[list[Record], bool]:
        """A batch of records, and whether it is the last one."""
        if session is not None:
            return await self.call(
                lambda connection: self.of_session(connection, session, after, upto)
            )
        return await self.call(lambda connection: self.all_after(connection, after, upto))

    async def all_after(
        self,
        connection: Connection,
        after: int,
        upto: int,
        limit: int = BATCH,
        *,
        strict: bool = True,
    ) -> tuple[list[Record], bool]:
        """A batch of all streams, by position, and whether it is the last one.

        Positions have no gaps, so a batch is a range of them: with a LIMIT instead, a server without
        statistics on a young log reads and sorts all that follows.

        Raises:
            NotALog: positions are missing, unless not ``strict``.
        """
        end = min(after + limit, upto)
        rows = await connection.fetch(
            f"SELECT {EVENT} FROM {self._schema}.records "
            "WHERE position > $1 AND position <= $2 ORDER BY position",
            after,
            end,
        )
        if strict and len(rows) != end - after:
            raise await self._gap(connection, f"positions after {after}", after)
        return await self._records(connection, rows), end >= upto

    async def of_session(
        self, connection: Connection, session: str, after: int, upto: int
    ) -> tuple[list[Record], bool]:
        """A batch of all streams of one session, by position, and whether it is the last one.

        Positions grow with versions in each stream, so the index of versions finds them.
        """
        s = self._schema
        rows = await connection.fetch(
            f"""
            SELECT r.* FROM {s}.summaries o JOIN {s}.streams t ON t.session = o.key
            CROSS JOIN LATERAL (
                SELECT coalesce((
                    SELECT version FROM {s}.records WHERE stream = t.key AND position <= $2
                    ORDER BY version DESC LIMIT 1
                ), 0) AS version
            ) before
            CROSS JOIN LATERAL (
                SELECT {EVENT} FROM {s}.records WHERE stream = t.key AND position <= $3
                AND version > before.version AND version <= before.version + $4
            ) r
            WHERE o.session = $1 ORDER BY r.position LIMIT $4
            """,
            session,
            after,
            upto,
            BATCH,
        )
        return await self._records(connection, rows), len(rows) < BATCH

    async def _records(self, connection: Connection, rows: Sequence[Any]) -> list[Record]:
        names = self._names
        unknown = {row[1] for row in rows} - names.keys()
        if unknown:
            if len(names) >= _NAMES:
                names = self._names = {}
                unknown = {row[1] for row in rows}
            names.update(await self._named(connection, list(unknown)))
            if not unknown <= names.keys():
                raise NotALog(f"{self._url}: the log is damaged: a stream belongs to no session")
        return records_of(rows, names)

    async def _named(self, connection: Connection, keys: list[int]) -> Names:
        s = self._schema
        rows = await connection.fetch(
            f"SELECT t.key, o.session, t.stream FROM {s}.streams t "
            f"JOIN {s}.summaries o ON o.key = t.session WHERE t.key = ANY($1::bigint[])",
            keys,
        )
        return {key: (session, stream) for key, session, stream in rows}

    async def stream_end(self, session: str, stream: str) -> tuple[int, int]:
        """The key of a stream and its version; zeros if there is none."""
        s = self._schema
        end = await self.call(
            lambda connection: connection.fetchrow(
                f"SELECT t.key, (SELECT version FROM {s}.records WHERE stream = t.key "
                f"ORDER BY version DESC LIMIT 1) FROM {s}.streams t JOIN {s}.summaries o "
                "ON o.key = t.session WHERE o.session = $1 AND t.stream = $2",
                session,
                stream,
            )
        )
        key, version = end or (0, 0)
        return key, version or 0

    async def versions(self, key: int, after: int, upto: int) -> list[Record]:
        """A batch of one stream, by version."""
        end = min(after + BATCH, upto)

        async def read(connection: Connection) -> list[Record]:
            rows = await connection.fetch(
                f"SELECT {EVENT} FROM {self._schema}.records WHERE stream = $1 AND version > $2 "
                "AND version <= $3 ORDER BY version",
                key,
                after,
                end,
            )
            if len(rows) != end - after:
                raise await self._gap(connection, f"versions after {after}")
            return await self._records(connection, rows)

        return await self.call(read)

    async def scan(self, consume: Callable[[Sequence[Record]], object]) -> None:
        """Hands the records of all streams, as of now, to a function in a worker thread."""
        upto, after = await self.head(), 0
        while after < upto:
            batch, _ = await self.call(
                partial(self.all_after, after=after, upto=upto, limit=_STRETCH)
            )
            await anyio.to_thread.run_sync(consume, batch)
            after = batch[-1].position

    async def parts(self, count: int) -> list[Part]:
        """The log as of now in parts; see ``Divisible.parts``."""
        query = f"SELECT key, events, position FROM {self._schema}.summaries ORDER BY key"
        rows = await self.call(lambda connection: connection.fetch(query))
        found = divided([tuple(row) for row in rows], count)
        return [msgspec.structs.replace(part, after=part.first - 1) for part in found]

    async def scan_part(self, part: Part, consume: Callable[[Sequence[Record]], object]) -> None:
        """Hands the records of a part to a function in a worker thread."""
        found = 0
        for after in range(part.after, part.upto, _IN_PART):
            batch = await self.call(partial(self._in_part, part=part, after=after))
            if batch:
                await anyio.to_thread.run_sync(consume, batch)
            found += len(batch)
        check_count(part, found)

    async def _in_part(self, connection: Connection, part: Part, after: int) -> list[Record]:
        s = self._schema
        rows = await connection.fetch(
            f"SELECT {EVENT} FROM {s}.records WHERE position > $1 AND position <= $2 AND stream IN "
            f"(SELECT key FROM {s}.streams WHERE session BETWEEN $3 AND $4) ORDER BY position",
            after,
            min(after + _IN_PART, part.upto),
            part.first,
            part.last,
        )
        return await self._records(connection, rows)

    async def links(self, connection: Connection, after: int, upto: int) -> dict[int, Link]:
        """The links of the hash chain for the records in a range of positions."""
        s = self._schema
        rows = await connection.fetch(
            f"SELECT c.position, c.mac, c.hash, o.salt FROM {s}.chain c "
            f"JOIN {s}.records r ON r.position = c.position JOIN {s}.streams t ON t.key = r.stream "
            f"JOIN {s}.summaries o ON o.key = t.session "
            "WHERE c.position > $1 AND c.position <= $2 AND r.position > $1 AND r.position <= $2",
            after,
            upto,
        )
        return {position: Link(*rest) for position, *rest in rows}

    async def checksums(
        self, connection: Connection, after: int, upto: int
    ) -> dict[int, int | None]:
        """The checksums of the records in a range of positions."""
        rows = await connection.fetch(
            f"SELECT position, crc FROM {self._schema}.records "
            "WHERE position > $1 AND position <= $2",
            after,
            upto,
        )
        return {row["position"]: row["crc"] for row in rows}

    # --- lists ------------------------------------------------------------------------------------

    async def checkpoint(self, consumer: str, version: str) -> int:
        """Position that a consumer has reached."""
        found = await self.call(
            lambda connection: connection.fetchval(
                f"SELECT position FROM {self._schema}.consumers "
                "WHERE consumer = $1 AND version = $2",
                consumer,
                version,
            )
        )
        return int(found or 0)

    async def outdated(self, kind: str, version: int) -> list[str]:
        """See ``Ranked.outdated``."""
        return await self.call(partial(outdated, schema=self._schema, kind=kind, version=version))

    async def arranged(self, wanted: Arrangement) -> list[Arranged]:
        """See ``Ranked.arranged``."""
        return await self.call(partial(self._arranged, wanted=wanted))

    async def _arranged(self, connection: Connection, wanted: Arrangement) -> list[Arranged]:
        schema, by, rows = self._schema, wanted.by, wanted.rows
        kept = wanted.needs_rows and await is_readable(connection, schema)
        values: list[object] = [*rows] if rows is not None and kept else []
        source = f"{schema}.summaries s {JOINED.format(schema=schema) if kept else ''}"
        chosen = meeting(wanted.conditions, DIALECT, rows=kept)
        source += f" WHERE {chosen}" if chosen else ""
        labelled = by.startswith(LABEL)
        if labelled or by in TEXTS:
            column = "labels" if labelled else by
            query = f"SELECT s.key, s.{column} FROM {source} ORDER BY s.key"
            texts = ((key, text) for key, text in await connection.fetch(query, *values))
            text_of = label_in(by.removeprefix(LABEL)) if labelled else None
            turned = partial(first_keys, descending=wanted.descending, limit=wanted.upto)
            first = await anyio.to_thread.run_sync(turned, texts, text_of)
            keys = first[wanted.offset :]
            query = (
                f"SELECT key, session, {column} FROM {schema}.summaries "
                "WHERE key = ANY($1::bigint[])"
            )
            named = {
                key: Arranged(session, (text if text_of is None else text_of(text)) or None)
                for key, session, text in await connection.fetch(query, keys)
            }
            return [named[key] for key in keys]
        turn = "DESC" if wanted.descending else "ASC"
        if by.startswith(ROW):
            number = DIALECT.number.format(int(by.removeprefix(ROW)))
            number = number if kept else "NULL"
            order = f"{number} {turn} NULLS LAST, " if kept else ""
        else:
            number = NUMBERS[by] if by else "NULL"
            order = f"{number} {turn}, " if by else ""
        limit = "ALL" if wanted.limit is None else int(wanted.limit)
        part = f"LIMIT {limit} OFFSET {int(wanted.offset)}"
        query = f"SELECT s.session, {number} FROM {source} ORDER BY {order}s.key {part}"
        return [Arranged(*row) for row in await connection.fetch(query, *values)]

    async def groups(self) -> list[SessionGroup]:
        """See ``Ranked.groups``."""
        query = (
            "SELECT task, state, labels, count(*), max(position) "
            f"FROM {self._schema}.summaries GROUP BY task, state, labels"
        )
        rows = await self.call(lambda connection: connection.fetch(query))
        return groups_in((row[0], row[1], row[2], row[3], row[4]) for row in rows)

    async def unread_texts(self, version: int) -> list[str]:
        """See ``Searchable.unread_texts``."""
        return await self.call(partial(unread_texts, schema=self._schema, version=version))

    async def search_texts(self, phrases: Phrases, version: int) -> list[str]:
        """See ``Searchable.search_texts``."""
        read = partial(search_texts, schema=self._schema, phrases=phrases, version=version)
        return await self.call(read)

    async def found_texts(
        self, phrases: Phrases, version: int, sessions: Sequence[str]
    ) -> list[tuple[str, str]]:
        """See ``Searchable.found_texts``."""
        read = partial(found_texts, schema=self._schema, phrases=phrases, version=version)
        return await self.call(partial(read, sessions=sessions))

    async def find_keys(self, sessions: Sequence[str]) -> list[int]:
        """The keys of those sessions that the log has, in order of their first records."""
        return await self.call(partial(find_keys, schema=self._schema, sessions=sessions))

    async def derived(
        self, kind: str, version: int, after: int | Sequence[int]
    ) -> tuple[list[Derived], int]:
        """Rows that folds keep; see ``Reads.derived``."""
        read = partial(read_rows, schema=self._schema, kind=kind, version=version, after=after)
        return await self.call(read)

    async def listed(self, after: int) -> tuple[list[SessionSummary], int]:
        """A batch of summaries after a key, and the last key; empty at the end."""
        return await self.call(partial(self.summaries_after, after=after))

    async def summaries_after(
        self, connection: Connection, after: int
    ) -> tuple[list[SessionSummary], int]:
        """A batch of summaries after a key, and the last key; empty at the end."""
        rows = await connection.fetch(
            f"SELECT {_SUMMARY} FROM {self._schema}.summaries WHERE key > $1 ORDER BY key LIMIT $2",
            after,
            BATCH,
        )
        return [summary_of(row) for row in rows], rows[-1][0] if rows else after

    async def numbers(self, rows: Rows, sessions: Sequence[str]) -> list[RowNumbers]:
        """See ``Ranked.numbers``."""
        read = partial(read_numbers, schema=self._schema, rows=rows, sessions=sessions)
        return await self.call(read)

    async def summaries(self, sessions: Sequence[str]) -> list[SessionSummary]:
        """See ``Ranked.summaries``."""
        query = f"SELECT {_SUMMARY} FROM {self._schema}.summaries WHERE session = ANY($1::text[])"
        rows = await self.call(lambda connection: connection.fetch(query, list(sessions)))
        found = {row[1]: summary_of(row) for row in rows}
        return [found[session] for session in sessions if session in found]

    async def summary(self, session: str) -> SessionSummary:
        """One session's summary.

        Raises:
            SessionNotFound: there is no such session.
        """
        row = await self.call(
            lambda connection: connection.fetchrow(
                f"SELECT {_SUMMARY} FROM {self._schema}.summaries WHERE session = $1", session
            )
        )
        if row is None:
            raise SessionNotFound(session, self._url)
        return summary_of(row)
