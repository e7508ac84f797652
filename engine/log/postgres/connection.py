"""Connections to a PostgreSQL log: how it is created, recognised and opened, and what errors mean."""

from __future__ import annotations

import asyncio
import secrets
import socket
import ssl
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import asyncpg

from ...errors import (
    InvalidInput,
    LogAway,
    LogError,
    LogNotFound,
    LogUnavailable,
    NewerLog,
    NotALog,
)
from ...logger import get_logger
from .settings import Settings
from .tables import LAYOUT, derived_table, migrations, tables

__all__ = (
    "LOST",
    "PATIENCE",
    "Connection",
    "Identity",
    "check_layout",
    "check_taken_over",
    "connect",
    "is_lost",
    "open_schema",
    "translate",
)

PATIENCE: Final = 30.0
"""Seconds in which a server that went away may come back before its clients are refused."""

_CONNECT: Final = 10.0  # seconds for one attempt
_CREATING: Final = 0x0D00106  # advisory lock, so that two who create one log wait for each other

if TYPE_CHECKING:
    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record]
else:  # generic for type checkers only
    Connection = asyncpg.Connection

# The last of them is raised by a connection which the server has taken leave of, before it is closed.
_UNUSABLE: Final = (
    OSError,
    asyncio.TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)

LOST: Final = (*_UNUSABLE, asyncpg.PostgresError)
"""Errors that may be raised if the server is gone; see ``is_lost``."""

# Classes of SQLSTATE: connection failures, operator intervention (shut down, starting up), a server
# that only reads (it was the primary), too many connections, deadlocks.
_GONE: Final = ("08", "57P", "25006", "53300", "40")


class Identity(NamedTuple):
    """Identity of a log.

    Attributes:
        log: its random id.
        layout: number of its table layout.
        chained: whether it keeps a hash chain.
        position: the position of its last record.
    """

    log: str
    layout: int
    chained: bool
    position: int


def is_lost(error: BaseException) -> bool:
    """Whether an error says that the server, or the connection to it, is gone for the moment."""
    if isinstance(error, asyncpg.PostgresError):
        return (error.sqlstate or "").startswith(_GONE)
    return isinstance(error, _UNUSABLE)


async def connect(settings: Settings) -> Connection:
    """A connection to the database.

    Raises:
        OSError, asyncpg.PostgresError: it cannot be had.
        InvalidInput: the URL says what no connection can have.
    """
    try:
        return await asyncpg.connect(
            settings.dsn,
            timeout=_CONNECT,
            statement_cache_size=0 if settings.pooler else 256,
            server_settings={} if settings.pooler else {"application_name": "duolog"},
        )
    except (ValueError, asyncpg.ClientConfigurationError) as error:
        raise InvalidInput(f"{settings.url}: {error}") from error


async def open_schema(settings: Settings, *, create: bool) -> Identity:
    """The identity of the log in a schema; makes the log if there is none and ``create`` is set.

    Raises:
        LogNotFound: there is none, and it is not to be created.
        NotALog: the schema holds something else.
        LogUnavailable: the server cannot be reached, or refuses.
    """
    try:
        connection = await connect(settings)
        try:
            found = await _recognise(connection, settings)
            if found is None and create:
                async with connection.transaction():
                    await connection.execute("SELECT pg_advisory_xact_lock($1)", _CREATING)
                    found = await _recognise(connection, settings)
                    if found is None:
                        await connection.execute(
                            tables(
                                settings.schema,
                                secrets.token_hex(16),
                                chained=settings.chain,
                                partition=settings.partition,
                            )
                        )
                found = await _recognise(connection, settings)
            if found is not None and found.layout < LAYOUT:
                found = await _migrate(connection, settings, found)
            if found is not None and found.layout == LAYOUT:
                await _add_derived(connection, settings.schema)
        finally:
            await connection.close()
    except LOST as error:
        raise translate(error, settings.url, so="it was not opened") from error
    if found is None:
        raise LogNotFound(f"no log at {settings.url}")
    if settings.chain and not found.chained:
        raise InvalidInput(
            f"{settings.url} was created without a hash chain, and none can be added; open "
            "it without chain=yes, or copy it to a new log"
        )
    return found


async def _recognise(connection: Connection, settings: Settings) -> Identity | None:
    schema = settings.schema
    # In one statement: between two, another process may have made the log.
    [(there, tables_there)] = await connection.fetch(
        "SELECT to_regclass($1) IS NOT NULL, EXISTS (SELECT FROM pg_tables WHERE schemaname = $2)",
        f"{schema}.log",
        schema,
    )
    if not there:
        if tables_there:
            raise NotALog(f"{settings.url}: schema {schema} holds tables and is not a Duolog log")
        return None
    try:
        row = await connection.fetchrow(f"SELECT id, layout, chained, position FROM {schema}.log")
    except asyncpg.UndefinedColumnError as error:
        raise NotALog(f"{settings.url}: schema {schema} is not a Duolog log") from error
    if row is None:
        raise NotALog(f"{settings.url}: the log in schema {schema} has lost its identity")
    return Identity(*row)


