"""Opens logs: the URL picks the store."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final, Protocol, cast

from ..errors import DuologError, InvalidInput, MissingExtra, PluginFailed
from ..loading import entry_points
from ..plugins import PluginCall
from ..records import Redact
from ..text import one_of
from .consumer import Consumer, run_consumer
from .contract import EventLog, Store
from .exchange.jsonl_export import export_jsonl
from .exchange.jsonl_import import Imported, LineProblem, import_jsonl
from .follower import Output
from .memory import MemoryLog
from .sqlite.file import parse
from .sqlite.log import sqlite_log

__all__ = (
    "Consumer",
    "Imported",
    "LineProblem",
    "MemoryLog",
    "Output",
    "Redact",
    "StoreFactory",
    "export_jsonl",
    "import_jsonl",
    "open_log",
    "run_consumer",
)


GROUP: Final = "duolog.stores"
"""Entry points of stores that other packages bring: the scheme of their URLs, and a ``StoreFactory``."""


class StoreFactory(Protocol):
    """Makes a log at a URL, not open yet."""

    def __call__(self, url: str, *, create: bool, redact: Redact | None) -> Store:
        """The log at ``url``; see ``open_log``. Raises InvalidInput if the URL says what cannot be."""
        ...


def open_log(url: str, *, create: bool = True, redact: Redact | None = None) -> Store:
    """A log at a URL, not open yet: enter it with ``async with``.

    ``memory://`` is a log that exists only while it is open.

    ``sqlite:///path`` is a log in a file (``sqlite:////path`` for an absolute path; a plain path
    works, too). With ``durability=full``, the default, an acknowledged append survives a loss of
    power; with ``durability=normal`` it survives the end of the process. With ``chain=yes``, a new
    log keeps a hash chain per stream, which ``verify`` checks.

    ``postgresql://user@host/database`` is a log in a PostgreSQL database, for more than one
    machine. It has the same options, and two more. ``schema=NAME`` picks the log, since each schema
    is a separate log. ``pooler=yes`` is for connections through a pooler that pools transactions.

    Other packages may add stores with other schemes, as entry points of ``duolog.stores``. Enter
    and leave a log in the same task.

    Args:
        url: URL of the log.
        create: create the log if there is none; otherwise entering it fails.
        redact: removes data that must not be written from each draft.

    Raises:
        InvalidInput: a URL that names no store.
        MissingExtra: the store needs a package that is not installed.
    """
    scheme, separator, _ = url.partition("://")
    factory = _STORES.get(scheme if separator else "sqlite") or _installed(scheme, url)
    return factory(url, create=create, redact=redact)


def _sqlite(url: str, *, create: bool, redact: Redact | None) -> Store:
    return sqlite_log(parse(url), create=create, redact=redact)


def _memory(url: str, *, create: bool, redact: Redact | None) -> Store:
    return MemoryLog(redact=redact)


def _postgres(url: str, *, create: bool, redact: Redact | None) -> Store:
    """The log in a database; its client is loaded only here."""
    try:
        from .postgres.log import postgres_log
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise MissingExtra("postgres", "a log on PostgreSQL") from error
    from .postgres.settings import parse as parse_postgres

    return postgres_log(parse_postgres(url), create=create, redact=redact)


_STORES: Final[Mapping[str, StoreFactory]] = {
    "memory": _memory,
    "postgres": _postgres,
    "postgresql": _postgres,
    "sqlite": _sqlite,
}


def _installed(scheme: str, url: str) -> StoreFactory:
    """The store that an installed package offers for a scheme.

    Raises:
        InvalidInput: there is none, or there are several.
    """
    offered = entry_points(group=GROUP)
    found = {entry.value: entry for entry in offered if entry.name == scheme}
    if not found:
        known = sorted({*_STORES, *(entry.name for entry in offered)} - {"postgres"})
        close = get_close_matches(scheme, known, 1)
        hint = f" Did you mean {close[0]}://?" if close else ""
        raise InvalidInput(
            f"no store for {url!r}.{hint} A log is a path, or a URL that begins with "
            f"{one_of([f'{name}://' for name in known])}"
        )
    if len(found) > 1:
        raise InvalidInput(f"several packages offer a store for {scheme}://: {', '.join(found)}")
    [entry] = found.values()
    name = f"the store {scheme}:// ({entry.value})"

    def make(url: str, *, create: bool, redact: Redact | None) -> Store:
        try:
            with PluginCall(name):
                made = cast(StoreFactory, entry.load())(url, create=create, redact=redact)
        except DuologError:
            raise
        except Exception as error:
            raise PluginFailed(name, error) from error
        if missing := [part for part in _PARTS if not hasattr(made, part)]:
            raise InvalidInput(f"{name} lacks what a Store has: {', '.join(missing)}")
        return made

    return make


_PARTS: Final = [name for kind in (EventLog, Store) for name in vars(kind) if name[0] != "_"]
"""The methods of a store."""
