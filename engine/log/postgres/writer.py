"""The writer of a PostgreSQL log: appends gather in a queue, and are committed group by group.

If the server goes away, the writer reconnects and checks whether the log has the group that it had
sent. So nothing is written twice, and nothing is guessed.
"""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias, TypeVar, cast, final

import anyio
import asyncpg

from ...errors import DuologError, LogUnavailable, OutcomeUnknown
from ...logger import get_logger
from ...records import Record
from ..append import Append
from ..append_writer import AppendQueue
from ..backoff import Backoff
from .commit import Committer, Prepared, Statements, refused, was_committed
from .connection import LOST, PATIENCE, Connection, connect, is_lost, translate
from .settings import Settings

__all__ = ("Writer",)

T = TypeVar("T")

_Work: TypeAlias = Callable[[Connection], Awaitable[object]]

_EVENTS: Final = (
    512  # in one transaction, more only if they are one append; others prepare meanwhile
)
_AHEAD: Final = 256  # appends that make a separate group while another is being committed
_BURST: Final = 16  # appends in a group from which another one is likely to follow at once
_SLOW: Final = 1.0  # seconds from which a commit is reported

# The server refuses values, not the transaction.
_REFUSED: Final = (
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.exceptions.ProgramLimitExceededError,
    ValueError,
    OverflowError,
)


