"""The tables of a log on PostgreSQL, one schema for each log.

Text is compared byte by byte. The key of a session or stream is the position of its first record,
so the position is the only counter. A writer assigns positions under the lock of the one row of
``log``, which it holds until the commit. So positions are gapless, and a reader that sees one sees
all before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ("LAYOUT", "derived_table", "migrations", "tables")

LAYOUT: Final = 2
"""The number of this table layout. A change needs the next number, and a step in ``_MIGRATIONS``."""

_LEASES: Final = """
-- Who works on what. It is no part of the log, and empty after a crash.
CREATE UNLOGGED TABLE {schema}.leases (
    name text COLLATE "C" PRIMARY KEY,
    holder text NOT NULL,
    until timestamptz NOT NULL
);"""

_DERIVED: Final = """
-- What folds made of sessions. It is not part of the log, and all of it can be deleted. Programs that do
-- not know the table leave stale rows, which their position shows; the trigger forgets for them too.
CREATE TABLE {schema}.derived (
    session bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    position bigint NOT NULL,
    numbers double precision[] NOT NULL,
    payload bytea NOT NULL,
    crc bigint NOT NULL,
    PRIMARY KEY (session, kind)
);

-- Waits for all who are keeping rows, and has the next ones wait until the sessions are forgotten.
CREATE FUNCTION {schema}.forget_derived() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $forget$
BEGIN
    LOCK TABLE derived IN SHARE ROW EXCLUSIVE MODE;
    DELETE FROM derived WHERE session = NEW.key;
    RETURN NULL;
END
$forget$;

CREATE TRIGGER summaries_forget AFTER UPDATE OF state ON {schema}.summaries
    FOR EACH ROW WHEN (NEW.state = 'forgotten') EXECUTE FUNCTION {schema}.forget_derived();"""

_TABLES: Final = """
CREATE SCHEMA IF NOT EXISTS {schema};

CREATE TABLE {schema}.log (
    key smallint PRIMARY KEY DEFAULT 1 CHECK (key = 1),
    id text NOT NULL,
    layout integer NOT NULL,
    chained boolean NOT NULL,
    partition bigint NOT NULL,      -- records in a partition
    partitioned bigint NOT NULL,    -- first position that no partition is there for
    position bigint NOT NULL,       -- of the last record
    epoch bigint NOT NULL           -- grows with each change that is no append, of the layout, too
);

CREATE TABLE {schema}.summaries (
    key bigint PRIMARY KEY,
    session text COLLATE "C" NOT NULL UNIQUE,
    task text NOT NULL,
    instance text NOT NULL,
    labels text NOT NULL,
    origin text COLLATE "C",
    state text NOT NULL,
    events bigint NOT NULL,
    version bigint NOT NULL,
    rounds bigint NOT NULL,             -- older programs read these four; none is written any more
    acted bigint NOT NULL,
    utility double precision,
    evaluated boolean NOT NULL,
    opened double precision NOT NULL,
    last double precision NOT NULL,
    position bigint NOT NULL,
    salt bytea,
    compacted boolean NOT NULL DEFAULT true     -- false: erased, and copies may linger
) WITH (fillfactor = 70);
CREATE INDEX summaries_by_origin ON {schema}.summaries (origin) WHERE origin IS NOT NULL;

CREATE TABLE {schema}.streams (
    key bigint PRIMARY KEY,
    session bigint NOT NULL,
    stream text COLLATE "C" NOT NULL,
    UNIQUE (session, stream)
);

CREATE TABLE {schema}.records (
    position bigint PRIMARY KEY,
    stream bigint NOT NULL,
    version bigint NOT NULL,
    kind text NOT NULL,
    schema bigint NOT NULL,
    time double precision NOT NULL,
    actor text NOT NULL,
    role text NOT NULL,
    cause text,
    seen bigint,
    id text,
    crc bigint NOT NULL,
    body bytea
) PARTITION BY RANGE (position);
CREATE UNIQUE INDEX records_in_stream ON {schema}.records (stream, version, position);

CREATE TABLE {schema}.ids (
    session bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    PRIMARY KEY (session, id)
);

CREATE TABLE {schema}.consumers (
    consumer text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    PRIMARY KEY (consumer, version)
);

{leases}

{derived}

