"""The floor of the log: ``sqlite3`` alone, with the same rows in the same tables and indexes.

A connection in WAL mode with ``synchronous=FULL``, and no further settings. It encodes the same
events and writes them with ``executemany``, the list of sessions included; it computes no checksums
and checks nothing. Reading fetches the same rows, and decodes them into the same structs.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import msgspec
from duolog.benchmarks.workloads.typical_events import EVENTS
from duolog.engine.codec import decode_body, encode_body
from duolog.engine.events import EVENTS as KINDS
from duolog.engine.log.sqlite.file import connect, parse
from duolog.engine.records import Record

__all__ = ("INSERT", "UPDATE", "append_raw", "decode_raw", "list_raw", "new_tables", "read_raw")

INSERT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)"
UPDATE = """
UPDATE sessions SET state = ?, events = ?, version = ?, rounds = ?, acted = ?, utility = ?,
       last = ?, position = ? WHERE key = ?"""

_COLUMNS = "position, stream, version, kind, schema, time, actor, role, cause, seen, id, body"
_STREAMS = "SELECT t.key, s.session, t.stream FROM streams t JOIN sessions s ON s.key = t.session"
_SESSIONS = (
    "SELECT session, task, instance, labels, origin, state, events, version, rounds, utility, "
    "opened, last, position FROM sessions ORDER BY key"
)


def new_tables(path: Path, sessions: int) -> None:
    """Makes the tables of a log, with sessions that are still empty."""
    connect(parse(str(path)), "rwc").close()
    connection = sqlite3.connect(path, isolation_level=None)
    names = [(f"session-{number}",) for number in range(sessions)]
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO sessions (session) VALUES (?)", names)
    keys = [(key,) for key in range(1, sessions + 1)]
    connection.executemany("INSERT INTO streams (session, stream) VALUES (?, 'trace')", keys)
    connection.execute("COMMIT")
    connection.close()


def append_raw(path: Path, sessions: int, group: int, count: int) -> int:
    """Appends typical events in groups; gives how many."""
    new_tables(path, sessions)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")
    versions = [0] * (sessions + 1)
    at = 0
    while at < count:
        rows = []
        summaries = {}
        for _ in range(group):
            key = at % sessions + 1
            event = EVENTS[at % len(EVENTS)]
            at += 1
            versions[key] += 1
            number = versions[key]
            rows.append(
                (
                    at,
                    key,
                    key,
                    number,
                    type(event).__name__,
                    event.schema,
                    at * 0.5,
                    "bot",
                    "agent",
                    "trace/3",
                    4,
                    None,
                    encode_body(event),
                )
            )
            summaries[key] = ("open", number, number, 1, True, None, at * 0.5, at, key)
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(INSERT, rows)
        connection.executemany(UPDATE, summaries.values())
        connection.execute("COMMIT")
    connection.close()
    return at


def read_raw(path: Path) -> int:
    """Fetches all rows as records, and decodes their events; gives how many."""
    connection = connect(parse(str(path)), "ro")
    names = {key: (session, stream) for key, session, stream in connection.execute(_STREAMS)}
    cursor = connection.execute(f"SELECT {_COLUMNS} FROM events ORDER BY position")
    count = 0
    while rows := cursor.fetchmany(512):
        for at, key, version, kind, schema, t, actor, role, cause, seen, own, body in rows:
            session, stream = names[key]
            record = Record(
                at,
                session,
                stream,
                version,
                kind,
                schema,
                t,
                actor,
                role,
                cause,
                seen,
                own,
                body,
            )
            count += decode_body(record.kind, record.schema, record.body) is not None
    connection.close()
    return count


def decode_raw(path: Path) -> int:
    """Fetches all rows, and decodes their bodies by kind, without envelopes; gives how many."""
    decoders = {kind: msgspec.json.Decoder(cls).decode for kind, cls in KINDS.items()}
    connection = connect(parse(str(path)), "ro")
    cursor = connection.execute(f"SELECT {_COLUMNS} FROM events ORDER BY position")
    count = 0
    while rows := cursor.fetchmany(512):
        for row in rows:
            decoders[row[3]](row[-1])
        count += len(rows)
    connection.close()
    return count


def list_raw(path: Path, session: str) -> int:
    """Opens a file, fetches the list of sessions, and all of one session; gives how many sessions."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    rows = connection.execute(_SESSIONS).fetchall()
    found = connection.execute(
        f"SELECT {_COLUMNS} FROM events WHERE stream IN (SELECT key FROM streams WHERE session = "
        "(SELECT key FROM sessions WHERE session = ?))",
        (session,),
    )
    for row in found:
        decode_body(row[3], row[4], row[-1])
    connection.close()
    return len(rows)
