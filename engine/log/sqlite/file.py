"""The SQLite file: its tables, how it is created, recognised and opened, and what its errors mean.

``application_id`` says that a file is a Duolog log and ``user_version`` which layout it has. Both
are written before the file is switched to WAL mode, so they are in the file's own header, and a
file that is something else is recognised without being touched.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import parse_qsl, unquote

from ...errors import (
    InvalidInput,
    LogAway,
    LogError,
    LogNotFound,
    LogUnavailable,
    NewerLog,
    NotALog,
    OutcomeUnknown,
)
from .identity import create_identity
from .tables import APPLICATION, CHAIN_TABLES, LAYOUT, TABLES

__all__ = (
    "PATIENCE",
    "SLICE",
    "Settings",
    "begin",
    "check_layout",
    "commit",
    "connect",
    "contradicts",
    "is_locked",
    "look_freshly",
    "look_inside",
    "newer",
    "parse",
    "translate",
    "unsynced",
)

PATIENCE = 30.0
"""Seconds to wait for another process that holds the write lock."""

SLICE = 50
"""Milliseconds of that in which a writing thread looks up from its wait."""

_CACHE = 32_768  # KiB of pages: each active session dirties a page of the index of versions
_CHECKPOINT = 4000  # pages in the write-ahead log before they move to the file: about 16 MB

_NOT_WRITTEN = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
}
"""Failures of a commit that come before, or in the middle of, its last page."""

_NO_ROOM = {sqlite3.SQLITE_IOERR_SHMSIZE}
"""A full disk, too: SQLite cannot grow the shared-memory file (``-shm``) that its users share."""

_TAKEN = {
    sqlite3.SQLITE_CONSTRAINT_UNIQUE,
    sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY,
    sqlite3.SQLITE_CONSTRAINT_ROWID,
}

Durability = Literal["full", "normal"]

_OPTIONS = ("durability", "chain")


class Settings(NamedTuple):
    """The settings in a URL.

    Attributes:
        path: the path of the file.
        durability: ``full``: an acknowledged append survives a loss of power; ``normal``: it
            survives the end of the process, and the last ones may be lost with the power.
        chain: a new log keeps a hash chain per stream.
    """

    path: Path
    durability: Durability
    chain: bool


def parse(url: str) -> Settings:
    """The settings in ``sqlite:///path?durability=...&chain=...``, or in a bare path.

    Raises:
        InvalidInput: no path, or an option or value that does not exist.
    """
    path, options = url, dict[str, str]()
    if url.startswith("sqlite://"):
        path, _, query = url.removeprefix("sqlite://").partition("?")
        path = unquote(path.removeprefix("/"))
        options = dict(parse_qsl(query, keep_blank_values=True))
    if not path or path == ":memory:":
        raise InvalidInput(
            f"{url!r} lacks a file name; write sqlite:///path.db, or memory:// for a log in memory"
        )
    for name in options:
        if name not in _OPTIONS:
            raise InvalidInput(
                f"unknown option {name!r} of a log; choose from durability=full|normal and chain=yes|no"
            )
    return Settings(Path(path), _durability(options), _chain(options))


def _durability(options: Mapping[str, str]) -> Durability:
    value = options.get("durability", "full")
    if value == "full":
        return "full"
    if value == "normal":
        return "normal"
    raise InvalidInput(f"durability must be full or normal, not {value!r}")


def _chain(options: Mapping[str, str]) -> bool:
    value = options.get("chain", "no")
    if value not in ("yes", "no"):
        raise InvalidInput(f"chain must be yes or no, not {value!r}")
    return value == "yes"


def connect(settings: Settings, mode: Literal["ro", "rw", "rwc"]) -> sqlite3.Connection:
    """A connection to a log; creates the log first if the mode is ``rwc`` and there is none.

    Blocks; to be called in a database thread.

    Raises:
        LogNotFound: there is no such file.
        NotALog: the file is something else, or damaged.
        LogUnavailable: the file cannot be opened.
    """
    path = settings.path
    try:
        new = _look(path, create=mode == "rwc")
        writable = mode != "ro" and (new or _writable(path))
        connection = _connect(path, mode if writable else "ro")
    except sqlite3.Error as error:
        raise translate(error, path) from error
    except OSError as error:
        raise LogUnavailable(f"cannot open {path}: {error.strerror or error}") from error
    try:
        if new:
            _create(connection, settings)
        _recognise(connection, settings)
        connection.execute("PRAGMA cell_size_check = ON")  # finds damage when it reads it
        if writable and not newer(connection):
            _patiently(connection, "PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {settings.durability}")
            connection.execute(f"PRAGMA cache_size = -{_CACHE}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT}")
            connection.execute(f"PRAGMA busy_timeout = {SLICE}")
    except sqlite3.Error as error:
        connection.close()
        raise translate(error, path) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = _plain(path, mode)
    try:
        connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.Error as error:
        connection.close()
        # SQLite needs to create files next to a log even to read it. If it may not, and there are
        # none, then no process is writing, and the file alone is the whole log.
        refused = isinstance(error, sqlite3.OperationalError) and mode == "ro"
        if not refused or _holds_pages(path.with_name(path.name + "-wal")):
            raise
        connection = look_inside(path)
    return connection


def _plain(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=PATIENCE,
        isolation_level=None,
        cached_statements=256,
    )


def _writable(path: Path) -> bool:
    """Whether this process may write a file."""
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def newer(connection: sqlite3.Connection) -> bool:
    """Whether a newer Duolog wrote the log."""
    (layout,) = connection.execute("PRAGMA user_version").fetchone()
    return bool(layout > LAYOUT)


def check_layout(connection: sqlite3.Connection, where: object) -> None:
    """Checks that no newer Duolog has changed the tables of a log since it was opened.

    Raises:
        NewerLog: this program does not know what its tables hold now.
    """
    if newer(connection):
        raise NewerLog(
            f"{where}: a newer Duolog has taken over this log: it can be read, and not written"
        )


def _look(path: Path, *, create: bool) -> bool:
    """Looks at a file without touching it: whether it is yet to be created.

    The file is never opened but by SQLite: closing it would let go of all locks that this process
    has on it, those of its open connections included.
    """
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        if not create:
            raise LogNotFound(f"no log at {path}") from None
        if not path.absolute().parent.is_dir():
            raise LogUnavailable(
                f"cannot create {path}: no such directory: {path.absolute().parent}"
            ) from None
        return True
    if path.is_dir():
        raise NotALog(f"{path} is a directory, not a Duolog log")
    journal = path.with_name(path.name + "-journal")
    if journal.exists():
        return create  # a process is creating it, or was interrupted: SQLite resolves that first
    if not size:
        if create:
            return True
        raise NotALog(f"{path} is empty, not a Duolog log")
    if not _recognised_untouched(path, size):
        if journal.exists():
            return create
        if not _recognised_untouched(path, size):  # its creation was finished in between, if ever
            raise NotALog(f"{path} is a SQLite file, but not a Duolog log")
    return False


def look_inside(path: Path) -> sqlite3.Connection:
    """A connection that reads a file by itself: no locks, no journals, nothing written."""
    return _plain(path, "ro&immutable=1")


def look_freshly(path: Path) -> sqlite3.Connection:
    """A connection that reads what is there now, and has nothing of it in memory yet."""
    return _plain(path, "ro")


def _recognised_untouched(path: Path, size: int) -> bool:
    connection = look_inside(path)
    try:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        if application != APPLICATION:
            return False
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        code = error.sqlite_errorcode & 0xFF
        if code == sqlite3.SQLITE_NOTADB:
            raise NotALog(f"{path} is not a Duolog log (nor any SQLite file)") from error
        if code != sqlite3.SQLITE_CORRUPT:
            raise
        # If there is a write-ahead log, the file alone may lack its latest pages.
        if not _holds_pages(path.with_name(path.name + "-wal")):
            raise NotALog(f"{path} is damaged or was cut off; {size} bytes are left") from error
    finally:
        connection.close()
    return True


def _holds_pages(wal: Path) -> bool:
    try:
        return wal.stat().st_size > 0
    except FileNotFoundError:
        return False


def _create(connection: sqlite3.Connection, settings: Settings) -> None:
    """Creates the tables, unless another process was faster, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not tables:
            for statement in _statements(TABLES + (CHAIN_TABLES if settings.chain else "")):
                connection.execute(statement)
            create_identity(connection, 1)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {LAYOUT}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # if the disk is full, SQLite has rolled it back already
            connection.execute("ROLLBACK")
        raise


