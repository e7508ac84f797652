"""Scoring a log while it is written: runs scorers, streams what follows, and advises stops."""

from __future__ import annotations

import inspect
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Protocol, Self, TypeAlias, final

import anyio
import msgspec

from ..engine.errors import DuologError, InvalidInput, LogAway, LogClosed, LogError
from ..engine.log.backoff import Backoff
from ..engine.log.contract import EventLog, Store
from ..engine.log.leases import Leases, Leasing
from ..engine.logger import get_logger
from ..engine.plugins import PluginCall, failure_of
from ..engine.records import TRACE, Draft
from ..engine.scorers.driver import Pace, ScorerPool, ScorerStatistics
from ..engine.scorers.protocol import Scorer, measurement_id, stream_of
from ..scoring.live import UpdateSubscription, watch
from ..scoring.stopping import STOPPER, stop_advised
from ..scoring.trajectory.options import Options
from ..scoring.trajectory.updates import AnyUpdate, StopAdvice, Update
from .deliveries import TERMS, StopDeliveries
from .scorer_process import ScorerProcess
from .scorer_thread import ScorerThread

__all__ = ("LiveUpdates", "OnStop", "OnUpdate", "Spawn", "WatchStatistics", "check_callbacks")

OnStop: TypeAlias = Callable[[StopAdvice], Awaitable[None] | None]
"""Called with advice to stop; may be async."""

OnUpdate: TypeAlias = Callable[[AnyUpdate], Awaitable[None] | None]
"""Called with every update; may be async."""


class Spawn(Protocol):
    """Starts something that ends with the log at the latest."""

    def __call__(self, run: Callable[[], Coroutine[object, object, None]], name: str, /) -> None:
        """Starts it.

        Raises:
            LogClosed: the log is not open.
        """
        ...


class WatchStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """State of a watch.

    Attributes:
        position: the position of the log, up to which its updates were taken.
        delivered: updates that were taken.
        stops: stop advice that was handed to ``on_stop`` here.
        failed: calls of ``on_stop`` and ``on_update`` that raised.
        scorers: state of each scorer.
    """

    position: int
    delivered: int
    stops: int
    failed: int
    scorers: tuple[ScorerStatistics, ...]


def check_callbacks(on_stop: object, on_update: object) -> None:
    """Checks that what is to be called with stop advice and updates can be called; None is fine.

    Raises:
        InvalidInput: one of them cannot.
    """
    for name, callback in (("on_stop", on_stop), ("on_update", on_update)):
        if callback is not None and not callable(callback):
            raise InvalidInput(f"{name} is a function, not {callback!r:.200}")