CREATE TABLE {schema}.chain (
    position bigint PRIMARY KEY,
    mac bytea NOT NULL,
    hash bytea NOT NULL
);

CREATE FUNCTION {schema}.stand() RETURNS trigger LANGUAGE plpgsql AS $stand$
BEGIN
    IF TG_OP = 'UPDATE' AND TG_TABLE_NAME LIKE 'records%' THEN
        IF NEW.body IS NULL
        AND (NEW.position, NEW.stream, NEW.version, NEW.kind, NEW.schema, NEW.time, NEW.actor,
             NEW.role, NEW.cause, NEW.seen, NEW.id)
            IS NOT DISTINCT FROM
            (OLD.position, OLD.stream, OLD.version, OLD.kind, OLD.schema, OLD.time, OLD.actor,
             OLD.role, OLD.cause, OLD.seen, OLD.id)
        AND EXISTS (
            SELECT FROM {schema}.streams t JOIN {schema}.summaries s ON s.key = t.session
            WHERE t.key = OLD.stream AND s.state = 'forgotten'
        ) THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'the log is append-only: its records are never changed or deleted'
        USING ERRCODE = 'restrict_violation';
END
$stand$;

CREATE TRIGGER records_stand BEFORE UPDATE OR DELETE ON {schema}.records
    FOR EACH ROW EXECUTE FUNCTION {schema}.stand();
CREATE TRIGGER records_stay BEFORE TRUNCATE ON {schema}.records
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.stand();
CREATE TRIGGER chain_stands BEFORE UPDATE OR DELETE ON {schema}.chain
    FOR EACH ROW EXECUTE FUNCTION {schema}.stand();
CREATE TRIGGER chain_stays BEFORE TRUNCATE ON {schema}.chain
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.stand();

-- Adds the partition behind the last one, with its owner's rights. It is attached rather than created
-- in place, which would lock all readers out.
CREATE FUNCTION {schema}.add_partition() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $add$
DECLARE
    first bigint;
    size bigint;
    name text;
BEGIN
    SELECT partitioned, partition INTO first, size FROM log FOR UPDATE;
    name := format('records_%s', first);
    EXECUTE format('CREATE TABLE %I (LIKE records INCLUDING ALL, '
        'CHECK (position >= %s AND position < %s))', name, first, first + size);
    EXECUTE format('ALTER TABLE records ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)',
        name, first, first + size);
    EXECUTE format('CREATE TRIGGER records_stay BEFORE TRUNCATE ON %I '
        'FOR EACH STATEMENT EXECUTE FUNCTION stand()', name);
    UPDATE log SET partitioned = first + size;
    RETURN first + size;
END
$add$;

-- For people with a shell.
CREATE VIEW {schema}.readable AS
SELECT r.position, s.session, t.stream, r.version, r.time, r.actor, r.role, r.kind,
       convert_from(r.body, 'UTF8') AS body
FROM {schema}.records r JOIN {schema}.streams t ON t.key = r.stream
JOIN {schema}.summaries s ON s.key = t.session;

INSERT INTO {schema}.log (id, layout, chained, partition, partitioned, position, epoch)
VALUES ('{id}', {layout}, {chained}, {partition}, 1, 0, 0);
SELECT {schema}.add_partition();
"""

_MIGRATIONS: Final[Mapping[int, str]] = {1: _LEASES}
"""For each older layout, what makes it the next one."""


def migrations(schema: str, layout: int) -> list[str]:
    """The statements that bring a log of a layout to today's, step by step."""
    return [_MIGRATIONS[step].format(schema=schema) for step in range(layout, LAYOUT)]


def derived_table(schema: str) -> str:
    """The statements that add the table of derived rows to a log that does not have it.

    It does not change the layout's number, so programs that do not know it can still write.
    """
    return _DERIVED.format(schema=schema)


def tables(schema: str, ident: str, *, chained: bool, partition: int) -> str:
    """The statements that make a new log, to be run in one transaction.

    Args:
        schema: its name.
        ident: the log's random id.
        chained: whether it keeps a hash chain.
        partition: records in a partition.
    """
    return _TABLES.format(
        schema=schema,
        leases=_LEASES.format(schema=schema),
        derived=derived_table(schema),
        id=ident,
        layout=LAYOUT,
        chained="true" if chained else "false",
        partition=partition,
    )
