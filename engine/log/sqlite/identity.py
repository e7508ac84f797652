"""A log's identity, since when its records have checksums, and upgrades of older layouts."""

from __future__ import annotations

import secrets
import sqlite3
from typing import NamedTuple
from zlib import crc32

from ...errors import NotALog
from .tables import LAYOUT, UPGRADE

__all__ = ("Identity", "create_identity", "identity_of", "is_chained", "row_checksum", "upgrade")


class Identity(NamedTuple):
    """Identity of a log.

    Attributes:
        log: its random id; empty in a layout that had none.
        since: position from which on all records have checksums.
    """

    log: str
    since: int


def row_checksum(*values: object) -> int:
    """The checksum of a row that is not an event."""
    return crc32("\0".join(map(str, values)).encode("utf-8", "surrogatepass"))


def create_identity(connection: sqlite3.Connection, since: int) -> Identity:
    """Gives a log its identity."""
    log = secrets.token_hex(16)
    row = (log, since, row_checksum(log, since))
    connection.execute("INSERT INTO identity VALUES (1, ?, ?, ?)", row)
    return Identity(log, since)


def identity_of(connection: sqlite3.Connection) -> Identity | None:
    """The identity of a log; None if its layout is too old to have one.

    Raises:
        NotALog: it had an identity, which is damaged.
    """
    (layout,) = connection.execute("PRAGMA user_version").fetchone()
    if layout == 1:
        return None
    row = connection.execute("SELECT log, since, crc FROM identity").fetchone()
    if row is None or row_checksum(*row[:2]) != row[2]:
        raise NotALog("the log is damaged: its identity is not what was written")
    return Identity(row[0], row[1])


def is_chained(connection: sqlite3.Connection) -> bool:
    """Whether a log keeps a hash chain."""
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'chain'").fetchone()
    return found is not None


def upgrade(connection: sqlite3.Connection) -> Identity:
    """Brings an older layout up to this one, within a transaction."""
    (head,) = connection.execute("SELECT max(position) FROM events").fetchone()
    for statement in UPGRADE:
        connection.execute(statement)
    identity = create_identity(connection, (head or 0) + 1)
    connection.execute(f"PRAGMA user_version = {LAYOUT}")
    return identity
