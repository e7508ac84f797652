"""Verifies a SQLite log on a connection of its own, as of one moment, while others go on writing."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

import aiosqlite
import anyio

from ...errors import NotALog
from ...records import Record
from ..contract import Verification
from ..integrity.verify import Link, Verifier
from .chain import is_chained
from .file import Settings, translate
from .file import connect as connect_file
from .identity import Identity, identity_of
from .mark import Mark, read_mark
from .reader import Reader
from .thread import connect, run_in_thread

__all__ = ("verify",)


class _Opened(NamedTuple):
    reader: Reader
    chained: bool
    identity: Identity | None
    mark: Mark | None
    head: int
    wrong: str


async def verify(settings: Settings, url: str) -> Verification:
    """Looks at every record, at the list of sessions, and at the file itself.

    Raises:
        LogError: the file cannot be read at all.
    """
    opened: list[_Opened] = []

    def open_file() -> sqlite3.Connection:
        mark = read_mark(settings.path)  # first: others go on writing, and the mark follows the log
        connection = connect_file(settings, "ro")
        try:
            connection.execute("BEGIN")  # all reads are of this moment
            reader = Reader(connection)
            identity, wrong = None, ""
            try:
                identity = identity_of(connection)
            except NotALog as error:
                wrong = str(error)
            chained = is_chained(connection)
            opened.append(_Opened(reader, chained, identity, mark, reader.head(), wrong))
        except BaseException:
            connection.close()
            raise
        return connection

    try:
        connection = await connect(open_file)
        try:
            [(reader, chained, identity, mark, head, wrong)] = opened
            verifier = Verifier(chained=chained, since=None if identity is None else identity.since)
            if mark is not None and identity is not None and mark.log == identity.log:
                verifier.expect(mark.position, mark.crc, synced=mark.synced)
            if wrong:
                verifier.complain(wrong)
            for what in await run_in_thread(connection, reader.damage):
                verifier.complain(what)
            try:
                await _records(connection, reader, head, verifier)
                await _sessions(connection, reader, verifier)
                if identity is not None:
                    for what in await run_in_thread(connection, reader.misplaced):
                        verifier.complain(what)
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
) -> None:
    after = 0
    last = False
    while not last:
        batch, last = await run_in_thread(connection, _batch, reader, verifier, after, head)
        for record, link, crc in batch:
            verifier.feed(record, link, crc)
        if batch:
            after = batch[-1][0].position
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
    reader: Reader, verifier: Verifier, after: int, upto: int
) -> tuple[list[tuple[Record, Link | None, int | None]], bool]:
    records, last = reader.all_after(after, upto, strict=False)
    links: dict[int, Link] = {}
    crcs: dict[int, int | None] = {}
    if records and verifier.chained:
        links = reader.links(after, records[-1].position)
    if records and verifier.since is not None:
        crcs = reader.checksums(after, records[-1].position)
    return [(r, links.get(r.position), crcs.get(r.position)) for r in records], last