def _statements(script: str) -> list[str]:
    """The statements of a script, since ``executescript`` would end the transaction."""
    statements, text = [], ""
    for line in script.splitlines(keepends=True):
        text += line
        if sqlite3.complete_statement(text):
            statements.append(text)
            text = ""
    return statements


def _recognise(connection: sqlite3.Connection, settings: Settings) -> None:
    # The tables first: the process that creates a log writes its application id with them.
    tables = connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION:
        if not application and not tables:
            raise LogNotFound(f"{settings.path} is not a log yet: another process is creating it")
        raise NotALog(f"{settings.path} is a SQLite file, but not a Duolog log")
    if (
        settings.chain
        and not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'chain'").fetchone()
    ):
        raise InvalidInput(
            f"{settings.path} was created without a hash chain, and none can be added; "
            "open it without chain=yes, or export it and import it into a new log"
        )


def begin(connection: sqlite3.Connection, wanted: Callable[[], bool] | None = None) -> None:
    """Begins a transaction that writes, and waits for other processes to finish theirs.

    Args:
        connection: whose transaction.
        wanted: asked now and then while it waits whether to keep waiting.

    Raises:
        sqlite3.Error: another process held the lock for too long, or the wait was no longer wanted.
    """
    _patiently(connection, "BEGIN IMMEDIATE", wanted)