@final
class Writer:
    """Queues appends and commits them.

    Args:
        settings: which log.
        committer: takes groups.
        publish: takes the records that were committed.
    """

    def __init__(
        self,
        settings: Settings,
        committer: Committer,
        publish: Callable[[Sequence[Record]], None],
    ) -> None:
        self._settings = settings
        self._url = settings.url
        self._sql = Statements(settings)
        self._committer = committer
        self._publish = publish
        self._loop = asyncio.get_running_loop()
        self._connection: Connection | None = None
        self._bell = asyncio.Event()
        self.queue: AppendQueue[_Work] = AppendQueue(settings.url, self._bell.set)
        self._next: list[Append] = []  # the group that was taken ahead
        self._finished = anyio.Event()
        self.groups = 0
        self.events = 0

    async def call(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Runs a job on the connection, between two groups; to its end even if the caller goes.

        Args:
            work: one transaction; it is repeated if the server goes away.

        Raises:
            LogClosed: the log is closed.
            LogUnavailable: the server cannot be reached; ``OutcomeUnknown`` if the work had begun.
        """
        return cast(T, await self.queue.call(work))

    async def close(self) -> None:
        """Takes no further appends, and returns when those that wait are committed."""
        await self.queue.close()
        await self._finished.wait()

    # --- the task ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """The writer task; ends once the writer is closed and nothing waits."""
        group: list[Append] = []
        try:
            with anyio.CancelScope(shield=True):
                while not self.queue.closing or self.queue:
                    await self._bell.wait()
                    self._bell.clear()
                    while self._next or self.queue:
                        group, self._next = self._next or self.queue.take(_EVENTS), []
                        if group:
                            await self._write(group)
                        else:
                            await self._work()
                        group = []
        finally:
            self._end(group)
            if self._connection is not None:
                self._connection.terminate()
            self._finished.set()

    def _end(self, group: list[Append]) -> None:
        """Settles the appends that are left; there are some only after a forced cancellation."""
        for append in group:
            if not (append.settled or isinstance(append.outcome, Exception)):
                append.outcome = OutcomeUnknown(
                    f"{self._url}: its writer was cancelled while it committed; read the log to find "
                    "out whether this was written"
                )
        self.queue.hand_out(group)
        self.queue.put_back(self._next)  # none of it was sent
        self.queue.refuse_all()

    async def _write(self, group: list[Append]) -> None:
        began = time.perf_counter()
        records: list[Record] = []
        failure: Exception | None = None
        try:
            records = await self._commit(group)
        except Exception as error:  # noqa: BLE001 (for the callers that wait for the outcome)
            failure = await self._failure(error)
        seconds = time.perf_counter() - began
        if seconds > _SLOW:
            get_logger("log").warning(
                "a commit was slow",
                log=self._url,
                seconds=seconds,
                appends=len(group),
                waiting=len(self.queue),
            )
        if failure is not None:
            self._committer.reset()
            for append in group:  # each append is not in the log, or its fate is unknown
                append.outcome = copy.copy(failure)
        if records:
            self.groups += 1
            self.events += len(records)
        if self._goes_on:
            await self._begin()  # before the callers resume: the server need not wait for them
            self._settle(group, records)
        else:
            self._settle(group, records)
            if len(group) >= _BURST:
                await self._begin()  # while the callers prepare their next appends

    def _settle(self, group: Sequence[Append], records: Sequence[Record]) -> None:
        """Hands out the outcomes of a group, and publishes its records."""
        self.queue.hand_out(group)
        self._publish(records)

    @property
    def _goes_on(self) -> bool:
        """Whether another group follows."""
        return bool(self._next) or self.queue.begins_with_append

    def _take_ahead(self) -> None:
        """Decides the next group, if it is large enough to be one."""
        if not self._next and len(self.queue) >= _AHEAD:
            self._next = self.queue.take(_EVENTS)
            if self._next:
                self._committer.take_ahead(self._next)

    async def _begin(self) -> None:
        """Begins the next transaction, and ends it if no append is left for it."""
        if self._connection is None:
            return
        try:
            await self._committer.begin(self._connection)
            if not self._goes_on:  # no append came, or the waiting ones were cancelled meanwhile
                await self._committer.end(self._connection)
        except LOST as error:
            await self._lose(error)

    async def _commit(self, group: list[Append]) -> list[Record]:
        """Commits a group, and tries again as often as the server goes away.

        Raises:
            LogUnavailable: it stayed away; nothing was written.
            OutcomeUnknown: it stayed away after it was told to commit.
        """
        backoff = Backoff(0.05, longest=1.0)
        until = time.monotonic() + PATIENCE
        sent: Prepared | None = None
        while True:
            try:
                connection = await self._connected()
                if sent is not None:
                    there = await was_committed(connection, self._sql, sent)
                    if there is None:
                        raise ConnectionError("the server still ends the transaction")
                    if there:
                        return sent.records
                    sent = None
                    self._forget_outcomes(group)
                prepared = self._committer.prepare(connection, group)
                sent = await self._accepted(connection, group, prepared)
                if sent is None or not await self._accepted(
                    connection, group, self._finish(connection)
                ):
                    return await self._one_by_one(group)
            except LOST as error:
                await self._lose(error)
                if not is_lost(error):  # the server says why it did not commit
                    sent = None
                if sent is None:
                    self._forget_outcomes(group)
                if not is_lost(error) or time.monotonic() >= until:
                    raise self._given_up(error, sent) from error
            else:
                return sent.records
            if sent is None and not self._release(group):
                return []
            await backoff.wait()

    async def _finish(self, connection: Connection) -> bool:
        """Commits the prepared group and decides the next meanwhile; returns True."""
        self._loop.call_soon(self._take_ahead)
        await self._committer.commit(connection)
        return True

    async def _accepted(
        self, connection: Connection, group: list[Append], step: Awaitable[T]
    ) -> T | None:
        """The result of a step of a commit; None if the server refuses a value in the group."""
        try:
            return await step
        except _REFUSED as error:
            if is_lost(error):
                raise
            await self._roll_back(connection, group)
            if len(group) == 1:
                group[0].outcome = refused(group[0], error)
            return None
        except DuologError:
            await self._roll_back(connection, group)
            raise

    async def _roll_back(self, connection: Connection, group: Sequence[Append]) -> None:
        self._committer.reset()
        self._forget_outcomes(group)
        await connection.execute("ROLLBACK")

    async def _one_by_one(self, group: Sequence[Append]) -> list[Record]:
        """Commits the appends of a group that was refused, so that only the bad one fails."""
        if len(group) == 1:
            return []
        records: list[Record] = []
        for append in group:
            try:
                records += await self._commit([append])
            except Exception as error:  # noqa: BLE001 (for the caller that waits for the outcome)
                append.outcome = await self._failure(error)
        return records

    async def _failure(self, error: Exception) -> Exception:
        """The error that appends get.

        An unexpected error also drops the connection: the next group would otherwise run in the
        transaction that was left open.
        """
        if isinstance(error, DuologError):
            return error.with_traceback(None)
        await self._lose(error)
        return error

    def _forget_outcomes(self, group: Sequence[Append]) -> None:
        for append in group:
            append.outcome = None

    def _release(self, group: list[Append]) -> bool:
        """Releases appends that were cancelled meanwhile; returns whether others are left."""
        withdrawn = [append for append in group if append.withdrawn]
        group[:] = [append for append in group if not append.withdrawn]
        self.queue.hand_out(withdrawn)
        return bool(group)

    def _given_up(self, error: BaseException, sent: Prepared | None) -> LogUnavailable:
        if sent is not None:
            return OutcomeUnknown(
                f"{self._url}: the server went away while it committed ({error}); it is not known "
                "whether this was written: read the log once it is back, or repeat it with the same "
                "ids or expected version"
            )
        failure = translate(error, self._url, so="nothing was written")
        return failure if isinstance(failure, LogUnavailable) else LogUnavailable(str(failure))

    async def _connected(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            self._committer.lose()
            self._connection = await connect(self._settings)
            if self._sql.prepare:
                await self._connection.execute(self._sql.prepare)
        return self._connection

    async def _lose(self, error: BaseException) -> None:
        """Drops a connection on which something failed; the server rolls its transaction back."""
        self._committer.lose()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()
        get_logger("log").warning("the connection of a log was lost", log=self._url, why=str(error))

    async def _work(self) -> None:
        job = self.queue.take_job()
        if job is None:
            return
        outcome: object
        try:
            outcome = await self._run_job(job.work)
        except Exception as error:  # noqa: BLE001 (for the caller that waits for the outcome)
            outcome = error
        self._committer.reset()
        job.settle(outcome)
        self.queue.give_room()

    async def _run_job(self, work: _Work) -> object:
        """Runs a job on the connection, and again if the server goes away meanwhile.

        Raises:
            LogUnavailable: it stayed away; nothing was done.
            OutcomeUnknown: it stayed away after the work had begun.
        """
        backoff = Backoff(0.05, longest=1.0)
        until = time.monotonic() + PATIENCE
        begun = False
        while True:
            try:
                connection = await self._connected()
                begun = True
                return await work(connection)
            except LOST as error:
                await self._lose(error)
                lost = is_lost(error)
                if not lost or time.monotonic() >= until:
                    unknown = lost and begun
                    so = "it may be done, or not: do it again" if unknown else "nothing was done"
                    failure = translate(error, self._url, so=so)
                    raise (OutcomeUnknown(str(failure)) if unknown else failure) from error
            await backoff.wait()