@final
class LiveUpdates:
    """Updates as they come, from scorers that run in the background; made by ``Log.watch``.

    Iterate over it: ``async for update in log.watch(...)``. It ends when the log is closed. If you
    leave the loop earlier, the scorers keep running until then; ``aclose``, or ``async with``, ends
    them. To use only the callbacks, run it in the background with ``start``.

    Attributes:
        ended: whether it has ended.
    """

    def __init__(
        self,
        log: EventLog,
        spawn: Spawn,
        ready: Callable[[], Awaitable[None]],
        scorers: Sequence[Scorer],
        *,
        session: str | None,
        options: Options | None,
        after_position: int | None,
        on_stop: OnStop | None,
        on_update: OnUpdate | None,
        pace: Pace,
        leases: Callable[[], Leases] | None = None,
        is_near: Callable[[str, int], bool] = lambda session, version: True,
        again: Callable[[], Store] | None = None,
        process: ScorerProcess | None = None,
    ) -> None:
        self._log = log
        self._leases = leases
        self._is_near = is_near
        self._again = again
        self._thread: ScorerThread | None = None
        self._process = process
        self._pace = pace
        self._measured_by = scorers
        self._deliveries: StopDeliveries | None = None
        self._from = 0  # position from which on updates are taken, if advice from before may be due
        self._waiting: deque[Update] = deque()
        self._spawn = spawn
        self._ready = ready
        self._session = session
        self._scorers = ScorerPool(log, scorers, session=session, pace=pace)
        self._options = options
        self._after_position = after_position
        self._updates: UpdateSubscription | None = None
        with suppress(LogAway):  # else it begins at the log's position once the log is back
            self._updates = self._watched()
        self._on_stop = on_stop
        self._on_update = on_update
        self._scope = anyio.CancelScope()
        self._begun = self._started = False
        self.ended = False
        self._held: Update | None = None  # taken from the log, and not delivered yet
        self._delivered = self._stops = self._failed = 0

    def _watched(self) -> UpdateSubscription:
        after = self._after_position
        if after is None:
            after = self._log.statistics().position
        return watch(self._log, session=self._session, options=self._options, after_position=after)

    # --- taking updates ---------------------------------------------------------------------------

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Update:
        updates = await self._begin()
        try:
            if self._held is None:
                self._held = await self._next(updates)
        except LogClosed:
            await self.aclose()
            raise StopAsyncIteration from None
        update = self._held
        if isinstance(update, StopAdvice) and self._decides:
            await self._advise(update)
        await self._call(self._on_update, update)
        self._held = None
        self._delivered += 1
        return update

    @property
    def _decides(self) -> bool:
        """Whether its advice is recorded as delivered here. A watch that only looks on delivers nothing:
        the record would keep the advice from the handler of another watch.
        """
        return self._leases is None and (self._on_stop is not None or bool(self._measured_by))

    async def _next(self, updates: UpdateSubscription) -> Update:
        while not self._waiting:
            step = await updates.step()
            record = step.record
            if self._process is not None and record.stream == TRACE:
                is_near = self._is_near(record.session, record.version)
                self._process.note(record.session, near=is_near)
            if self._deliveries is not None:
                self._deliveries.take(record, step.updates)
            if record.position > self._from:
                self._waiting.extend(step.updates)
        return self._waiting.popleft()

    async def __aenter__(self) -> Self:
        await self._begin()
        return self

    async def _begin(self) -> UpdateSubscription:
        """Makes the scorers begin, if they have not, once the log is there."""
        if self._updates is None:
            await self._ready()
            updates = self._watched()
            if self._updates is None:  # else another task was first
                self._updates = updates
        if not self._begun:
            self._begun = True
            if self._again is not None:
                self._thread = ScorerThread(self._again, self._pool_on)
            if self._leases is not None:
                self._updates = await self._divide(self._leases(), self._updates)
            await self._updates.__aenter__()
            self._spawn(self._measure, "scorers")
        return self._updates

    def _pool_on(self, log: EventLog) -> ScorerPool:
        """The scorers on another connection to the log."""
        divided = self._leases is not None and isinstance(log, Leasing)
        self._scorers = ScorerPool(
            log,
            self._measured_by,
            session=self._session,
            pace=self._pace,
            leases=log.leases() if divided and isinstance(log, Leasing) else None,
            terms=TERMS,
            is_near=self._is_near,
        )
        return self._scorers

    async def _divide(self, leases: Leases, updates: UpdateSubscription) -> UpdateSubscription:
        """Divides sessions and advice with the other processes that watch the log."""
        scorers = self._measured_by
        self._scorers = ScorerPool(
            self._log,
            scorers,
            pace=self._pace,
            leases=leases,
            terms=TERMS,
            is_near=self._is_near,
        )
        if self._on_stop is None:
            return updates
        self._deliveries = StopDeliveries(
            self._log, leases, self._hand_over, self._acknowledge, self._is_near
        )
        delivered = await self._deliveries.begin()
        if self._after_position is not None or not delivered or delivered >= updates.position:
            return updates
        self._from = updates.position  # advice from before may wait for a handler
        return watch(self._log, options=self._options, after_position=delivered)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends it, and its scorers. Idempotent."""
        self.ended = True
        self._scope.cancel()
        if self._begun and self._updates is not None:
            await self._updates.__aexit__(None, None, None)

    @property
    def is_awaited(self) -> bool:
        """Whether its updates are used: by a handler, or a caller that iterates."""
        handled = self._on_update is not None or self._on_stop is not None
        return not self.ended and (handled or (self._begun and not self._started))

    def start(self) -> Self:
        """Takes updates in the background until the log is closed, and calls back.

        Raises:
            InvalidInput: it was started before.
            LogClosed: the log is not open.
        """
        if self._started:
            raise InvalidInput("a watch is started once")
        self._started = True
        self._spawn(self.run, "watch")
        return self

    async def run(self) -> None:
        """Takes updates until the log is closed; logs errors and continues."""
        self._started = True
        backoff = Backoff()
        while True:
            try:
                async for _ in self:
                    backoff.reset()
            except DuologError as error:
                get_logger("telemetry").warning(
                    "a watch could not go on; trying again",
                    session=self._session,
                    error=str(error),
                )
                await backoff.wait()
            else:
                return

    # --- what goes with it ------------------------------------------------------------------------

    async def _measure(self) -> None:
        with self._scope:
            async with anyio.create_task_group() as tasks:
                if self._deliveries is not None:
                    tasks.start_soon(self._deliveries.run)
                await (self._process or self._thread or self._scorers).run()

    async def _advise(self, update: StopAdvice) -> None:
        """Delivers advice to stop, and records in the log that it was delivered."""
        await self._hand_over(update)
        try:
            await self._acknowledge(update)
        except LogError as error:
            get_logger("telemetry").warning(
                "an advice to stop was delivered, and could not be recorded",
                session=update.session,
                round=update.round,
                tau=update.tau,
                error=str(error),
            )

    async def _hand_over(self, update: StopAdvice) -> None:
        await self._call(self._on_stop, update)
        self._stops += 1

    async def _acknowledge(self, update: StopAdvice) -> None:
        """Records in the log that advice was delivered. Raises LogError."""
        advised = stop_advised(update)
        ident = measurement_id(STOPPER, f"round/{update.round}/tau/{update.tau}")
        draft = Draft(
            advised, STOPPER.name, "scorer", time.time(), ident, f"{TRACE}/{update.version}"
        )
        await self._log.append(update.session, [draft], stream=stream_of(STOPPER))

    async def _call(self, callback: Callable[..., object] | None, update: Update) -> None:
        """Calls back; what that raises stays here."""
        if callback is None:
            return
        name = getattr(callback, "__qualname__", repr(callback))
        try:
            with PluginCall(name):
                result = callback(update)
                if inspect.isawaitable(result):
                    await result
        except Exception as raised:  # noqa: BLE001  (logged, and counted)
            error = failure_of(raised)
            self._failed += 1
            get_logger("telemetry").error(
                "a callback failed",
                callback=name,
                session=update.session,
                error=f"{type(error).__name__}: {error}",
            )

    async def settle(self) -> None:
        """Waits until all that the log holds now is measured; and delivered, if it was started."""
        if self.ended or not (self._begun or self._started):
            return
        updates = await self._begin()
        apart = self._process or self._thread
        if apart is None:
            await self._scorers.settle()
        else:
            await apart.settle(self._log.statistics().position)
        if self._started:
            await updates.settle()
            if self._deliveries is not None:
                await self._deliveries.settle()

    def statistics(self) -> WatchStatistics:
        """Counts and positions."""
        return WatchStatistics(
            position=0 if self._updates is None else self._updates.position,
            delivered=self._delivered,
            stops=self._stops,
            failed=self._failed,
            scorers=self._process.scorers if self._process else self._scorers.statistics(),
        )
