"""Where events are kept: a URL picks the store."""

from __future__ import annotations

from ..errors import InvalidInput, MissingExtra
from .append import Redact
from .consumer import Consumer, run_consumer
from .contract import Store
from .exchange.jsonl_export import export_jsonl
from .exchange.jsonl_import import Imported, LineProblem, import_jsonl
from .follower import Output
from .memory import MemoryLog
from .sqlite.file import parse
from .sqlite.log import SqliteLog

__all__ = (
    "Consumer",
    "Imported",
    "LineProblem",
    "MemoryLog",
    "Output",
    "Redact",
    "SqliteLog",
    "export_jsonl",
    "import_jsonl",
    "open_log",
    "run_consumer",
)


def open_log(url: str, *, create: bool = True, redact: Redact | None = None) -> Store:
    """A log at a URL, not open yet: enter it with ``async with``.

    ``memory://`` is a log that lives as long as it is open. ``sqlite:///path`` is one in a file
    (``sqlite:////path`` for an absolute path; a path alone will do as well), with the options
    ``durability=full``, the default: an acknowledged append survives a loss of power;
    ``durability=normal``: it survives the end of the process; ``chain=yes``: a new log keeps a hash
    chain per stream, which ``verify`` checks. ``postgresql://user@host/database`` is one in a PostgreSQL
    database, for more than one machine; beside those options it has ``schema=NAME``, since each schema
    is a log of its own, and ``pooler=yes`` for connections behind one that pools transactions. Enter
    and leave a log in the same task.

    Args:
        url: where the log is.
        create: make the log where there is none; else that is an error (when it is entered).
        redact: takes out of each draft what must not be written.

    Raises:
        InvalidInput: a URL that names no store.
        MissingExtra: the store needs a package that is not installed.
    """
    scheme, separator, _ = url.partition("://")
    if scheme == "sqlite" or not separator:
        return SqliteLog(parse(url), create=create, redact=redact)
    if separator and scheme == "memory":
        return MemoryLog(redact=redact)
    if scheme in ("postgresql", "postgres"):
        return _postgres(url, create=create, redact=redact)
    raise InvalidInput(
        f"no store for {url!r}: a log's URL is memory://, sqlite:///path or postgresql://host/database"
    )


def _postgres(url: str, *, create: bool, redact: Redact | None) -> Store:
    """The log in a database; its client is loaded only here."""
    try:
        from .postgres.log import PostgresLog
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise MissingExtra("postgres", "a log on PostgreSQL") from error
    from .postgres.settings import parse as parse_postgres

    return PostgresLog(parse_postgres(url), create=create, redact=redact)
