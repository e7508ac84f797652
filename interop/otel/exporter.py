"""Follows a log and exports it to OpenTelemetry in a separate thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, Protocol, Self, TypeAlias, final, runtime_checkable

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup

from ...engine.errors import (
    CheckpointConflict,
    CodecError,
    DuologError,
    LogClosed,
    LogUnavailable,
)
from ...engine.events import SessionOpened
from ...engine.log.backoff import FIRST, Backoff
from ...engine.log.contract import EventLog
from ...engine.log.follower import CheckpointKey, Follower
from ...engine.log.session_states import SessionStates, read_before
from ...engine.logger import get_logger
from ...engine.plugins import PluginCall, failure_of
from ...engine.records import Record
from .session_export import EmitsSessions, SessionExporter
from .signals import SignalFold, TraceOrigin

__all__ = ("ExportStatistics", "MakeFolds", "OtelExport")

MakeFolds: TypeAlias = Callable[[str, TraceOrigin | None], Sequence[SignalFold]]
"""Makes the folds of a session, given its id and, for a fork, its origin."""

VERSION: Final = "1"
"""Version of the export; the log keeps a checkpoint per name and version."""

_BATCH: Final = 256  # records that are exported in one go
_KEEP: Final = 4096  # sessions whose state is cached
_SAVE: Final = 5.0  # seconds between checkpoints


@runtime_checkable
class _Settling(Protocol):
    """A log that can wait for what is on its way to it."""

    async def settle(self) -> None: ...


class ExportStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an export.

    Attributes:
        position: the position of the log, up to which all was exported.
        lag: how many positions the log is ahead of that.
        exported: records exported since it was started.
        failed: failures; failed records are not exported again.
        sessions: cached sessions.
    """

    position: int
    lag: int
    exported: int
    failed: int
    sessions: int


