"""A group of appends that was sent to be committed, and whether it was where the server did not answer."""

from __future__ import annotations

from typing import NamedTuple

import asyncpg

from ...records import Record
from .connection import Connection
from .statements import Statements

__all__ = ("Prepared", "was_committed")


class Prepared(NamedTuple):
    """A group as it was sent to be committed, to find out later whether it was.

    Attributes:
        transaction: its id; empty where it was begun without a look at the log.
        position: of its last record; 0 where it has none.
        crc: of that record.
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
    """Whether the log has a group's last record; None while somebody has the log locked.

    The group had the lock when its records were sent. Who has it now finds the group committed, or
    never will; also on a server that took over.
    """
    try:
        async with connection.transaction():
            await connection.execute(sql.look)
            crc = await connection.fetchval(sql.record, group.position)
    except asyncpg.LockNotAvailableError:
        return None
    return bool(crc == group.crc)
