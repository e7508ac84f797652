"""Follows a log and tells OpenTelemetry of it, in a thread beside; never in the product's way."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol, Self, TypeAlias, final, runtime_checkable

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from ...engine.errors import (
    CheckpointConflict,
    CodecError,
    DuologError,
    LogClosed,
    LogUnavailable,
    SessionNotFound,
)
from ...engine.events import SessionOpened
from ...engine.log.contract import Advance, EventLog
from ...engine.logger import journal
from ...engine.records import Record
from .session_export import Telling
from .signals import Origin, Teller

if TYPE_CHECKING:
    from .sdk import Emitter

__all__ = ("ExportStatistics", "OtelExport", "Tellers")

Tellers: TypeAlias = Callable[[str, Origin | None], Sequence[Teller]]
"""Makes what folds a session, given its id and, of a fork, where it comes from."""

VERSION: Final = "1"
"""Of what is told; the log keeps a checkpoint per name and version."""

_BACKLOG: Final = 1024  # records taken from the log that were not told yet
_BATCH: Final = 256  # records that are told in one go
_KEEP: Final = 4096  # sessions whose state is kept at hand
_SAVE: Final = 5.0  # seconds between checkpoints
_RETRY: Final = 0.25  # seconds before the first new attempt where the log cannot be read
_LONGEST: Final = 30.0


@runtime_checkable
class _Settling(Protocol):
    """A log that can wait for what is on its way to it."""

    async def settle(self) -> None: ...


class ExportStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """How an export stands.

    Attributes:
        position: of the log, up to which all was told.
        lag: how many positions the log is ahead of that.
        told: records told since it was started.
        failed: what could not be told, and is not tried again.
        sessions: sessions at hand.
    """

    position: int
    lag: int
    told: int
    failed: int
    sessions: int


@final
class OtelExport:
    """Tells OpenTelemetry of a log as it grows; made by ``duolog.otel_export``.

    Enter it while the log is open; leaving it tells what the log holds by then, as far as the
    deadline allows, and notes how far it came.

    Args:
        log: the log.
        emitter: where it goes.
        tellers: what is told.
        session: only this session; None for all.
        name: under which the log keeps how far it came; None to keep nothing.
        after_position: where to begin if the log keeps nothing under that name.
        deadline: seconds for which leaving it goes on telling.
    """

    def __init__(
        self,
        log: EventLog,
        emitter: Emitter,
        tellers: Tellers,
        *,
        session: str | None,
        name: str | None,
        after_position: int,
        deadline: float,
    ) -> None:
        self._log = log
        self._emitter = emitter
        self._tellers = tellers
        self._session = session
        self._consumer = name if name is None or session is None else f"{name}/{session}"
        self._position = after_position
        self._deadline = deadline
        self._tellings: OrderedDict[str, Telling] = OrderedDict()
        self._tasks: TaskGroup | None = None
        self._saved = self._told = self._failed = 0
        self._saved_at = time.monotonic()
        self._last = ""
        self._over = False
        self._progress = anyio.Event()

    # --- entering and leaving ---------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Begins.

        Raises:
            LogClosed: the log is not open.
            LogError: the log cannot be read.
        """
        journal("otel")  # so that it is loaded before anything is wrong
        if self._consumer is not None:
            self._saved = await self._log.checkpoint(self._consumer, VERSION)
            self._position = self._saved or self._position
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._run, name=f"OpenTelemetry export of {self._log.url}")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._tasks is not None
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(self._deadline) as scope:
                if isinstance(self._log, _Settling):
                    await self._log.settle()
                await self.settle()
            if scope.cancelled_caught:
                journal("otel").warning(
                    "an export was left before all was told", lag=self.statistics().lag
                )
        self._tasks.cancel_scope.cancel()
        # The body's own exception is nothing to the task group, which would wrap it in a group.
        await self._tasks.__aexit__(None, None, None)

    async def settle(self) -> None:
        """Waits until all that the log holds now is told and has left, and is noted as told.

        Returns as well once the export has ended, because the log was closed.
        """
        position = self._log.statistics().position
        if self._session is not None:
            try:
                position = (await self._log.summary(self._session)).position
            except (LogClosed, SessionNotFound):
                return
        while not self._over and self._position < position:
            await self._progress.wait()
        if not self._over:
            await self._save()

    def statistics(self) -> ExportStatistics:
        """How it stands."""
        return ExportStatistics(
            position=self._position,
            lag=max(0, self._log.statistics().position - self._position),
            told=self._told,
            failed=self._failed,
            sessions=len(self._tellings),
        )

    # --- following --------------------------------------------------------------------------------

    async def _run(self) -> None:
        send, receive = anyio.create_memory_object_stream[Record](_BACKLOG)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._follow, send)
                await self._tell_all(receive)
                tasks.cancel_scope.cancel()
        except* LogClosed:
            pass
        except* Exception as error:  # noqa: BLE001  (the product goes on without)
            journal("otel").error(
                "an export has ended", error=repr(error.exceptions[0]), exc_info=error
            )
        finally:
            self._over = True
            self._progress.set()

    async def _follow(self, send: MemoryObjectSendStream[Record]) -> None:
        """Takes records from the log; until it is closed."""
        delay = _RETRY
        position = self._position
        with send:
            while True:
                try:
                    async with self._log.subscribe(
                        session=self._session, after_position=position
                    ) as records:
                        async for record in records:
                            await send.send(record)
                            position = record.position
                            delay = _RETRY
                except LogClosed:
                    return
                except LogUnavailable as error:
                    self._complain("the log cannot be read now; trying again", "", error)
                    await anyio.sleep(delay)
                    delay = min(2 * delay, _LONGEST)

    async def _tell_all(self, receive: MemoryObjectReceiveStream[Record]) -> None:
        """Tells what is taken, in batches; notes now and then how far it came."""
        with receive:
            while True:
                batch: list[Record] = []
                with anyio.move_on_after(_SAVE):
                    try:
                        batch.append(await receive.receive())
                        while len(batch) < _BATCH:
                            batch.append(receive.receive_nowait())
                    except anyio.EndOfStream:
                        if not batch:
                            return
                    except anyio.WouldBlock:
                        pass
                if batch:
                    await self._tell(batch)
                if time.monotonic() - self._saved_at >= _SAVE:
                    await self._save()

    async def _tell(self, batch: Sequence[Record]) -> None:
        jobs = [(await self._told_by(record), record) for record in batch]
        await anyio.to_thread.run_sync(_tell, jobs, abandon_on_cancel=True)
        self._told += len(batch)
        self._last = batch[-1].session
        self._position = batch[-1].position
        while len(self._tellings) > _KEEP:
            self._tellings.popitem(last=False)
        self._progress.set()
        self._progress = anyio.Event()

    async def _told_by(self, record: Record) -> Telling:
        """What tells the session of a record; made anew where it is not at hand."""
        session = record.session
        delay = _RETRY
        while session not in self._tellings:
            try:
                self._tellings[session] = await self._begin(record)
            except LogUnavailable as error:
                self._complain("the log cannot be read now; trying again", session, error)
                await anyio.sleep(delay)
                delay = min(2 * delay, _LONGEST)
        self._tellings.move_to_end(session)
        return self._tellings[session]

    async def _begin(self, record: Record) -> Telling:
        """What tells a session, told of all that the log holds of it before a record."""
        from .sdk import Emitting

        history: list[Record] = []
        if record.version > 1 or record.kind != "SessionOpened":
            async for earlier in self._log.read_all(session=record.session):
                if earlier.position >= record.position:
                    break
                history.append(earlier)
        first = history[0] if history else record
        origin, virtual = None, False
        try:
            opened = first.event
        except CodecError:  # it is complained of where it is folded
            opened = None
        if isinstance(opened, SessionOpened):
            virtual = opened.clock == "virtual"
            if opened.forked_from is not None:
                origin = await self._origin(opened.forked_from.session)
        emitting = Emitting(self._emitter, record.session, first.time, virtual=virtual)
        tellers = self._tellers(record.session, origin)
        return Telling(record.session, tellers, emitting, history, self._complain)

    async def _origin(self, session: str) -> Origin | None:
        async for record in self._log.read(session):
            return Origin(session, record.time)
        return None

    # --- how far it came --------------------------------------------------------------------------

    async def _save(self) -> None:
        """Has what was told leave, and notes how far that is. What is told after the last note is
        told again if the process is killed.
        """
        self._saved_at = time.monotonic()
        position, saved = self._position, self._saved
        if self._consumer is None or position <= saved or not self._last:
            return
        try:
            left = await anyio.to_thread.run_sync(
                self._emitter.flush, self._deadline, abandon_on_cancel=True
            )
            if not left:
                journal("otel").warning("what was told may not have left", position=position)
        except Exception as error:  # noqa: BLE001  (logged, and counted)
            self._complain("what was told could not leave", "", error)
        advance = Advance(
            consumer=self._consumer, version=VERSION, expected=saved, position=position
        )
        try:
            await self._log.append(self._last, (), checkpoint=advance)
            self._saved = position
        except CheckpointConflict as conflict:
            self._saved = conflict.actual
            self._complain("another export goes by the same name", "", conflict)
        except DuologError as error:
            self._complain("how far an export came could not be noted", "", error)

    def _complain(self, what: str, session: str, error: Exception) -> None:
        """Counts what went wrong, and says so: the first times, and then ever more rarely."""
        self._failed += 1
        if self._failed & (self._failed - 1) == 0:
            journal("otel").warning(
                what,
                session=session or self._session,
                failed=self._failed,
                error=f"{type(error).__name__}: {error}",
            )


def _tell(jobs: Sequence[tuple[Telling, Record]]) -> None:
    for telling, record in jobs:
        telling.tell(record)
