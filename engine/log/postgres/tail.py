"""Publishes records appended to a PostgreSQL log, here and elsewhere, once it has a reader here.

Each committed group notifies the listening processes. A process that cannot listen, because it is
behind a pooler, polls often.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, final

import anyio
from anyio.abc import TaskGroup

from ...errors import LogClosed, LogError, LogUnavailable
from ...logger import get_logger
from ...records import Record
from ..backoff import Backoff
from ..publisher import Publisher
from .connection import LOST, Connection, connect
from .reader import Reader
from .settings import Settings

__all__ = ("Tail",)

_LISTENING: Final = 1.0  # seconds between polls while the server notifies
_LOOKING: Final = 0.05  # seconds between polls if it cannot


@final
class Tail:
    """Reads on from the last position published whenever there is more.

    Args:
        settings: which log.
        reader: reads it.
        tasks: where the task runs.
    """

    def __init__(self, settings: Settings, reader: Reader, tasks: TaskGroup) -> None:
        self._settings = settings
        self._reader = reader
        self._tasks = tasks
        self._grown = asyncio.Event()
        self._begun = False
        self._stopped = False
        self._scope = anyio.CancelScope()
        self.publisher: Publisher

    def begin(self, publisher: Publisher) -> None:
        """Starts, unless it has."""
        if not self._begun:
            self._begun = True
            self._tasks.start_soon(self._run, name=f"follower of {self._settings.url}")

    def take(self, records: Sequence[Record]) -> None:
        """Publishes records committed here; reads earlier ones of other processes first."""
        if not records:
            return
        publisher = self.publisher
        if records[0].position == publisher.head + 1:
            publisher.publish(records)
        elif publisher.has_readers:
            self._grown.set()
        else:
            publisher.skip(records[-1].position)

    def stop(self) -> None:
        """Ends it."""
        self._stopped = True
        self._scope.cancel()

    async def _run(self) -> None:
        with self._scope:
            async with anyio.create_task_group() as tasks:
                if not self._settings.pooler:
                    tasks.start_soon(self._listen)
                await self._publish()
                tasks.cancel_scope.cancel()

    async def _publish(self) -> None:
        publisher = self.publisher
        every = _LOOKING if self._settings.pooler else _LISTENING
        while True:
            try:
                head = await self._reader.head()
                publisher.grow(head)
                while publisher.head < head:
                    after = publisher.head
                    records, _ = await self._reader.fetch(None, after, head)
                    if publisher.head == after:  # else: published here meanwhile
                        publisher.publish(records)
            except LogUnavailable as error:
                get_logger("log").warning("a log cannot be followed now", why=str(error))
            except LogClosed:
                return
            except LogError as error:
                publisher.close(error)  # readers get the error: silence would look like no news
                return
            with anyio.move_on_after(every):
                await self._grown.wait()
            self._grown.clear()

    async def _listen(self) -> None:
        """Listens for the server's notices of growth; reconnects if the connection is lost."""
        backoff = Backoff(0.1, longest=2.0)
        while not self._stopped:
            connection: Connection | None = None
            try:
                connection = await connect(self._settings)
                lost = asyncio.Event()
                connection.add_termination_listener(lambda _, gone=lost: gone.set())
                await connection.add_listener(self._settings.schema, lambda *_: self._grown.set())
                self._grown.set()  # there may be news from before
                backoff.reset()
                await lost.wait()
            except LOST as error:
                get_logger("log").debug("listening to a log failed", why=str(error))
            finally:
                if connection is not None:
                    connection.terminate()
            await backoff.wait()
