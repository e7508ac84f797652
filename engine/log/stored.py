"""A stored log: the parts that logs in a file and in a database share.

One writer task commits the appends that gather in a bounded queue as one transaction. Readers read
concurrently. A ``Backend`` provides both, and maintains the stored data.
"""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import Any, Final, Generic, Protocol, Self, TypeVar, final

import anyio
from anyio.abc import TaskGroup

from ..errors import DuologError, InvalidInput, LogClosed, LogError
from ..records import TRACE, Draft, Record, Redact
from .append import LATER, Append, named, prepare
from .append_writer import AppendQueue, restorations
from .contract import (
    Advance,
    Cache,
    Derived,
    ForgetResult,
    LogStatistics,
    SessionSummary,
    VacuumResult,
    Verification,
)
from .derived import Unkept, check_rows
from .leases import Leases
from .parts import Part
from .process import OwnProcess
from .publisher import Publisher
from .ranked import Arranged, Arrangement, RowNumbers, Rows, SessionGroup
from .searched import Phrases, SessionText
from .staging import Stage
from .subscriptions import BufferedSubscription, BufferedTap

__all__ = ("ROWS", "Backend", "Reads", "StoredLog", "Writes")

ROWS: Final = 512
"""Sessions whose derived rows are read at once."""


class Reads(Protocol):
    """Reads a log in batches; each method raises LogClosed once the log is closed, and LogError."""

    async def head(self) -> int:
        """Last position in the log."""
        ...

    async def fetch(self, session: str | None, after: int, upto: int) -> tuple[list[Record], bool]:
        """A batch of records by position, of one session or of all, and whether it is the last one."""
        ...

    async def stream_end(self, session: str, stream: str) -> tuple[int, int]:
        """The key of a stream and its version; zeros if there is none."""
        ...

    async def versions(self, key: int, after: int, upto: int) -> list[Record]:
        """A batch of one stream by version, at least one record."""
        ...

    async def listed(self, after: int) -> tuple[list[SessionSummary], int]:
        """A batch of summaries after a session's key, and the last key; none if no more follow."""
        ...

    async def summary(self, session: str) -> SessionSummary:
        """See ``EventLog.summary``."""
        ...

    async def checkpoint(self, consumer: str, version: str) -> int:
        """See ``EventLog.checkpoint``."""
        ...

    async def scan(self, consume: Callable[[Sequence[Record]], object]) -> None:
        """See ``EventLog.scan``."""
        ...

    async def parts(self, count: int) -> Sequence[Part]:
        """See ``Divisible.parts``."""
        ...

    async def scan_part(self, part: Part, consume: Callable[[Sequence[Record]], object]) -> None:
        """See ``Divisible.scan_part``."""
        ...

    async def outdated(self, kind: str, version: int) -> list[str]:
        """See ``Ranked.outdated``."""
        ...

    async def arranged(self, wanted: Arrangement) -> list[Arranged]:
        """See ``Ranked.arranged``."""
        ...

    async def groups(self) -> list[SessionGroup]:
        """See ``Ranked.groups``."""
        ...

    async def numbers(self, rows: Rows, sessions: Sequence[str]) -> list[RowNumbers]:
        """See ``Ranked.numbers``."""
        ...

    async def summaries(self, sessions: Sequence[str]) -> list[SessionSummary]:
        """See ``Ranked.summaries``."""
        ...

    async def unread_texts(self, version: int) -> list[str]:
        """See ``Searchable.unread_texts``."""
        ...

    async def search_texts(self, phrases: Phrases, version: int) -> list[str]:
        """See ``Searchable.search_texts``."""
        ...

    async def found_texts(
        self, phrases: Phrases, version: int, sessions: Sequence[str]
    ) -> list[tuple[str, str]]:
        """See ``Searchable.found_texts``."""
        ...

    async def find_keys(self, sessions: Sequence[str]) -> list[int]:
        """The keys of those sessions that the log has, in order of their first records."""
        ...

    async def derived(
        self, kind: str, version: int, after: int | Sequence[int]
    ) -> tuple[list[Derived], int]:
        """Rows that folds keep, in order of their sessions, and the last key found; 0 if there is none.

        Args:
            kind: the kind of the rows.
            version: the version of the rows.
            after: a session's key, for a batch of those behind it; or the keys of at most ``ROWS``
                sessions.
        """
        ...


class Writes(Protocol):
    """A writer that runs as a separate task.

    Attributes:
        groups: committed so far.
        events: in them.
    """

    groups: int
    events: int

    @property
    def queue(self) -> AppendQueue[Any]:
        """Where appends wait to be written."""
        ...

    async def run(self) -> None:
        """The writer task; ends once the writer is closed and nothing waits."""
        ...

    async def close(self) -> None:
        """Takes no further appends, and returns when those that wait are committed."""
        ...