def _patiently(
    connection: sqlite3.Connection, statement: str, wanted: Callable[[], bool] | None = None
) -> None:
    """Executes a statement that SQLite may refuse at once, or in slices, while others hold the file.

    It does so at once where two connections that have both read want to write: a switch to the
    write-ahead log that two processes make together, for one.
    """
    until = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute(statement)
        except sqlite3.OperationalError as error:
            if _primary(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
            if wanted is not None and not wanted():
                raise
        else:
            return


def commit(connection: sqlite3.Connection, where: object) -> None:
    """Commits a transaction.

    Raises:
        OutcomeUnknown: the disk failed meanwhile. Its pages may be in the write-ahead log, and the
            next process that recovers it then takes them for committed.
        sqlite3.Error: nothing was written.
    """
    try:
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        if _primary(error) in _NOT_WRITTEN:
            raise
        raise OutcomeUnknown(
            f"{where}: the disk failed while the log was being written ({error}); it is not known "
            "whether this was: read the log once it can be written again, or repeat it with the "
            "same ids or expected version"
        ) from error.with_traceback(None)


@contextmanager
def unsynced(connection: sqlite3.Connection, where: object) -> Iterator[None]:
    """A transaction that writes what need not survive a loss of power; rolled back if the block raises.

    Raises:
        OutcomeUnknown: the disk failed meanwhile.
        sqlite3.Error: nothing was written.
    """
    (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
    connection.execute("PRAGMA synchronous = NORMAL")
    try:
        begin(connection)
        yield
        commit(connection, where)
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    finally:
        connection.execute(f"PRAGMA synchronous = {synchronous}")


def is_locked(error: sqlite3.Error) -> bool:
    """Whether another process, or connection, holds the log."""
    return _primary(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def contradicts(error: sqlite3.Error) -> bool:
    """Whether a write failed because its place is taken.

    A log assigns each place once, based on the places that the file says are taken. So the file
    contradicts itself.
    """
    return getattr(error, "sqlite_errorcode", None) in _TAKEN


def _extended(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", None) or 0


def _primary(error: sqlite3.Error) -> int:
    return _extended(error) & 0xFF


def translate(
    error: sqlite3.Error, where: object, *, reading: bool = False, so: str = "nothing was written"
) -> LogError:
    """Translates a SQLite error into a LogError.

    Args:
        error: the error.
        where: the log.
        reading: whether the log was only read.
        so: what the error means for the data to be written.
    """
    primary = _primary(error)
    if reading:
        so = "try again"
    if is_locked(error):
        return LogAway(
            f"{where}: another process has held the log for more than {PATIENCE:g} seconds; {so}"
        )
    if primary == sqlite3.SQLITE_FULL or _extended(error) in _NO_ROOM:
        return LogAway(f"{where}: the disk is full; {so}")
    if primary == sqlite3.SQLITE_READONLY:
        return LogUnavailable(f"{where}: the file is read-only; {so}")
    if primary in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return LogUnavailable(f"{where}: cannot open the file; see its permissions ({error})")
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or contradicts(error):
        return NotALog(f"{where}: the file is damaged ({error}); restore it from a backup")
    return LogUnavailable(f"{where}: {error}; {so}")
