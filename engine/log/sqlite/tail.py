"""Reading a SQLite log from the event loop, and noticing what other processes write to it."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar, final

import aiosqlite
import anyio
from anyio.abc import TaskGroup

from ...errors import LogClosed, LogError, LogGone, LogUnavailable
from ...records import Record
from ..contract import Derived, SessionSummary
from ..parts import Part, check_count
from ..process import OwnProcess, keep_in_forks
from ..publisher import Publisher
from ..ranked import Arranged, Arrangement, RowNumbers, Rows, SessionGroup
from ..searched import Phrases
from .derived import find_keys, outdated, read_numbers, read_rows
from .file import Settings, translate
from .file import connect as connect_file
from .presence import FilePresence
from .reader import Reader, StreamEnd
from .texts import found_texts, search_texts, unread_texts
from .thread import connect, run_in_thread

__all__ = ("LogReader", "Tail")

P = ParamSpec("P")
T = TypeVar("T")

_EVERY = 0.02  # seconds between looks for what other processes wrote


@final
class LogReader:
    """Reads batches in the thread of a separate connection.

    Args:
        connection: to read on.
        reader: reads on it.
        url: the URL of the log, for messages.
    """

    def __init__(self, connection: aiosqlite.Connection, reader: Reader, url: str) -> None:
        self._connection = connection
        self._reader = reader
        self._url = url
        self._closed = False
        self._process = OwnProcess()

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs a read in the thread.

        Raises:
            LogClosed: the log is closed, or was before the read came to its turn; or this is a fork
                of the process that opened it, which has no such thread.
            LogError: the file cannot be read.
        """
        self._process.check(self._url)
        self.check_open()
        try:
            return await run_in_thread(self._connection, function, *args, **kwargs)
        except sqlite3.Error as error:
            self.check_open()
            raise translate(error, self._url, reading=True) from error
        except ValueError:
            self.check_open()
            raise

    def check_open(self) -> None:
        """Raises LogClosed if the log is closed."""
        if self._closed:
            raise LogClosed(f"{self._url} is closed")

    async def close(self) -> None:
        """Closes the connection."""
        self._closed = True
        await self._connection.close()

    async def stream_end(self, session: str, stream: str) -> StreamEnd:
        """A stream's key and last version."""
        return await self.call(self._reader.stream_end, session, stream)

    async def versions(self, key: int, after: int, upto: int) -> list[Record]:
        """A batch of one stream, by version."""
        return await self.call(self._reader.stream, key, after, upto)

    async def scan(self, consume: Callable[[Sequence[Record]], object]) -> None:
        """Hands the records of all streams, as of now, to a function in the thread."""
        upto = await self.call(self._reader.head)
        after = 0
        while after < upto:
            after = await self.call(self._reader.scan, consume, after, upto)

    async def parts(self, count: int) -> list[Part]:
        """The log as of now in parts."""
        return await self.call(self._reader.parts, count)

    async def scan_part(self, part: Part, consume: Callable[[Sequence[Record]], object]) -> None:
        """Hands the records of a part to a function in the thread."""
        after, found, more = part.after, 0, 1
        while more:
            after, more = await self.call(self._reader.scan_part, part, consume, after)
            found += more
        check_count(part, found)

    async def fetch(self, session: str | None, after: int, upto: int) -> tuple[list[Record], bool]:
        """A batch of records, and whether it is the last one."""
        if session is None:
            return await self.call(self._reader.all_after, after, upto)
        return await self.call(self._reader.of_session, session, after, upto)

    async def listed(self, after: int) -> tuple[list[SessionSummary], int]:
        """A batch of summaries after a key, and the last key; empty at the end."""
        return await self.call(self._reader.sessions, after)

    async def summary(self, session: str) -> SessionSummary:
        """One session's summary."""
        return await self.call(self._reader.summary, session, self._url)

    async def checkpoint(self, consumer: str, version: str) -> int:
        """Position that a consumer has reached."""
        return await self.call(self._reader.checkpoint, consumer, version)

    async def outdated(self, kind: str, version: int) -> list[str]:
        """See ``Ranked.outdated``."""
        return await self.call(outdated, self._reader.connection, kind, version)

    async def arranged(self, wanted: Arrangement) -> list[Arranged]:
        """See ``Ranked.arranged``."""
        return await self.call(self._reader.arranged, wanted)

    async def groups(self) -> list[SessionGroup]:
        """See ``Ranked.groups``."""
        return await self.call(self._reader.groups)

    async def numbers(self, rows: Rows, sessions: Sequence[str]) -> list[RowNumbers]:
        """See ``Ranked.numbers``."""
        return await self.call(read_numbers, self._reader.connection, rows, sessions)

    async def summaries(self, sessions: Sequence[str]) -> list[SessionSummary]:
        """See ``Ranked.summaries``."""
        return await self.call(self._reader.summaries, sessions)

    async def unread_texts(self, version: int) -> list[str]:
        """See ``Searchable.unread_texts``."""
        return await self.call(unread_texts, self._reader.connection, version)

    async def search_texts(self, phrases: Phrases, version: int) -> list[str]:
        """See ``Searchable.search_texts``."""
        return await self.call(search_texts, self._reader.connection, phrases, version)

    async def found_texts(
        self, phrases: Phrases, version: int, sessions: Sequence[str]
    ) -> list[tuple[str, str]]:
        """See ``Searchable.found_texts``."""
        connection = self._reader.connection
        return await self.call(found_texts, connection, phrases, version, sessions)

    async def find_keys(self, sessions: Sequence[str]) -> list[int]:
        """The keys of those sessions that the log has, in order of their first records."""
        return await self.call(find_keys, self._reader.connection, sessions)

    async def derived(
        self, kind: str, version: int, after: int | Sequence[int]
    ) -> tuple[list[Derived], int]:
        """Rows that folds keep; see ``Reads.derived``."""
        return await self.call(read_rows, self._reader.connection, kind, version, after)

    async def head(self) -> int:
        """Last position in the log."""
        return await self.call(self._reader.head)