class Backend(Protocol):
    """The storage of a log; each opening of a log creates one."""

    @property
    def url(self) -> str:
        """URL of the log, without passwords."""
        ...

    @property
    def reader(self) -> Reads:
        """Reads the log, once it is open."""
        ...

    @property
    def writer(self) -> Writes:
        """Writes to it, once it is open."""
        ...

    @property
    def publisher(self) -> Publisher:
        """Publishes its records, once it is open."""
        ...

    @property
    def writable(self) -> bool:
        """Whether ``check_writable`` raises nothing."""
        ...

    def check_writable(self) -> None:
        """Raises NewerLog, NotALog or LogUnavailable if the log can only be read."""
        ...

    async def open(self, *, create: bool) -> None:
        """Opens what is stored. Raises LogNotFound, NotALog, LogUnavailable."""
        ...

    def start(self, tasks: TaskGroup) -> None:
        """Makes reader, writer and publisher; they start their tasks in this group."""
        ...

    async def close(self) -> None:
        """Closes everything; the writer is closed already, and so is the publisher."""
        ...

    async def forget(self, sessions: Sequence[str]) -> list[str]:
        """Erases sessions and their forks in one transaction; returns all ids. See ``Store.forget``."""
        ...

    async def compact_forgotten(self) -> str:
        """Removes copies of erased data from the store's files; returns what prevented it."""
        ...

    async def vacuum(self) -> VacuumResult:
        """See ``Store.vacuum``."""
        ...

    async def verify(self) -> Verification:
        """See ``Store.verify``."""
        ...

    def leases(self) -> Leases:
        """See ``Leasing.leases``."""
        ...

    async def keep_derived(self, rows: Sequence[Derived]) -> int:
        """As ``EventLog.keep_derived``, but raises LogError if rows cannot be kept."""
        ...

    async def drop_derived(self) -> None:
        """See ``EventLog.drop_derived``."""
        ...

    async def keep_texts(self, texts: Sequence[SessionText]) -> int:
        """As ``Searchable.keep_texts``, but raises LogError if texts cannot be kept."""
        ...


B = TypeVar("B", bound=Backend)


