"""Verifies a SQLite log on a connection of its own, as of one moment, while others go on writing."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

import aiosqlite
import anyio

from ...errors import NotALog
from ...records import Record
from ..contract import Verification
from ..verify import Link, Verifier
from .chain import is_chained
from .file import Settings, translate
from .file import connect as connect_file
from .reader import Reader
from .thread import connect, run_in_thread

__all__ = ("verify",)


class _Opened(NamedTuple):
    reader: Reader
    chained: bool
    head: int


async def verify(settings: Settings, url: str) -> Verification:
    """Looks at every record, at the list of sessions, and at the file itself.

    Raises:
        LogError: the file cannot be read at all.
    """
    opened: list[_Opened] = []

    def open_file() -> sqlite3.Connection:
        connection = connect_file(settings, "ro")
        try:
            connection.execute("BEGIN")  # all reads are of this moment
            reader = Reader(connection)
            opened.append(_Opened(reader, is_chained(connection), reader.head()))
        except BaseException:
            connection.close()
            raise
        return connection

    try:
        connection = await connect(open_file)
        try:
            [(reader, chained, head)] = opened
            verifier = Verifier(chained=chained)
            for what in await run_in_thread(connection, reader.damage):
                verifier.complain(f"SQLite: {what}")
            try:
                await _records(connection, reader, head, verifier, chained=chained)
                await _sessions(connection, reader, verifier)
            except (sqlite3.DatabaseError, NotALog) as error:
                verifier.complain(f"the rest cannot be read: {error}")
            return verifier.result(uncompacted=await run_in_thread(connection, reader.uncompacted))
        finally:
            with anyio.CancelScope(shield=True):
                await connection.close()
    except sqlite3.Error as error:
        raise translate(error, url, reading=True) from error


async def _records(
    connection: aiosqlite.Connection,
    reader: Reader,
    head: int,
    verifier: Verifier,
    *,
    chained: bool,
) -> None:
    after = 0
    last = False
    while not last:
        batch, links, last = await run_in_thread(connection, _batch, reader, chained, after, head)
        for record in batch:
            verifier.feed(record, links.get(record.position))
        if batch:
            after = batch[-1].position
    if after < head:
        verifier.complain(f"the records from position {after + 1} to {head} cannot be read")


async def _sessions(connection: aiosqlite.Connection, reader: Reader, verifier: Verifier) -> None:
    key = 0
    while True:
        summaries, key = await run_in_thread(connection, reader.sessions, key)
        if not summaries:
            return
        for summary in summaries:
            verifier.check_session(summary)


def _batch(
    reader: Reader, chained: bool, after: int, upto: int
) -> tuple[list[Record], dict[int, Link], bool]:
    records, last = reader.all_after(after, upto, strict=False)
    links = reader.links(after, records[-1].position) if chained and records else {}
    return records, links, last