@final
class Tail:
    """Publishes what other processes append, once there is a subscription or tap here.

    A thread with a separate connection checks fifty times a second whether other processes have
    appended, and wakes the event loop only if they have. At times it checks that the file is there.
    """

    def __init__(
        self,
        settings: Settings,
        presence: FilePresence,
        reading: LogReader,
        tasks: TaskGroup,
        name: str,
    ) -> None:
        self._settings = settings
        self._presence = presence.for_another_thread()
        self._log_reader = reading
        self._tasks = tasks
        self._name = name
        self._stop = threading.Event()
        self._grown = asyncio.Event()
        self._begun = False
        self._opening = anyio.Lock()
        self._connection: aiosqlite.Connection | None = None

    def begin(self, publisher: Publisher) -> None:
        """Starts to look, unless it does."""
        if not self._begun:
            self._begun = True
            self._tasks.start_soon(self._run, publisher, name=self._name)

    async def stop(self) -> None:
        """Ends it, and closes its connection."""
        self._stop.set()
        self._grown.set()
        async with self._opening:
            if self._connection is not None:
                await self._connection.close()

    async def _run(self, publisher: Publisher) -> None:
        readers: list[Reader] = []

        def open_file() -> sqlite3.Connection:
            self._presence.check()
            try:
                opened = connect_file(self._settings, "ro")
            except LogError:
                self._presence.check()  # it may have gone, or been replaced, since
                raise
            readers.append(Reader(opened))
            return opened

        async with self._opening:
            if self._stop.is_set():
                return
            try:
                self._connection = await connect(open_file)
            except LogUnavailable as error:
                self._begun = False  # the next reader begins it again
                publisher.interrupt(error)
                return
            except LogError as error:
                publisher.close(error)  # readers get the error: silence would look like no news
                return
        keep_in_forks(self._connection)
        loop = asyncio.get_running_loop()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(
                run_in_thread, self._connection, self._watch, readers[0], publisher, loop
            )
            try:
                await self._publish(publisher)
            finally:
                self._stop.set()

    async def _publish(self, publisher: Publisher) -> None:
        while not self._stop.is_set():
            await self._grown.wait()
            self._grown.clear()
            try:
                head = await self._log_reader.head()
                publisher.grow(head)
                while publisher.head < head:
                    records, _ = await self._log_reader.fetch(None, publisher.head, head)
                    publisher.publish(records)
            except LogUnavailable:
                continue  # locked by another process: the thread sets the event again
            except LogClosed:
                return
            except LogError as error:
                publisher.close(error)
                return

    def _watch(self, reader: Reader, publisher: Publisher, loop: asyncio.AbstractEventLoop) -> None:
        """In the thread."""
        version = -1
        while not self._stop.wait(_EVERY):
            try:
                self._presence.check_now_and_then()
                now = reader.data_version()
                if now == version:
                    continue
                if reader.head() <= publisher.head:
                    version = now
                else:
                    loop.call_soon_threadsafe(self._grown.set)
            except LogGone as error:
                loop.call_soon_threadsafe(publisher.close, error.with_traceback(None))
                return
            except sqlite3.OperationalError:
                continue  # locked by another process
            except sqlite3.DatabaseError as error:
                self._fail(error, publisher, loop)
                return
            except RuntimeError:  # the loop was closed before the log
                return

    def _fail(
        self, error: sqlite3.DatabaseError, publisher: Publisher, loop: asyncio.AbstractEventLoop
    ) -> None:
        """In the thread: ends what is published, since the file cannot be read any more."""
        failure = translate(error, self._settings.path, reading=True)
        try:
            self._presence.check()
        except LogGone as gone:
            failure = gone.with_traceback(None)
        loop.call_soon_threadsafe(publisher.close, failure)
