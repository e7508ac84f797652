"""Stop advice in a fleet: every process sees it, and one hands it to its handler.

An advice is delivered under a lease on its session, and the ``StopAdvised`` that is recorded then
acknowledges it. The process that wrote the session last tries at once. The others wait a little, and try
if no acknowledgement has come by then: that process may have been killed.

Before a process calls its handler, it says so in the log, by a checkpoint that only one process can set. If
another process has set it, that one's handler may have been called: this one waits as long as that one may be
silent, and then delivers the advice as ``redelivered``.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, final

import anyio
import msgspec

from ..engine.errors import CheckpointConflict, LogClosed, LogError
from ..engine.events import StopAdvised
from ..engine.log.contract import Advance, EventLog
from ..engine.log.leases import LeaseHolder, Leases, LeaseTerms
from ..engine.logger import get_logger
from ..engine.records import Record
from ..engine.scorers.protocol import stream_of
from ..scoring.stopping import STOPPER
from ..scoring.trajectory.updates import StopAdvice, StopWithdrawn, Update

__all__ = ("CONSUMER", "TERMS", "StopDeliveries")

TERMS: Final = LeaseTerms(lasts=6.0, renewed=2.0, looked_at=1.0)
"""How long a process of a fleet may be silent before others take over its sessions."""

CONSUMER: Final = ("watch/stops", "1")
"""Under what the log keeps the position up to which all advice was delivered."""

_GRACE: Final = 2.0  # seconds in which the process that wrote a session last delivers
_AGAIN: Final = 1.0  # seconds between attempts
_SAVE: Final = 2.0  # seconds between checkpoints
_STREAM: Final = stream_of(STOPPER)


class _Key(NamedTuple):
    session: str
    round: int
    tau: int


class _Due:
    """An advice that is not acknowledged: when to try, whether the handler here has had it, and when it
    may be delivered again if another process's handler may have had it.
    """

    def __init__(self, advice: StopAdvice, at: float) -> None:
        self.advice = advice
        self.at = at
        self.handled = False
        self.again: float | None = None
        self.warned = False


@final
class StopDeliveries:
    """Delivers each advice of a log to the handler of one process, at least once.

    Args:
        log: where it is acknowledged.
        leases: the leases of the log.
        handle: the handler; what it raises is its own affair.
        acknowledge: records that it was delivered. Raises LogError.
        is_near: whether this process wrote a session last, up to a trace version.
        grace: seconds that the other processes wait.
        silent: seconds for which a process may live without acknowledging what it has handed over.
    """

    def __init__(
        self,
        log: EventLog,
        leases: Leases,
        handle: Callable[[StopAdvice], Awaitable[None]],
        acknowledge: Callable[[StopAdvice], Awaitable[None]],
        is_near: Callable[[str, int], bool],
        grace: float = _GRACE,
        silent: float = TERMS.lasts,
    ) -> None:
        self._log = log
        self._handle = handle
        self._acknowledge = acknowledge
        self._is_near = is_near
        self._grace = grace
        self._silent = silent
        self._holder = LeaseHolder(leases, TERMS)
        self._due: dict[_Key, _Due] = {}
        self._news = anyio.Event()
        self._settled = anyio.Event()  # one advice more
        self._taken = self._saved = 0
        self._latest = ""

    async def begin(self) -> int:
        """The position up to which all advice was delivered, by any process; 0 if none ever was.

        Raises:
            LogError: the log cannot be read.
        """
        self._saved = await self._log.checkpoint(*CONSUMER)
        return self._saved

    def take(self, record: Record, updates: Sequence[Update]) -> None:
        """Takes a record of the log, and the updates that follow from it."""
        self._taken, self._latest = record.position, record.session
        if record.kind == "StopAdvised" and record.stream == _STREAM:
            event = record.event
            if isinstance(event, StopAdvised):
                self._drop(_Key(record.session, event.round, event.tau))
        for update in updates:
            if isinstance(update, StopWithdrawn):
                self._drop(_Key(update.session, update.round, update.tau))
            elif isinstance(update, StopAdvice):
                wait = 0.0 if self._is_near(update.session, update.version) else self._grace
                key = _Key(update.session, update.round, update.tau)
                self._due[key] = _Due(update, time.monotonic() + wait)
                self._news.set()

    def _drop(self, key: _Key) -> None:
        if self._due.pop(key, None) is not None:
            self._settled.set()
            self._settled = anyio.Event()

    async def run(self) -> None:
        """Delivers until it is cancelled, or the log is closed."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._holder.keep)
            tasks.start_soon(self._save_often)
            try:
                while True:
                    self._news = anyio.Event()
                    await self._deliver()
                    pause = min((due.at for due in self._due.values()), default=float("inf"))
                    with anyio.move_on_after(max(0.0, pause - time.monotonic())):
                        await self._news.wait()
            except LogClosed:
                tasks.cancel_scope.cancel()

    async def _deliver(self) -> None:
        """Tries what is due."""
        now = time.monotonic()
        for key, due in [item for item in self._due.items() if item[1].at <= now]:
            due.at = now + _AGAIN
            try:
                await self._try(key, due)
            except LogClosed:
                raise
            except LogError as error:
                due.again = None  # no process could acknowledge it
                if not due.warned:
                    due.warned = True
                    get_logger("telemetry").warning(
                        "an advice to stop is not acknowledged yet; trying again",
                        session=key.session,
                        round=key.round,
                        tau=key.tau,
                        error=str(error),
                    )

    async def _try(self, key: _Key, due: _Due) -> None:
        if due.handled:  # others leave it to this process for as long as it lives
            await self._finish(key, due)
            return
        name = f"stop/{key.session}"
        if not await self._holder.claim(name, lambda: None):
            return  # another process is at it
        try:
            if await self._is_acknowledged(key):
                self._drop(key)
                return
            with anyio.CancelScope(shield=True):  # else the next handler might wait for nothing
                first = await self._announce(key, due)
            now = time.monotonic()
            if not first and due.again is None:
                due.again = now + self._silent
            if due.again is not None and now < due.again:
                return  # the process that handed it over may still acknowledge it
            advice = due.advice
            if not first:
                advice = msgspec.structs.replace(advice, redelivered=True)
            await self._handle(advice)
            due.handled = True
            await self._finish(key, due)
        finally:
            await self._holder.release(name)

    async def _announce(self, key: _Key, due: _Due) -> bool:
        """Says in the log that the handler is about to be called; whether no process did so before.

        Raises:
            LogError: the log cannot be written, so it could not acknowledge the advice either.
        """
        name, version = CONSUMER
        handed = Advance(
            consumer=f"{name}/{'/'.join(map(str, key))}",
            version=version,
            expected=0,
            position=due.advice.position,
        )
        try:
            await self._log.append(key.session, [], checkpoint=handed)
        except CheckpointConflict:
            return False
        return True

    async def _finish(self, key: _Key, due: _Due) -> None:
        """Acknowledges what the handler has had."""
        with anyio.CancelScope(shield=True):  # else a log that closes would hand it over again
            await self._acknowledge(due.advice)
            self._drop(key)

    async def _is_acknowledged(self, key: _Key) -> bool:
        """Whether the log holds the acknowledgement, which may not have come here yet."""
        async for record in self._log.read(key.session, stream=_STREAM):
            event = record.event
            if isinstance(event, StopAdvised) and (event.round, event.tau) == key[1:]:
                return True
        return False

    async def settle(self) -> None:
        """Waits until all advice that has come so far is acknowledged, by any process."""
        waiting = self._due.keys() | ()
        while waiting & self._due.keys():
            await self._settled.wait()

    async def _save_often(self) -> None:
        while True:
            await anyio.sleep(_SAVE)
            try:
                await self.save()
            except LogClosed:
                return
            except LogError as error:
                get_logger("telemetry").warning("a checkpoint was not saved", error=str(error))

    async def save(self) -> None:
        """Moves the checkpoint to where all advice before was delivered.

        Raises:
            LogError: the log cannot be written.
        """
        waiting = (due.advice.position - 1 for due in self._due.values())
        position = max(self._saved, min([self._taken, *waiting]))
        if position <= self._saved or not self._latest:
            return
        name, version = CONSUMER
        advance = Advance(consumer=name, version=version, expected=self._saved, position=position)
        try:
            await self._log.append(self._latest, [], checkpoint=advance)
            self._saved = position
        except CheckpointConflict as conflict:  # another process was faster
            self._saved = conflict.actual
