"""The embedded log for synchronous code: the same verbs without ``await``, from any thread.

One background thread runs the log on a separate event loop. Recording hands an event over to it,
and waits for it only if you ask for that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from functools import wraps
from types import TracebackType
from typing import ParamSpec, Self, TypedDict, TypeVar, Unpack, final

from anyio import to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal

from ..engine.errors import InvalidInput, LogClosed
from ..engine.log.contract import SessionSummary
from ..engine.log.process import OwnProcess, keep_in_forks
from ..engine.plugins import PluginCall
from ..engine.records import Record, Redact
from ..engine.scorers.driver import Pace
from ..engine.scorers.protocol import Scorer
from ..scoring.index.erasure import Retention
from ..scoring.trajectory.options import Options
from ..scoring.trajectory.updates import AnyUpdate, StopAdvice, Update
from .live_updates import LiveUpdates, WatchStatistics, check_callbacks
from .log import Log, Where
from .log import open as open_embedded
from .queue import IntakeStatistics, OnFull, QueuedCommand, SessionQueue, Unwritten
from .receipt import Receipt
from .recorder import Recorder
from .session import About, Recording
from .spill import Spill

__all__ = ("LogOptions", "SyncLog", "SyncWatch", "open_sync")

P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U", bound=Update)

_PACE = Pace()


class LogOptions(TypedDict, total=False):
    """How a log is opened; see ``duolog.open``."""

    create: bool
    redact: Redact | None
    room: int
    on_full: OnFull
    durable: bool
    deadline: float
    spill: Spill | bool | None
    strict: bool
    linger: float
    retention: Retention | None
    utility: str | None
    idle_after: float | None


def open_sync(url: str, **options: Unpack[LogOptions]) -> SyncLog:
    """Makes a log at a URL for code without ``await``; enter it with ``with``.

    Open it in the process that uses it: a fork does not take the background thread along, and is
    refused with ``LogClosed``.

    Args:
        url: URL of the log, as for ``duolog.open``.
        options: as for ``duolog.open``.

    Raises:
        InvalidInput: a URL that names no store.
    """
    return SyncLog(open_embedded(url, **options), durable=options.get("durable", False))


@final
class SyncLog:
    """A log in a background thread; its methods may be called from any other thread.

    Args:
        log: the log to run; not entered yet.
        durable: whether recording waits until the event is in the log, by default.
    """

    def __init__(self, log: Log, *, durable: bool = False) -> None:
        self._log = log
        self._durable = durable
        self._portal: BlockingPortal | None = None
        self._exit = ExitStack()
        self._process = OwnProcess()

    def __enter__(self) -> Self:
        if self._portal is not None:
            raise LogClosed("a log is entered once; open another with open_sync")
        self._process = OwnProcess()
        with ExitStack() as entered:
            name = f"duolog {self._log.url}"
            portal = self._portal = entered.enter_context(start_blocking_portal(name=name))
            entered.enter_context(portal.wrap_async_context_manager(self._log))
            self._exit = entered.pop_all()
        keep_in_forks(self._exit)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Writes and measures what waits, as long as the log's deadline allows, and closes.

        For those who cannot use ``with``. Idempotent. Does nothing in a fork of the process.
        """
        if not self._process.forked:
            self._exit.close()

    # --- recording and watching -------------------------------------------------------------------

    def session(self, session: str, **about: Unpack[About]) -> Recording[Receipt]:
        """Opens a session to record in, or resumes one from the log; see ``Log.session``.

        Raises:
            InvalidInput: an empty id, two participants of one name, or an unknown option or label.
            CodecError: the log's record of the session is damaged.
            LogClosed: the log is closed.
        """
        queue = self._call(self._log.recorder.queue, session, about)
        return Recording(queue, self._put)

    def _put(
        self, queue: SessionQueue, entry: QueuedCommand, durable: bool | None = None
    ) -> Receipt:
        if not self._log.recorder.hand_over(queue, entry):
            return self._call(self._log.recorder.put, queue, entry, durable)
        if entry.stale or (self._durable if durable is None else durable):
            self.wait(entry.receipt)
        return entry.receipt

    def wait(self, receipt: Receipt) -> Record | None:
        """Waits until an event is in the log; raises as ``Receipt.written``."""
        return self._call(receipt.written)

    def watch(
        self,
        *,
        scorers: Sequence[Scorer] = (),
        session: str | None = None,
        options: Options | None = None,
        after_position: int | None = None,
        on_stop: Callable[[StopAdvice], None] | None = None,
        on_update: Callable[[AnyUpdate], None] | None = None,
        pace: Pace = _PACE,
        leases: bool | None = None,
        where: Where = "loop",
    ) -> SyncWatch:
        """Has scorers measure, and calls back; see ``Log.watch``.

        The callbacks run one at a time in a worker thread, so they may wait, and may record.
        """
        check_callbacks(on_stop, on_update)

        def start() -> LiveUpdates:
            return self._log.watch(
                scorers=scorers,
                session=session,
                options=options,
                after_position=after_position,
                on_stop=None if on_stop is None else _in_thread(on_stop),
                on_update=None if on_update is None else _in_thread(on_update),
                pace=pace,
                leases=leases,
                where=where,
            ).start()

        return SyncWatch(self._call_soon(start), self._call)

    # --- looking ----------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """URL of this log."""
        return self._log.url

    @property
    def recorder(self) -> Recorder:
        """The recorder that takes the events; ``statistics`` returns its state."""
        return self._log.recorder

    @property
    def unwritten(self) -> tuple[Unwritten, ...]:
        """Events that could not be written before the log was closed."""
        return self._log.unwritten

    def statistics(self) -> IntakeStatistics:
        """Counts of events in the intake: waiting, written, refused, dropped."""
        return self._log.recorder.statistics()

    def summary(self, session: str) -> SessionSummary:
        """One session's summary; see ``EventLog.summary``."""
        return self._call(self._log.summary, session)

    def read(self, session: str) -> list[Record]:
        """The trace of a session, as of now."""

        async def read() -> list[Record]:
            return [record async for record in self._log.read(session)]

        return self._call(read)

    def read_all(self, session: str) -> list[Record]:
        """The records of all streams of a session in order of position, as of now."""

        async def read() -> list[Record]:
            return [record async for record in self._log.read_all(session=session)]

        return self._call(read)

    def _call(self, call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs a coroutine function on the log's loop, and waits for it."""

        async def run() -> T:
            return await call(*args, **kwargs)

        portal = self._open()
        try:
            return portal.call(run)
        except RuntimeError as error:
            raise self._closed_or(error) from error

    def _call_soon(self, call: Callable[[], T]) -> T:
        async def run() -> T:
            return call()

        return self._call(run)

    def _open(self) -> BlockingPortal:
        self._process.check(self.url)
        if self._portal is None:
            raise LogClosed("open the log with 'with' before using it")
        return self._portal

    def _closed_or(self, error: RuntimeError) -> Exception:
        if "portal is not running" in str(error):
            return LogClosed(f"{self.url} is closed")
        if "event loop thread" in str(error):
            return InvalidInput(
                "the synchronous log was used from its own event loop, where nothing may wait; "
                "use the asynchronous one there"
            )
        return error


@final
class SyncWatch:
    """Scorers at work for a ``SyncLog``, until the log is closed or this is."""

    def __init__(
        self, updates: LiveUpdates, call: Callable[[Callable[[], Awaitable[None]]], None]
    ) -> None:
        self._updates = updates
        self._call = call

    def statistics(self) -> WatchStatistics:
        """Counts and positions."""
        return self._updates.statistics()

    def settle(self) -> None:
        """Waits until all that the log holds now is measured, and passed to the callbacks."""
        self._call(self._updates.settle)

    def close(self) -> None:
        """Ends it. Idempotent."""
        self._call(self._updates.aclose)


def _in_thread(callback: Callable[[U], None]) -> Callable[[U], Awaitable[None]]:
    def in_thread(update: U) -> None:
        with PluginCall("a callback"):  # not every exception passes from a thread to a task
            callback(update)

    @wraps(callback)
    async def call(update: U) -> None:
        await to_thread.run_sync(in_thread, update)

    return call