@final
class StoredLog(Generic[B]):
    """An append-only log on a disk; see ``duolog.engine.log.contract.Store``.

    Enter and leave it in the same task: it runs its tasks in its own task group.

    Args:
        backend: the storage.
        create: create the log if there is none.
        redact: removes data that must not be written from each draft.
    """

    def __init__(self, backend: B, *, create: bool = True, redact: Redact | None = None) -> None:
        self._backend = backend
        self._create = create
        self.redact = redact
        self._state = "new"
        self._process = OwnProcess()
        self._unkept = Unkept(backend.url)
        self.unwritten = Stage(self.write_staged)

    @property
    def url(self) -> str:
        """URL of this log, without a password."""
        return self._backend.url

    # --- opening and closing ----------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        if self._state != "new":
            raise LogClosed("a log is entered once; open another with open_log")
        self._process = OwnProcess()
        await self._backend.open(create=self._create)
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._backend.start(self._tasks)
        self._writer = self._backend.writer
        self._state = "open"
        self._tasks.start_soon(self._writer.run, name=f"writer of {self.url}")
        return self

    async def aclose(self) -> None:
        """Commits what waits, and closes. Idempotent."""
        if self._state in ("new", "closed") or self._process.forked:
            self._state = "closed"  # in a fork, for the fork: the log is its parent's
            return
        self._state = "closing"
        with anyio.CancelScope(shield=True):
            await self._writer.close()
            if self._state == "closing":  # else: another task closed it meanwhile
                self._state = "closed"
                self._backend.publisher.close()
                await self._backend.close()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()
        if self._process.forked:
            return  # its tasks wait for threads that are not there
        # The body's own exception is nothing to the task group, which would wrap it in a group.
        await self._tasks.__aexit__(None, None, None)

    def __del__(self) -> None:
        if self._state in ("open", "closing") and not self._process.forked:
            warnings.warn(
                f"{self.url} was never closed", ResourceWarning, stacklevel=1, source=self
            )

    def _check_open(self) -> None:
        if self._process.forked:
            self._process.check(self.url)
        if self._state == "open":
            return
        if self._state == "new":
            raise LogClosed("open the log with 'async with' before using it")
        raise LogClosed(f"{self.url} is closed")

    def _check_writable(self) -> None:
        self._check_open()
        self._backend.check_writable()

    # --- writing ----------------------------------------------------------------------------------

    async def append(
        self,
        session: str,
        drafts: Sequence[Draft],
        *,
        stream: str = TRACE,
        expected_version: int | None = None,
        checkpoint: Advance | None = None,
    ) -> list[Record]:
        """Appends all drafts or none, durably; see ``EventLog.append``."""
        if self._state != "open" or not self._backend.writable or self._process.forked:
            self._check_writable()
        append = prepare(session, drafts, stream, expected_version, checkpoint, self.redact)
        return await self._writer.queue.write(append)

    @property
    def followed(self) -> bool:
        """Whether anybody subscribes or taps; see ``Staging.followed``."""
        return self._backend.publisher.has_readers

    def stage(
        self, session: str, drafts: Sequence[Draft], *, stream: str, expected_version: int
    ) -> Append:
        """An append to be written later; see ``Staging.stage``."""
        self._check_writable()
        return prepare(session, drafts, stream, expected_version, None, self.redact)

    def write_staged(self, appends: Sequence[Append]) -> None:
        """Begins to write appends that were staged; see ``Staging.write_staged``."""
        self._check_writable()
        self._writer.queue.write_staged(appends)

    async def restore(self, records: Sequence[Record]) -> list[Record | DuologError]:
        """Takes records as another log held them; see ``Store.restore``."""
        self._check_writable()
        return await self._writer.queue.restore(await restorations(records, self.redact))

    # --- maintenance ------------------------------------------------------------------------------

    async def forget(
        self, session: str | Sequence[str], *, caches: Sequence[Cache] = (), compact: bool = True
    ) -> ForgetResult:
        """Erases sessions and their forks; see ``Store.forget``."""
        self._check_writable()
        sessions = await self._backend.forget(named(session))
        self._backend.publisher.erase(frozenset(sessions))
        for cache in caches:
            await cache.forget(sessions)
        held_up = await self._backend.compact_forgotten() if compact else LATER
        return ForgetResult(
            sessions=tuple(sessions),
            compacted=not held_up,
            caches=tuple(cache.name for cache in caches),
            held_up=held_up,
        )

    async def vacuum(self) -> VacuumResult:
        """Gives unused room back, and finishes erasures; see ``Store.vacuum``."""
        self._check_writable()
        return await self._backend.vacuum()

    async def verify(self) -> Verification:
        """Looks at every record; see ``Store.verify``."""
        self._check_open()
        return await self._backend.verify()

    def leases(self) -> Leases:
        """The leases on work in this log; see ``duolog.engine.log.leases``."""
        self._check_writable()
        return self._backend.leases()

    # --- reading ----------------------------------------------------------------------------------

    def read(
        self, session: str, *, stream: str = TRACE, after_version: int = 0
    ) -> AsyncIterator[Record]:
        """The records of one stream, as of now; see ``EventLog.read``."""
        self._check_open()
        if after_version < 0:
            raise InvalidInput(f"after_version must not be negative, not {after_version}")
        return self._stream(session, stream, after_version)

    async def _stream(self, session: str, stream: str, after: int) -> AsyncIterator[Record]:
        key, version = await self._backend.reader.stream_end(session, stream)
        while after < version:
            batch = await self._backend.reader.versions(key, after, version)
            after = batch[-1].version
            batch.reverse()
            while batch:  # drops each record as soon as the reader has it
                yield batch.pop()

    def read_all(
        self, *, session: str | None = None, after_position: int = 0
    ) -> AsyncIterator[Record]:
        """The records of all streams, as of now; see ``EventLog.read_all``."""
        self._check_open()
        if after_position < 0:
            raise InvalidInput(f"after_position must not be negative, not {after_position}")
        return self._everything(session, after_position)

    async def _everything(self, session: str | None, after: int) -> AsyncIterator[Record]:
        upto = await self._backend.reader.head()
        last = after >= upto
        while not last:
            batch, last = await self._backend.reader.fetch(session, after, upto)
            if batch:
                after = batch[-1].position
            batch.reverse()
            while batch:
                yield batch.pop()

    async def scan(self, consume: Callable[[Sequence[Record]], object]) -> None:
        """Hands all records to a function, in another thread; see ``EventLog.scan``."""
        self._check_open()
        await self._backend.reader.scan(consume)

    async def parts(self, count: int) -> Sequence[Part]:
        """The log as of now in parts; see ``Divisible.parts``."""
        self._check_open()
        return await self._backend.reader.parts(count)

    async def scan_part(self, part: Part, consume: Callable[[Sequence[Record]], object]) -> None:
        """Hands the records of a part to a function; see ``Divisible.scan_part``."""
        self._check_open()
        await self._backend.reader.scan_part(part, consume)

    async def outdated(self, kind: str, version: int) -> list[str]:
        """The sessions without a current row; see ``Ranked.outdated``."""
        self._check_open()
        return await self._backend.reader.outdated(kind, version)

    async def arranged(self, wanted: Arrangement) -> list[Arranged]:
        """Sessions in the order of a property or a number of their rows; see ``Ranked.arranged``."""
        self._check_open()
        return await self._backend.reader.arranged(wanted)

    async def groups(self) -> list[SessionGroup]:
        """All sessions, counted by task, state and labels; see ``Ranked.groups``."""
        self._check_open()
        return await self._backend.reader.groups()

    async def numbers(self, rows: Rows, sessions: Sequence[str]) -> list[RowNumbers]:
        """The numbers of the rows of some sessions; see ``Ranked.numbers``."""
        self._check_open()
        return await self._backend.reader.numbers(rows, sessions)

    async def summaries(self, sessions: Sequence[str]) -> list[SessionSummary]:
        """The summaries of some sessions; see ``Ranked.summaries``."""
        self._check_open()
        return await self._backend.reader.summaries(sessions)

    def subscribe(
        self, *, session: str | None = None, after_position: int = 0
    ) -> BufferedSubscription:
        """A lossless subscription; see ``EventLog.subscribe``."""
        self._check_open()
        return self._backend.publisher.subscribe(session, after_position)

    def tap(self, *, session: str | None = None, buffer: int = 1024) -> BufferedTap:
        """A lossy live tap; see ``EventLog.tap``."""
        self._check_open()
        return self._backend.publisher.tap(session, buffer)

    async def checkpoint(self, consumer: str, consumer_version: str) -> int:
        """Position that a consumer has reached; see ``EventLog.checkpoint``."""
        self._check_open()
        return await self._backend.reader.checkpoint(consumer, consumer_version)

    def sessions(self) -> AsyncIterator[SessionSummary]:
        """All sessions in order of their first record; see ``EventLog.sessions``."""
        self._check_open()
        return self._sessions()

    async def _sessions(self) -> AsyncIterator[SessionSummary]:
        batch, after = await self._backend.reader.listed(0)
        while batch:
            for summary in batch:
                yield summary
            batch, after = await self._backend.reader.listed(after)

    async def summary(self, session: str) -> SessionSummary:
        """One session's summary; see ``EventLog.summary``."""
        self._check_open()
        return await self._backend.reader.summary(session)

    def statistics(self) -> LogStatistics:
        """State of the log in this process."""
        self._check_open()
        writer = self._writer
        return self._backend.publisher.statistics(
            waiting=len(writer.queue), groups=writer.groups, events=writer.events
        )

    # --- derived rows -----------------------------------------------------------------------------

    def derived(
        self, kind: str, version: int, *, sessions: Sequence[str] | None = None
    ) -> AsyncIterator[Derived]:
        """The rows of one kind and version; see ``EventLog.derived``."""
        self._check_open()
        return self._derived(kind, version, sessions)

    async def _derived(
        self, kind: str, version: int, sessions: Sequence[str] | None
    ) -> AsyncIterator[Derived]:
        reader, after = self._backend.reader, -1
        keys = [] if sessions is None else await reader.find_keys(sessions)
        for at in range(0, len(keys), ROWS):
            rows, _ = await reader.derived(kind, version, keys[at : at + ROWS])
            for row in rows:
                yield row
        while sessions is None and after:
            rows, after = await reader.derived(kind, version, max(after, 0))
            for row in rows:
                yield row

    async def keep_derived(self, rows: Sequence[Derived]) -> int:
        """Keeps rows; see ``EventLog.keep_derived``."""
        self._check_open()
        check_rows(rows)
        try:
            self._check_writable()
            return await self._backend.keep_derived(rows)
        except LogClosed:
            raise
        except LogError as error:
            self._unkept.say(error)
            return 0

    # --- texts ------------------------------------------------------------------------------------

    async def unread_texts(self, version: int) -> list[str]:
        """The sessions without a current text; see ``Searchable.unread_texts``."""
        self._check_open()
        return await self._backend.reader.unread_texts(version)

    async def keep_texts(self, texts: Sequence[SessionText]) -> int:
        """Keeps texts; see ``Searchable.keep_texts``."""
        self._check_open()
        try:
            self._check_writable()
            return await self._backend.keep_texts(texts) if texts else 0
        except LogClosed:
            raise
        except LogError as error:
            self._unkept.say(error)
            return 0

    async def search_texts(self, phrases: Phrases, version: int) -> list[str]:
        """The sessions in which all phrases occur; see ``Searchable.search_texts``."""
        self._check_open()
        return await self._backend.reader.search_texts(phrases, version)

    async def found_texts(
        self, phrases: Phrases, version: int, sessions: Sequence[str]
    ) -> list[tuple[str, str]]:
        """The parts in which all phrases occur; see ``Searchable.found_texts``."""
        self._check_open()
        return await self._backend.reader.found_texts(phrases, version, sessions)

    async def drop_derived(self) -> None:
        """Drops all kept rows; see ``EventLog.drop_derived``."""
        self._check_writable()
        await self._backend.drop_derived()
