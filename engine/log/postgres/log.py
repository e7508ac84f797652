"""The log in a PostgreSQL database: group commit by one writer task, many readers and machines.

One connection writes, up to four read, and one listens if there are subscriptions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, final

from anyio.abc import TaskGroup

from ...records import Redact
from ..contract import Derived, VacuumResult, Verification
from ..publisher import Publisher
from ..searched import SessionText
from ..stored import StoredLog
from .commit import Committer
from .connection import check_layout, open_schema
from .derived import AT_ONCE, drop_derived, keep_derived
from .leases import PostgresLeases
from .maintenance import forget, vacuum, verify
from .reader import Reader
from .settings import Settings
from .tables import LAYOUT
from .tail import Tail
from .texts import drop_texts, keep_texts
from .writer import Writer

__all__ = ("PostgresSchema", "postgres_log")

_COPIES: Final = (
    "the server's files may hold copies until the log is vacuumed; so may its archive of the "
    "write-ahead log, its replicas and its backups, which are yours to expire"
)


def postgres_log(
    settings: Settings, *, create: bool = True, redact: Redact | None = None
) -> StoredLog[PostgresSchema]:
    """The log in a schema of a PostgreSQL database, not open yet."""
    return StoredLog(PostgresSchema(settings), create=create, redact=redact)


@final
class PostgresSchema:
    """A log's schema; see ``duolog.engine.log.stored.Backend``.

    Args:
        settings: which log, and how.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.writable = True

    @property
    def url(self) -> str:
        """URL of the log, without a password."""
        return self._settings.url

    async def open(self, *, create: bool) -> None:
        """Reads the log's identity; creates the log if there is none and ``create`` is set."""
        self._identity = await open_schema(self._settings, create=create)
        self.writable = self._identity.layout == LAYOUT

    def start(self, tasks: TaskGroup) -> None:
        """Makes reader, writer and publisher; they connect when they are used."""
        self.reader = Reader(self._settings)
        self._tail = Tail(self._settings, self.reader, tasks)
        self.publisher = Publisher(self.reader.fetch, self._identity.position, self._tail.begin)
        self._tail.publisher = self.publisher
        self.writer = Writer(self._settings, Committer(self._settings), self._tail.take)

    async def close(self) -> None:
        """Closes the connections that read and listen."""
        self._tail.stop()
        await self.reader.close()

    def check_writable(self) -> None:
        """Raises NewerLog or LogUnavailable if the log can only be read."""
        check_layout(self._identity, self.url)

    async def forget(self, sessions: Sequence[str]) -> list[str]:
        """Erases sessions and their forks; see ``Store.forget``."""
        return await self.writer.call(partial(forget, settings=self._settings, sessions=sessions))

    async def compact_forgotten(self) -> str:
        """Does nothing: ``vacuum`` locks tables, so the owner says when."""
        return _COPIES

    async def vacuum(self) -> VacuumResult:
        """Gives unused room back, and finishes erasures; see ``Store.vacuum``."""
        return await self.reader.call(partial(vacuum, settings=self._settings))

    async def verify(self) -> Verification:
        """Looks at every record; see ``Store.verify``."""
        return await self.reader.call(
            lambda connection: verify(connection, self._settings, self.reader, self._identity)
        )

    def leases(self) -> PostgresLeases:
        """The leases on work in this log."""
        return PostgresLeases(self.reader, self._settings.schema)

    async def keep_derived(self, rows: Sequence[Derived]) -> int:
        """Keeps rows; see ``EventLog.keep_derived``."""
        kept = 0
        for at in range(0, len(rows), AT_ONCE):
            some = rows[at : at + AT_ONCE]
            kept += await self.reader.call(
                partial(keep_derived, settings=self._settings, rows=some)
            )
        return kept

    async def drop_derived(self) -> None:
        """Drops all kept rows; see ``EventLog.drop_derived``."""
        await self.reader.call(partial(drop_derived, schema=self._settings.schema))
        await self.reader.call(partial(drop_texts, schema=self._settings.schema))

    async def keep_texts(self, texts: Sequence[SessionText]) -> int:
        """Keeps texts; see ``Searchable.keep_texts``."""
        if not texts:
            return 0
        return await self.reader.call(partial(keep_texts, settings=self._settings, texts=texts))