async def _migrate(connection: Connection, settings: Settings, found: Identity) -> Identity:
    """Upgrades an older log to today's layout; leaves it unchanged if the role does not own it."""
    schema = settings.schema
    async with connection.transaction():
        owned = await connection.fetchval(
            "SELECT pg_has_role(relowner, 'USAGE') AND NOT pg_is_in_recovery() FROM pg_class "
            "WHERE oid = $1::text::regclass",
            f"{schema}.log",
        )
        if not owned:
            return found
        layout = await connection.fetchval(f"SELECT layout FROM {schema}.log FOR UPDATE")
        for statements in migrations(schema, layout):
            await connection.execute(statements)
        if layout < LAYOUT:  # else another process was faster
            await connection.execute(
                f"UPDATE {schema}.log SET layout = {LAYOUT}, epoch = epoch + 1"
            )
    return found._replace(layout=max(layout, LAYOUT))


async def _add_derived(connection: Connection, schema: str) -> None:
    """Adds the table of derived rows to a log that was made without it, if the role owns the log."""
    missing = (
        "SELECT to_regclass($2) IS NULL AND pg_has_role(relowner, 'USAGE') "
        "AND NOT pg_is_in_recovery() FROM pg_class WHERE oid = $1::text::regclass"
    )
    names = (f"{schema}.log", f"{schema}.derived")
    if not await connection.fetchval(missing, *names):
        return
    try:
        async with connection.transaction():
            await connection.execute("SET LOCAL lock_timeout = '2s'")
            await connection.execute(f"SELECT FROM {schema}.log FOR UPDATE")
            if await connection.fetchval(missing, *names):  # else another process was faster
                await connection.execute(derived_table(schema))
    except (asyncpg.InsufficientPrivilegeError, asyncpg.LockNotAvailableError) as error:
        get_logger("log").info("a table of derived rows was not added", error=str(error))


def check_layout(identity: Identity, where: str) -> None:
    """Checks that a log has the layout that this program writes.

    Raises:
        NewerLog: a newer Duolog made it.
        LogUnavailable: an older one did, and only its owner can change that.
    """
    if identity.layout > LAYOUT:
        raise NewerLog(f"{where} was written by a newer Duolog: it can be read, and not written")
    if identity.layout < LAYOUT:
        raise LogUnavailable(
            f"{where} has layout {identity.layout}, and this Duolog writes layout {LAYOUT}: open it "
            "once as the owner of its schema; until then it can be read"
        )


def check_taken_over(layout: int, where: str) -> None:
    """Checks that no newer Duolog has changed the tables of a log since it was opened.

    Args:
        layout: the number of its layout now.
        where: the log.

    Raises:
        NewerLog: this program does not know what its tables hold now.
    """
    if layout > LAYOUT:
        raise NewerLog(
            f"{where}: a newer Duolog has taken over this log: it can be read, and not written"
        )


def translate(error: BaseException, where: str, *, so: str) -> LogError:
    """Translates an error of the server or the connection into a LogError.

    Args:
        error: the error.
        where: the log.
        so: what the error means for the work that was to be done.
    """
    if isinstance(error, asyncpg.InvalidCatalogNameError):
        return LogNotFound(f"{where}: there is no such database; create it first")
    if isinstance(error, asyncpg.InvalidAuthorizationSpecificationError):  # a wrong password, too
        return LogUnavailable(f"{where}: the server does not let us in ({error}); {so}")
    if isinstance(error, asyncpg.InsufficientPrivilegeError):
        return LogUnavailable(f"{where}: the role may not do this ({error}); {so}")
    if isinstance(error, asyncpg.DiskFullError):
        return LogUnavailable(f"{where}: the server's disk is full; {so}")
    if isinstance(error, asyncpg.DataCorruptedError | asyncpg.IndexCorruptedError):
        return NotALog(f"{where}: the database is damaged ({error}); restore a backup")
    if isinstance(error, socket.gaierror):
        return LogUnavailable(f"{where}: there is no such host ({error}); {so}")
    broken = OSError | asyncpg.PostgresError | asyncpg.InterfaceError  # the last: closed under us
    away = isinstance(error, broken) and not isinstance(error, ssl.SSLError)
    if is_lost(error) and away:  # a timeout is an OSError, too
        what = str(error) or type(error).__name__
        return LogAway(f"{where}: the server cannot be reached ({what}); {so}")
    if is_lost(error):
        what = str(error) or type(error).__name__
        return LogUnavailable(f"{where}: the server cannot be reached ({what}); {so}")
    return LogUnavailable(f"{where}: {error}; {so}")
