"""A follower of the log: a subscription with a checkpoint, which outlasts failures of the log.

Everything that reads the log as it grows is built on it: scorers, exporters, live updates, displays
and consumers. It delivers each record after its start once, in order of position. The reader
reports which records it has processed, in any order. The follower's position lies before the first
unprocessed record, so a checkpoint never passes a record that is still to be processed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import NamedTuple, Self, TypeVar, final

import anyio
import msgspec

from ..errors import (
    CheckpointConflict,
    DuplicateConflict,
    InvalidInput,
    LogClosed,
    LogUnavailable,
    SessionNotFound,
)
from ..logger import get_logger
from ..records import TRACE, Draft, Record
from .backoff import Backoff
from .contract import Advance, EventLog, Subscription

__all__ = ("CheckpointKey", "Follower", "FollowerStatistics", "OnUnavailable", "Output")

Result = TypeVar("Result")

OnUnavailable = Callable[[LogUnavailable, float], None]
"""Called when the log cannot be read, with the seconds until the next attempt."""


class CheckpointKey(NamedTuple):
    """The key of a checkpoint in the log: the consumer, and its version."""

    consumer: str
    version: str


class Output(NamedTuple):
    """Drafts to append, and where."""

    session: str
    stream: str
    drafts: Sequence[Draft]


class FollowerStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """State of a follower.

    Attributes:
        position: the position of the log, up to which all records have been processed.
        taken: position of the last record that was delivered.
        lag: how many positions the log is ahead of ``taken``.
        checkpoint: position that the log keeps, as far as this follower knows.
        failures: attempts to read the log that failed.
    """

    position: int
    taken: int
    lag: int
    checkpoint: int
    failures: int


@final
class Follower:
    """Follows a log: catches up, then goes live, from a checkpoint or a position on.

    Enter it with ``async with`` and iterate over it, in one task. A record stays unprocessed until
    ``done`` is called with its position.

    Args:
        log: the log.
        session: only this one; None for all.
        key: under what the log keeps the checkpoint; None to keep none.
        after_position: where to begin if the log keeps no checkpoint.
        backoff: waits between attempts to read a log that is unavailable.
        on_unavailable: notified of each such failure; None to log it.

    Attributes:
        ended: whether nothing more will be delivered.
        head_at_start: position of the log when the follower began; 0 before.
    """

    def __init__(
        self,
        log: EventLog,
        *,
        session: str | None = None,
        key: CheckpointKey | None = None,
        after_position: int = 0,
        backoff: Backoff | None = None,
        on_unavailable: OnUnavailable | None = None,
    ) -> None:
        self._log = log
        self._session = session
        self._key = key
        self._backoff = backoff or Backoff()
        self._on_unavailable = on_unavailable or self._report
        self._subscription: Subscription | None = None
        self._begun = False
        self._taken = after_position
        self._checkpoint = 0
        self._returned: deque[Record] = deque()  # taken from the log, and not delivered
        self._latest = ""  # session of the record that was delivered last
        self._unprocessed: dict[int, None] = {}  # positions of delivered records, in order
        self._failures = 0
        self._failing = False
        self._settlers = 0
        self._progress = anyio.Event()
        self._committing = anyio.Lock()
        self.ended = False
        self.head_at_start = 0

    # --- delivery ---------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Reads the checkpoint. Idempotent; asking for the first record does it too.

        Raises:
            LogUnavailable: the log cannot be read now.
            LogClosed: the log is not open.
        """
        if self._begun:
            return
        head = self._log.statistics().position
        if self._key is not None:
            self._checkpoint = await self._log.checkpoint(*self._key)
            self._taken = self._checkpoint or self._taken
        self.head_at_start = head
        self._begun = True
        self._notify()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record:
        """The next record; while the log is unavailable, it tries again.

        Raises:
            LogClosed: the follower was closed, or its log.
        """
        if self._returned:
            return self._returned.popleft()
        while True:
            try:
                subscription = self._subscription or await self._subscribe()
                record = await subscription.__anext__()
            except LogUnavailable as error:
                await self._unsubscribe()
                await self._wait_after(error)
            except LogClosed:
                self._end()
                raise
            else:
                break
        self._reached()
        return self._delivered(record)

    def _delivered(self, record: Record) -> Record:
        self._taken = record.position
        self._latest = record.session
        self._unprocessed[record.position] = None
        return record

    async def take(self, most: int) -> list[Record]:
        """The next records: at least one, and what else is there without waiting.

        Args:
            most: how many at most.

        Raises:
            LogClosed: the follower was closed, or its log.
        """
        records = [await self.__anext__()]
        while self._returned and len(records) < most:
            records.append(self._returned.popleft())
        subscription = self._subscription
        if subscription is None or self._returned:
            return records
        ready = min(subscription.statistics().buffered, most - len(records))
        try:
            for _ in range(ready):
                records.append(self._delivered(await subscription.__anext__()))  # noqa: PERF401
        except LogUnavailable:
            pass  # the next call meets it too
        except BaseException:
            self._returned.extend(records)  # to be delivered by the next call
            raise
        return records

    async def retry(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Runs work that reads the log, and repeats it while the log is unavailable.

        Raises:
            LogClosed: the log is closed. And whatever else the work raises.
        """
        while True:
            try:
                result = await work()
            except LogUnavailable as error:
                await self._wait_after(error)
            else:
                self._reached()
                return result

    async def _subscribe(self) -> Subscription:
        if self.ended:
            raise LogClosed("the follower is closed, or its log is")
        await self.begin()
        subscription = self._log.subscribe(session=self._session, after_position=self._taken)
        await subscription.__aenter__()
        self._subscription = subscription
        return subscription

    async def _unsubscribe(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            await subscription.__aexit__(None, None, None)

    async def _wait_after(self, error: LogUnavailable) -> None:
        self._failures += 1
        self._failing = True
        seconds = self._backoff.next()
        self._on_unavailable(error, seconds)
        await anyio.sleep(seconds)

    def _reached(self) -> None:
        """The log was read."""
        self._backoff.reset()
        if self._failing:
            self._failing = False
            get_logger("log").warning("the log can be read again", session=self._session)

    def _report(self, error: LogUnavailable, seconds: float) -> None:
        get_logger("log").warning(
            "the log cannot be read now; trying again",
            follower=None if self._key is None else "@".join(self._key),
            session=self._session,
            seconds=seconds,
            error=str(error),
        )

    # --- progress ---------------------------------------------------------------------------------

    def done(self, position: int) -> None:
        """A record that was delivered has been processed."""
        self._unprocessed.pop(position, None)
        if self._settlers:
            self._notify()

    @property
    def taken(self) -> int:
        """Position of the last record that was delivered."""
        return self._taken

    @property
    def position(self) -> int:
        """Position of the log up to which all records have been processed."""
        for first in self._unprocessed:
            return first - 1
        return self._taken

    async def settle(self) -> None:
        """Waits until all that the log holds now has been processed, or the follower has ended."""
        try:
            position = self._log.statistics().position
            if self._session is not None:
                position = (await self._log.summary(self._session)).position
        except (LogClosed, SessionNotFound):
            return
        self._settlers += 1
        try:
            while not self.ended and (not self._begun or self.position < position):
                await self._progress.wait()
        finally:
            self._settlers -= 1

    @property
    def has_uncommitted(self) -> bool:
        """Whether records have been processed that lie behind the checkpoint it keeps."""
        return self._key is not None and bool(self._latest) and self.position > self._checkpoint

    async def commit(self, outputs: Sequence[Output] = (), *, upto: int | None = None) -> None:
        """Records output, and moves the checkpoint to ``position``, by compare-and-set.

        The last append of output moves the checkpoint in its own transaction. Output of one batch
        in several places takes several appends. A batch that was interrupted is delivered again, so
        each draft needs an id then, which keeps it from being recorded twice.

        Args:
            outputs: what to record, and where.
            upto: moves the checkpoint only to here; None for all that has been processed.

        Raises:
            CheckpointConflict: another follower of this key was faster; this one then knows that
                one's position.
            InvalidInput: output for several places without ids.
            LogError: the log cannot take it.
        """
        outputs = [output for output in outputs if output.drafts]
        if len(outputs) > 1 and not all(draft.id for out in outputs for draft in out.drafts):
            raise InvalidInput(
                f"there is output for {len(outputs)} places, which takes an id for each draft"
            )
        async with self._committing:
            advance = self._advance(upto)
            if advance is not None and not outputs:
                outputs = [Output(self._latest, TRACE, ())]
            for output in outputs:
                moved = advance if output is outputs[-1] else None
                try:
                    await self._put(output, moved)
                except CheckpointConflict as conflict:
                    self._checkpoint = conflict.actual
                    raise
            if advance is not None:
                self._checkpoint = advance.position

    async def _put(self, output: Output, checkpoint: Advance | None) -> None:
        """Appends output.

        If an interrupted attempt had other batches, the log may have a part of the output already.
        Then each draft is appended alone.
        """
        session, stream, drafts = output
        try:
            await self._log.append(session, drafts, stream=stream, checkpoint=checkpoint)
        except DuplicateConflict:
            if len(drafts) < 2 or not all(draft.id for draft in drafts):
                raise
            *others, last = drafts
            for draft in others:
                await self._log.append(session, [draft], stream=stream)
            await self._log.append(session, [last], stream=stream, checkpoint=checkpoint)

    def _advance(self, upto: int | None) -> Advance | None:
        position = self.position if upto is None else min(upto, self.position)
        if self._key is None or position <= self._checkpoint or not self._latest:
            return None
        consumer, version = self._key
        return Advance(
            consumer=consumer, version=version, expected=self._checkpoint, position=position
        )

    def statistics(self) -> FollowerStatistics:
        """Its current state."""
        return FollowerStatistics(
            position=self.position,
            taken=self._taken,
            lag=max(0, self._log.statistics().position - self._taken),
            checkpoint=self._checkpoint,
            failures=self._failures,
        )

    # --- the end ----------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stops delivery, and wakes the tasks that wait for it to settle. Idempotent."""
        self._end()
        await self._unsubscribe()

    def _end(self) -> None:
        self.ended = True
        self._notify()

    def _notify(self) -> None:
        self._progress.set()
        self._progress = anyio.Event()
