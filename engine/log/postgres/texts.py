"""Searchable texts of sessions in a table of the log's schema, with PostgreSQL's text search.

The table is made when the first text is kept, by a role that may create tables in the schema. A trigger
deletes a session's texts in the transaction that forgets it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import asyncpg

from ...errors import LogUnavailable
from ..searched import Phrases, SessionText, words_in
from .connection import Connection
from .settings import Settings

__all__ = ("drop_texts", "found_texts", "keep_texts", "search_texts", "unread_texts")

_MAKE: Final = """
CREATE TABLE IF NOT EXISTS {schema}.texts (
    session bigint NOT NULL,
    part integer NOT NULL,
    version bigint NOT NULL,
    position bigint NOT NULL,
    text text NOT NULL,
    words tsvector NOT NULL,
    PRIMARY KEY (session, part)
);
CREATE INDEX IF NOT EXISTS texts_words ON {schema}.texts USING gin (words);

-- Waits for all who are keeping texts, and has the next ones wait until the sessions are forgotten.
CREATE OR REPLACE FUNCTION {schema}.forget_texts() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $forget$
BEGIN
    LOCK TABLE texts IN SHARE ROW EXCLUSIVE MODE;
    DELETE FROM texts WHERE session = NEW.key;
    RETURN NULL;
END
$forget$;
DROP TRIGGER IF EXISTS summaries_forget_texts ON {schema}.summaries;
CREATE TRIGGER summaries_forget_texts AFTER UPDATE OF state ON {schema}.summaries
    FOR EACH ROW WHEN (NEW.state = 'forgotten') EXECUTE FUNCTION {schema}.forget_texts();"""
_READABLE: Final = """
SELECT CASE WHEN to_regclass($1) IS NULL THEN false
ELSE has_table_privilege(to_regclass($1)::oid, 'SELECT') END"""
_KEEP: Final = """
INSERT INTO {schema}.texts (session, part, version, position, text, words)
SELECT s.key, n.part, n.version, n.position, n.text, to_tsvector('simple', n.words)
FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::bigint[], $5::text[], $6::text[])
    AS n (session, part, version, position, text, words)
JOIN {schema}.summaries s USING (session)
WHERE s.state <> 'forgotten' AND s.position >= n.position ORDER BY s.key, n.part
ON CONFLICT (session, part) DO UPDATE SET
    version = excluded.version, position = excluded.position, text = excluded.text,
    words = excluded.words"""
_DELETE: Final = """
DELETE FROM {schema}.texts t USING {schema}.summaries s
WHERE s.key = t.session AND s.session = ANY($1::text[])"""
_UNREAD: Final = """
SELECT s.session FROM {schema}.summaries s WHERE s.state <> 'forgotten' AND NOT EXISTS (
    SELECT 1 FROM {schema}.texts t
    WHERE t.session = s.key AND t.version = $1 AND t.position >= s.position
) ORDER BY s.key"""
_ALL: Final = """
SELECT session FROM {schema}.summaries WHERE state <> 'forgotten' ORDER BY key"""
_SEARCH: Final = """
SELECT s.session FROM {schema}.summaries s WHERE s.key IN (
    SELECT t.session FROM {schema}.texts t
    WHERE t.words @@ to_tsquery('simple', $1) AND t.version = $2
) ORDER BY s.key"""
_FOUND: Final = """
SELECT s.session, t.text FROM {schema}.texts t JOIN {schema}.summaries s ON s.key = t.session
WHERE t.words @@ to_tsquery('simple', $1) AND t.version = $2 AND s.session = ANY($3::text[])
ORDER BY s.key, t.part"""


async def unread_texts(connection: Connection, schema: str, version: int) -> list[str]:
    """The sessions without a current text; see ``Searchable.unread_texts``."""
    if await _is_readable(connection, schema):
        found = await connection.fetch(_UNREAD.format(schema=schema), version)
    else:
        found = await connection.fetch(_ALL.format(schema=schema))
    return [session for (session,) in found]


async def keep_texts(
    connection: Connection, settings: Settings, texts: Sequence[SessionText]
) -> int:
    """Keeps texts, and returns how many were kept; see ``Searchable.keep_texts``.

    Raises:
        LogUnavailable: the server only reads.
        asyncpg.PostgresError: none was kept.
    """
    schema = settings.schema
    rows = [
        # The words are those of ``words_in``, whatever the locale of the database.
        (one.session, number, one.version, one.position, part, " ".join(words_in(part)))
        for one in texts
        for number, part in enumerate(one.parts or ("",))
    ]
    try:
        async with connection.transaction():
            if not await _is_there(connection, schema):
                await connection.execute(
                    "SELECT pg_advisory_xact_lock(hashtext($1))", f"{schema}.texts"
                )
                await connection.execute(_MAKE.format(schema=schema))
            # Waits for a transaction that is forgetting sessions, before it looks at their state.
            await connection.execute(f"LOCK TABLE {schema}.texts IN ROW EXCLUSIVE MODE")
            await connection.execute(_DELETE.format(schema=schema), [one.session for one in texts])
            await connection.execute(_KEEP.format(schema=schema), *zip(*rows, strict=True))
    except asyncpg.ReadOnlySQLTransactionError as error:
        raise LogUnavailable(f"{settings.url}: the server only reads ({error})") from error
    return len(texts)


async def search_texts(
    connection: Connection, schema: str, phrases: Phrases, version: int
) -> list[str]:
    """The sessions in which all phrases occur; see ``Searchable.search_texts``."""
    if not await _is_readable(connection, schema):
        return []
    found = await connection.fetch(_SEARCH.format(schema=schema), _query(phrases), version)
    return [session for (session,) in found]


async def found_texts(
    connection: Connection, schema: str, phrases: Phrases, version: int, sessions: Sequence[str]
) -> list[tuple[str, str]]:
    """The parts of some sessions in which all phrases occur; see ``Searchable.found_texts``."""
    if not await _is_readable(connection, schema):
        return []
    query = _FOUND.format(schema=schema)
    found = await connection.fetch(query, _query(phrases), version, list(sessions))
    return [(session, text) for session, text in found]


async def drop_texts(connection: Connection, schema: str) -> None:
    """Drops all texts, if there is a table of them."""
    if await _is_there(connection, schema):
        await connection.execute(f"DELETE FROM {schema}.texts")


async def _is_there(connection: Connection, schema: str) -> bool:
    return bool(await connection.fetchval("SELECT to_regclass($1)::oid", f"{schema}.texts"))


async def _is_readable(connection: Connection, schema: str) -> bool:
    """Whether the table is there, and this role may read it."""
    return bool(await connection.fetchval(_READABLE, f"{schema}.texts"))


def _query(phrases: Phrases) -> str:
    """The search as PostgreSQL writes it: words of letters and digits only, so nothing in them is syntax."""
    return " & ".join(f"({' <-> '.join([*words[:-1], f'{words[-1]}:*'])})" for words in phrases)
