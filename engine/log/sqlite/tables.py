"""The tables of a SQLite log, and what marks the file as one."""

from __future__ import annotations

__all__ = ("APPLICATION", "CHAIN_TABLES", "LAYOUT", "TABLES", "UPGRADE")

APPLICATION = 0x44554F4C
"""``DUOL``, the ``application_id`` of a log."""

LAYOUT = 2
"""The ``user_version`` of a log: number of its table layout. Layout 1 had no checksums."""

_IDENTITY = """
-- Who the log is (by chance), and the position from which on all records have checksums.
CREATE TABLE identity (
    key INTEGER PRIMARY KEY CHECK (key = 1),
    log TEXT NOT NULL,
    since INTEGER NOT NULL,
    crc INTEGER NOT NULL
) STRICT;
"""

UPGRADE = (
    "ALTER TABLE events ADD COLUMN crc INTEGER",
    "ALTER TABLE checkpoints ADD COLUMN crc INTEGER",
    _IDENTITY,
)
"""Statements that make layout 2 of layout 1."""

TABLES = f"""{_IDENTITY}
CREATE TABLE sessions (
    key INTEGER PRIMARY KEY,
    session TEXT NOT NULL UNIQUE,
    task TEXT NOT NULL DEFAULT '',
    instance TEXT NOT NULL DEFAULT '',
    labels TEXT NOT NULL DEFAULT '{{}}',
    origin TEXT,
    state TEXT NOT NULL DEFAULT 'open',
    events INTEGER NOT NULL DEFAULT 0,
    version INTEGER NOT NULL DEFAULT 0,
    rounds INTEGER NOT NULL DEFAULT 0,  -- older programs read these three; none is written any more
    acted INTEGER NOT NULL DEFAULT 0,
    utility REAL,
    opened REAL NOT NULL DEFAULT 0,
    last REAL NOT NULL DEFAULT 0,
    position INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE streams (
    key INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    stream TEXT NOT NULL,
    UNIQUE (session, stream)
) STRICT;

CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    stream INTEGER NOT NULL,
    version INTEGER NOT NULL,
    kind TEXT NOT NULL,
    schema INTEGER NOT NULL,
    time REAL NOT NULL,
    actor TEXT NOT NULL,
    role TEXT NOT NULL,
    cause TEXT,
    seen INTEGER,
    id TEXT,
    body BLOB,
    crc INTEGER
) STRICT;

CREATE UNIQUE INDEX events_in_stream ON events (stream, version);
CREATE UNIQUE INDEX events_by_id ON events (session, id) WHERE id IS NOT NULL;

CREATE TABLE checkpoints (
    consumer TEXT NOT NULL,
    version TEXT NOT NULL,
    position INTEGER NOT NULL,
    crc INTEGER,
    PRIMARY KEY (consumer, version)
) STRICT, WITHOUT ROWID;

-- Sessions whose contents were erased; compacted is 0 while copies may linger in the file.
CREATE TABLE forgotten (
    session INTEGER PRIMARY KEY,
    compacted INTEGER NOT NULL
) STRICT;

CREATE TRIGGER events_stay BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'the log is append-only: events are never deleted'); END;

CREATE TRIGGER events_stand BEFORE UPDATE ON events
WHEN NOT (
    NEW.body IS NULL
    AND EXISTS (SELECT 1 FROM forgotten WHERE session = OLD.session)
    AND NEW.position = OLD.position AND NEW.session = OLD.session
    AND NEW.stream = OLD.stream AND NEW.version = OLD.version
    AND NEW.kind = OLD.kind AND NEW.schema = OLD.schema AND NEW.time = OLD.time
    AND NEW.actor = OLD.actor AND NEW.role = OLD.role
    AND NEW.cause IS OLD.cause AND NEW.seen IS OLD.seen AND NEW.id IS OLD.id
)
BEGIN SELECT RAISE(ABORT, 'the log is append-only: events are never changed'); END;

-- For people with a SQLite shell.
CREATE VIEW log AS
SELECT e.position, s.session, t.stream, e.version, e.time, e.actor, e.role, e.kind,
       CAST(e.body AS TEXT) AS body
FROM events e JOIN streams t ON t.key = e.stream JOIN sessions s ON s.key = e.session;
"""

CHAIN_TABLES = """
CREATE TABLE salts (session INTEGER PRIMARY KEY, salt BLOB) STRICT;
CREATE TABLE chain (position INTEGER PRIMARY KEY, mac BLOB NOT NULL, hash BLOB NOT NULL) STRICT;

CREATE TRIGGER chain_stays BEFORE DELETE ON chain
BEGIN SELECT RAISE(ABORT, 'the log is append-only: its chain is never cut'); END;

CREATE TRIGGER chain_stands BEFORE UPDATE ON chain
BEGIN SELECT RAISE(ABORT, 'the log is append-only: its chain is never changed'); END;
"""