@final
class OtelExport:
    """Exports a log to OpenTelemetry as it grows; made by ``duolog.otel_export``.

    Enter it while the log is open; leaving it exports what the log holds by then, as far as the
    deadline allows, and saves the checkpoint.

    Args:
        log: the log.
        emitter: sends the signals.
        folds: makes the folds of a session, which define the signals.
        session: only this session; None for all.
        name: under which the log keeps the checkpoint; None to keep none.
        after_position: position to begin after if the log keeps no checkpoint under that name.
        deadline: seconds for which leaving it continues to export.
        retry: seconds before the first new attempt if the log cannot be read.
    """

    def __init__(
        self,
        log: EventLog,
        emitter: EmitsSessions,
        folds: MakeFolds,
        *,
        session: str | None,
        name: str | None,
        after_position: int,
        deadline: float,
        retry: float = FIRST,
    ) -> None:
        key = None
        if name is not None:
            key = CheckpointKey(name if session is None else f"{name}/{session}", VERSION)
        self._log = log
        self._emitter = emitter
        self._folds = folds
        self._session = session
        self._deadline = deadline
        self._follower = Follower(
            log,
            session=session,
            key=key,
            after_position=after_position,
            backoff=Backoff(retry),
            on_unavailable=self._report_unavailable,
        )
        self._sessions: SessionStates[SessionExporter] = SessionStates(_KEEP)
        self._tasks: TaskGroup | None = None
        self._exported = self._failed = 0

    # --- entering and leaving ---------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Begins.

        Raises:
            LogClosed: the log is not open.
            LogError: the log cannot be read.
        """
        get_logger("otel")  # so that it is loaded before anything is wrong
        await self._follower.begin()
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
                get_logger("otel").warning(
                    "an export was left before all was exported", lag=self.statistics().lag
                )
        self._tasks.cancel_scope.cancel()
        # The body's own exception is nothing to the task group, which would wrap it in a group.
        await self._tasks.__aexit__(None, None, None)

    async def settle(self) -> None:
        """Waits until all that the log holds now is exported and flushed, and the checkpoint saved.

        Returns as well once the export has ended, because the log was closed.
        """
        await self._follower.settle()
        if not self._follower.ended:
            await self._save()

    def statistics(self) -> ExportStatistics:
        """The state of the export."""
        position = self._follower.position
        return ExportStatistics(
            position=position,
            lag=max(0, self._log.statistics().position - position),
            exported=self._exported,
            failed=self._failed,
            sessions=len(self._sessions),
        )

    # --- following --------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._save_regularly)
                while True:
                    await self._export(await self._follower.take(_BATCH))
        except* LogClosed:
            pass
        except* Exception as error:  # noqa: BLE001  (the product continues without it)
            get_logger("otel").error(
                "an export has ended", error=repr(error.exceptions[0]), exc_info=error
            )
        finally:
            await self._follower.aclose()

    async def _save_regularly(self) -> None:
        while True:
            await anyio.sleep(_SAVE)
            await self._save()

    async def _export(self, batch: Sequence[Record]) -> None:
        jobs = [(await self._exporter_of(record), record) for record in batch]
        await anyio.to_thread.run_sync(_export, jobs, abandon_on_cancel=True)
        self._exported += len(batch)
        for record in batch:
            self._follower.done(record.position)

    async def _exporter_of(self, record: Record) -> SessionExporter:
        """The exporter of a record's session; made again if it is not cached."""
        session = record.session
        exporter = self._sessions.get(session)
        if exporter is None:
            exporter = await self._follower.retry(lambda: self._begin(record))
        self._sessions.keep(session, exporter)
        return exporter

    async def _begin(self, record: Record) -> SessionExporter:
        """Makes the exporter of a session from all its earlier records in the log."""
        history = [earlier async for earlier in read_before(self._log, record)]
        first = history[0] if history else record
        origin, virtual = None, False
        try:
            opened = first.event
        except CodecError:  # the fold reports it
            opened = None
        if isinstance(opened, SessionOpened):
            virtual = opened.clock == "virtual"
            if opened.forked_from is not None:
                origin = await self._origin(opened.forked_from.session)
        with PluginCall("OpenTelemetry"):
            emitter = self._emitter.session(record.session, first.time, virtual=virtual)
            folds = self._folds(record.session, origin)
        return SessionExporter(record.session, folds, emitter, history, self._report)

    async def _origin(self, session: str) -> TraceOrigin | None:
        async for record in self._log.read(session):
            return TraceOrigin(session, record.time)
        return None

    # --- the checkpoint ---------------------------------------------------------------------------

    async def _save(self) -> None:
        """Flushes the exported signals, and moves the checkpoint there. If the process is killed,
        later signals are exported again.
        """
        position = self._follower.position
        if not self._follower.has_uncommitted:
            return
        try:
            flushed = await anyio.to_thread.run_sync(self._flush, abandon_on_cancel=True)
            if not flushed:
                get_logger("otel").warning("what was exported may not have left", position=position)
        except Exception as error:  # noqa: BLE001  (logged, and counted)
            self._report("what was exported could not be flushed", "", failure_of(error))
        try:
            await self._follower.commit(upto=position)
        except CheckpointConflict as conflict:
            self._report("another export has the same name", "", conflict)
        except DuologError as error:
            self._report("the checkpoint of an export could not be saved", "", error)

    def _flush(self) -> bool:
        with PluginCall("OpenTelemetry"):  # not every exception passes from a thread to a task
            return self._emitter.flush(self._deadline)

    def _report_unavailable(self, error: LogUnavailable, seconds: float) -> None:
        self._report("the log cannot be read now; trying again", "", error)

    def _report(self, what: str, session: str, error: BaseException) -> None:
        """Counts what went wrong, and logs it: the first times, and then ever more rarely."""
        self._failed += 1
        if self._failed & (self._failed - 1) == 0:
            get_logger("otel").warning(
                what,
                session=session or self._session,
                failed=self._failed,
                error=f"{type(error).__name__}: {error}",
            )


def _export(jobs: Sequence[tuple[SessionExporter, Record]]) -> None:
    for exporter, record in jobs:
        exporter.export(record)
