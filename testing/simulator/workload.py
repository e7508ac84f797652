"""The tasks of one process at work on a log: they do operations, and hold the log to its word."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, closing
from functools import partial
from random import Random
from typing import cast, final

from msgspec.structs import replace

from ...engine.errors import (
    CheckpointConflict,
    DuologError,
    DuplicateConflict,
    LogClosed,
    LogUnavailable,
    OutcomeUnknown,
    PluginFailed,
    SessionClosedError,
    SessionNotFound,
    VersionConflict,
)
from ...engine.events import (
    FeedbackGiven,
    MessageSent,
    Origin,
    Role,
    SessionClosed,
    SessionOpened,
)
from ...engine.log import memory
from ...engine.log.consumer import run_consumer
from ...engine.log.contract import Advance, EventLog, Store
from ...engine.log.memory import MemoryLog
from ...engine.records import TRACE, Draft, Record
from ...telemetry.recorder import Recorder
from ..tools import collect, message, raises, require
from .around import (
    check_addresses,
    check_closed,
    check_counts,
    check_gaps,
    check_output_files,
    check_restoring,
    check_rows,
    check_waiting,
)
from .drafts import drafts_of
from .followers import Followers
from .leasing import compete, lease
from .machine.processes import as_process, forked
from .model import CONSUMER, Attempt, Model
from .reading import check_derived, check_reading, check_refusals, derive, find_damage
from .recording import PREFIX, record, settle
from .relay import Relay
from .scenario import Operation

__all__ = ("OTHER", "Workload")

OTHER = 1
"""The number of the other process that works on the same file."""


@final
class Workload:
    """What one process does.

    Args:
        model: what must hold; outlives the process.
        failing: whether the disk has failed: errors that say so are right then.
        calm: whether nothing has even been slow.
        random: draws how long the tasks hesitate.
        shared: whether the log is a file, which other processes and forks of this one can have open.
        latest: seconds within which all that is committed is delivered.
        virtual: whether time is.
    """

    def __init__(
        self,
        model: Model,
        failing: Callable[[], bool],
        calm: Callable[[], bool],
        random: Random,
        *,
        shared: bool,
        latest: float = 5.0,
        virtual: bool = True,
    ) -> None:
        self._virtual = virtual
        self._calm = calm
        self._shared = shared
        self._model = model
        self._failing = failing
        self._random = random
        self._tasks: list[asyncio.Task[None]] = []
        self._cancelled: dict[object, tuple[EventLog, Attempt]] = {}
        self._other: EventLog | None = None
        self._recorders: list[Recorder] = []
        self.errors: list[BaseException] = []
        self._followers = Followers(failing, self.errors, lambda: model.forgotten, latest)
        self._special: dict[str, Callable[[EventLog, Operation], Coroutine[None, None, None]]] = {
            "repeat": self._repeat,
            "conflict": self._conflict,
            "inherit": self._inherit,
            "withdraw": self._withdraw,
            "relay": self._relay,
            "reader": model.readers.read,
            "lease": self._lease,
            "derive": self._derive,
            "wrong": self._wrong,
        }

    async def live(
        self, open_log: Callable[[], EventLog], operations: Sequence[Operation] | None
    ) -> None:
        """Opens a log, does operations, or without any the last things, checks it, and closes it.

        Operations of kind ``other`` go by another log, on the same file, as another process has it.
        """
        kinds = {each.kind for each in operations or ()}
        try:
            async with AsyncExitStack() as stack:
                log = await stack.enter_async_context(open_log())
                if any(self._by_another(each) for each in operations or ()):
                    with as_process(OTHER):
                        self._other = await stack.enter_async_context(open_log())
                if operations is None:
                    await self._last(log)
                else:
                    async with AsyncExitStack() as inner:
                        if "record" in kinds:
                            self._recorders = [await _recorder(inner, log)]
                            if self._other is not None:
                                with as_process(OTHER):
                                    self._recorders += [await _recorder(inner, self._other)]
                        await self._work(log, operations)
                    await settle(self._model.recorded)
                await self._check(log)
                begun = await _begun(log)
                late = await _late(log)
        except LogUnavailable:
            if not self._failing():
                raise
        else:
            if self._chance().random() < 0.3:
                await _check_end(log, begun)
            if late is not None:
                over = late.done()
                await asyncio.wait([late])
                failed = late.cancelled() or late.exception() is not None
                require(over or failed, "a log that was closed acknowledges nothing")
        if self.errors:
            raise self.errors[0]

    async def problems(self, log: EventLog) -> list[str]:
        """The problems of a log that was not opened yet."""
        async with log:
            store = _maintained(log)
            return [] if store is None else [str(each) for each in (await store.verify()).problems]

    async def find_damage(self, log: EventLog, what: str) -> None:
        """Checks that damage of a closed log is found."""
        if (store := _maintained(log)) is not None:
            await find_damage(store, what)

    async def _work(self, log: EventLog, operations: Sequence[Operation]) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._worker(log, [each for each in operations if each.worker == who]))
            for who in sorted({each.worker for each in operations})
        ]
        for task in self._tasks:
            await asyncio.wait([task])
        self._tasks = []
        for recorder in self._recorders:
            await recorder.aclose()  # what waits is written
        if self._followers.any:
            await self._followers.end(await self._last_positions(log))

    async def _worker(self, log: EventLog, operations: Sequence[Operation]) -> None:
        for operation in operations:
            try:
                for _ in range(self._random.randrange(4)):
                    await asyncio.sleep(0)
                with as_process(OTHER if self._by_another(operation) else 0):
                    await self._do(log, operation)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or not task.cancelling():
                    self.errors.append(AssertionError("a cancellation that nobody asked for"))
                    return
                while task.uncancel():
                    pass
                await self._settled(task)
            except (LogUnavailable, LogClosed) as error:
                # A subscription ends if the file cannot be opened to look for records of others.
                if not self._failing():
                    self.errors.append(error)
            except PluginFailed:
                continue
            except ValueError as error:
                if str(error) != "hook":
                    self.errors.append(error)
            except BaseException as error:  # noqa: BLE001 (it fails the run)
                self.errors.append(error)
                return

    async def _settled(self, task: asyncio.Task[None]) -> None:
        try:
            await self._settle(task)
        except asyncio.CancelledError:  # once more, while it was looked up
            while task.uncancel():
                pass

    def cancel(self, draw: int) -> bool:
        """Cancels one of the tasks that are at work; whether there is one."""
        tasks = [task for task in self._tasks if not task.done()]
        return bool(tasks) and tasks[draw % len(tasks)].cancel()

    # --- operations -------------------------------------------------------------------------------

    async def _do(self, log: EventLog, operation: Operation) -> None:
        session = f"s{operation.session}"
        kind = operation.kind
        if kind == "read":
            known = self._model.known()
            self._model.check_records(await collect(log.read_all()), known)
        elif kind == "verify":
            await self._verify(log)
        elif kind == "vacuum":
            if (store := _maintained(log)) is not None:
                await store.vacuum()
        elif kind == "forget":
            await self._forget(log, session)
        elif kind == "record":
            recorder = self._recorders[-1 if self._by_another(operation) else 0]
            await record(recorder, operation, self._model.recorded)
        elif kind == "fork":
            if self._shared:
                self._fork(log, session)
        elif kind in ("follow", "tap", "copy"):
            by_other = self._other if operation.draw & 1 << 20 else None
            self._follow(by_other or log, operation, own=by_other is None)
        elif (special := self._special.get(kind)) is not None:
            await special(log, operation)
        else:
            other = kind == "other" and self._other is not None
            await self._append(self._other or log if other else log, operation, session)

    async def _append(self, log: EventLog, operation: Operation, session: str) -> None:
        kind = operation.kind
        stream = "judge@1" if kind == "measure" else TRACE
        expected: int | None = None
        checkpoint: Advance | None = None
        if kind in ("expect", "stale"):
            expected = len(await collect(log.read(session)))
            expected += 1000 if kind == "stale" else 0
        elif kind == "advance":
            at = await log.checkpoint(CONSUMER, "1")
            checkpoint = Advance(
                consumer=CONSUMER,
                version="1",
                expected=at + (1000 if operation.draw & 7 == 0 else 0),
                position=at + operation.size,
            )
        attempt = Attempt(session, stream, drafts_of(operation))
        require(operation.number not in self._model.attempts, "each operation is done once")
        self._model.attempts[operation.number] = attempt
        await self._try(log, attempt, expected, checkpoint)
        require(kind != "stale" or attempt.fate != "acknowledged", "a stale append is refused")

    async def _repeat(self, log: EventLog, operation: Operation) -> None:
        earlier = [each for each in self._model.attempts.values() if each.drafts[0].id]
        if not earlier:
            return
        attempt = earlier[operation.draw % len(earlier)]
        if attempt.fate == "pending":
            return  # its worker is at it
        fate, records = attempt.fate, attempt.records
        checkpoint: Advance | None = None
        if operation.draw & 1 << 20:  # it moves as with the first append
            at = await log.checkpoint(CONSUMER, "1")
            stale = 1000 if operation.draw & 7 << 21 == 0 else 0
            # A repeated append is done if its checkpoint is there already. Another worker may bring
            # it to the next position meanwhile, so one that has to be refused leads elsewhere.
            checkpoint = Advance(
                consumer=CONSUMER, version="1", expected=at + stale, position=at + stale + 1
            )
            if self._is_pending(attempt):  # by now
                return
            fate, records = attempt.fate, attempt.records
        try:
            await self._try(log, attempt, None, checkpoint)
        finally:
            if fate == "acknowledged":
                again = attempt.records
                attempt.fate, attempt.records = fate, records
                same = [record.position for record in again] == [r.position for r in records]
                require(same, "an append that is repeated gives the original records")
            elif fate == "unknown" and attempt.fate == "refused":
                attempt.fate = fate

    @staticmethod
    def _is_pending(attempt: Attempt) -> bool:
        return attempt.fate == "pending"

    async def _conflict(self, log: EventLog, operation: Operation) -> None:
        """The ids of an append with other contents are refused, and change nothing."""
        model = self._model
        earlier = [
            each
            for each in model.attempts.values()
            if each.drafts[0].id
            and each.fate == "acknowledged"
            and each.session not in model.maybe_forgotten
        ]
        if not earlier:
            return
        attempt = earlier[operation.draw % len(earlier)]
        first, *rest = attempt.drafts
        role: Role = "agent" if first.role == "human" else "human"
        new = Draft(MessageSent(text="new"), "new", "human", 1.0, f"new {operation.number}")
        drafts = (
            [replace(first, event=MessageSent(text="another")), *rest],
            [replace(first, actor="another"), *rest],
            [replace(first, role=role), *rest],
            [replace(first, cause="trace/1"), *rest],
            [first, *rest, new],
            [new, first],
            [replace(first, event=FeedbackGiven(comment="another")), *rest],
            [first, *rest],
        )[operation.draw >> 8 & 7]
        stream = "elsewhere" if drafts == [first, *rest] else attempt.stream
        try:
            await log.append(attempt.session, drafts, stream=stream)
        except DuplicateConflict:
            return
        except SessionClosedError:
            closing = [each for each in drafts[:-1] if isinstance(each.event, SessionClosed)]
            require(bool(closing), "an id that comes again is looked for first")
            return
        forgotten = attempt.session in model.maybe_forgotten
        require(forgotten or model.lost, "an id that comes again with other contents is refused")

    async def _withdraw(self, log: EventLog, operation: Operation) -> None:
        """Appends to three sessions at once, and cancels the last append after some steps of the loop."""
        loop = asyncio.get_running_loop()
        tasks: list[asyncio.Task[None]] = []
        for at in range(3):
            number = 1000 * (at + 1) + operation.number
            own = replace(operation, number=number, size=1, session=at)
            tasks.append(loop.create_task(self._append(log, own, f"s{at}")))
        try:
            for _ in range(operation.draw % 8):
                await asyncio.sleep(0)
            tasks[-1].cancel()
            await asyncio.wait(tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            for task in tasks:
                await self._settle(task)
        for task in tasks:
            if not task.cancelled():
                task.result()

    async def _inherit(self, log: EventLog, operation: Operation) -> None:
        """Opens a fork of a session, which is forgotten with it."""
        model, origin = self._model, f"s{operation.session}"
        if origin in model.maybe_forgotten or not await collect(log.read(origin)):
            return
        tag = f"op{operation.number}"
        opened = SessionOpened(
            task=tag,
            instance="1",
            participants=(),
            clock="utc",
            forked_from=Origin(session=origin, version=1),
        )
        said = MessageSent(text=f"{tag} of the origin")
        drafts = [
            Draft(opened, f"{tag}.0", "environment", 1.0),
            Draft(said, f"{tag}.1", "human", 1.0),
        ]
        attempt = Attempt(f"f{operation.number}", TRACE, drafts)
        model.attempts[operation.number] = attempt
        model.forks.setdefault(origin, set()).add(attempt.session)
        if origin in model.maybe_forgotten:
            model.maybe_forgotten.add(attempt.session)
        await self._try(log, attempt, None, None)

    async def _relay(self, log: EventLog, operation: Operation) -> None:
        """Runs a consumer up to the log's current end."""
        try:
            await run_consumer(log, Relay(), upto=log.statistics().position, batch=3)
        except CheckpointConflict:
            return  # another one was faster

    def _follow(self, log: EventLog, operation: Operation, *, own: bool) -> None:
        if operation.kind == "follow":
            self._followers.follow(log, operation, own=own)
        elif operation.kind == "tap":
            self._followers.tap(log, operation)
        else:
            self._followers.copy(log, operation)

    async def _lease(self, log: EventLog, operation: Operation) -> None:
        competing = lease if self._virtual else compete
        await competing(log, self._other or log, operation, self._calm)

    async def _derive(self, log: EventLog, operation: Operation) -> None:
        before = set(self._model.maybe_forgotten)
        # Where another process holds the file for long, nothing is kept.
        await derive(
            log,
            operation,
            self._model.maybe_forgotten,
            lambda: self._other is None and self._calm() and not self._model.lost,
        )
        require(before <= self._model.maybe_forgotten, "what is forgotten stays so")

    @staticmethod
    async def _wrong(log: EventLog, _operation: Operation) -> None:
        await check_refusals(log)

    async def _try(
        self, log: EventLog, attempt: Attempt, expected: int | None, checkpoint: Advance | None
    ) -> None:
        model = self._model
        moves = None if checkpoint is None else checkpoint.position
        if moves is not None:
            model.moves[moves] += 1
        attempt.tries += 1
        refused = False
        attempt.fate = "pending"
        try:
            records = await log.append(
                attempt.session,
                attempt.drafts,
                stream=attempt.stream,
                expected_version=expected,
                checkpoint=checkpoint,
            )
        except OutcomeUnknown:
            attempt.fate = "unknown"
            raise
        except (
            VersionConflict,
            CheckpointConflict,
            SessionClosedError,
            DuplicateConflict,
        ) as error:
            self._check_refusal(error)
            refused = True
        except (PluginFailed, LogUnavailable, ValueError):
            attempt.fate = "refused"
            raise
        except asyncio.CancelledError:
            attempt.fate = "unknown"
            self._cancelled[asyncio.current_task()] = log, attempt
            raise
        if refused:
            attempt.fate = "refused"
            if moves is not None:
                model.moves[moves] -= 1
            return
        stale = checkpoint is not None and checkpoint.expected > 900
        require(not stale, "a checkpoint is compared before it moves")
        model.acknowledge(attempt, records)
        if moves is not None:
            model.checkpoint = max(model.checkpoint, moves)

    async def _settle(self, task: object) -> None:
        """Whether a cancelled append took place is settled when it returns: it is looked up now."""
        log, attempt = self._cancelled.pop(task, (None, None))
        if log is None or attempt is None or attempt.fate != "unknown":
            return
        tries = attempt.tries
        try:
            records = await collect(log.read(attempt.session, stream=attempt.stream))
        except LogUnavailable:
            return
        if attempt.tries != tries:
            return  # it was repeated meanwhile
        there = [record for record in records if record.actor in attempt.tags]
        if there and attempt.session not in self._model.maybe_forgotten:
            self._model.acknowledge(attempt, there)
        elif not there:
            attempt.fate = "refused"

    def _check_refusal(self, error: DuologError) -> None:
        if isinstance(error, (VersionConflict, CheckpointConflict)):
            require(error.expected != error.actual, "a conflict is one")
        elif isinstance(error, SessionClosedError):
            closing = any(
                isinstance(draft.event, SessionClosed)
                for attempt in self._model.attempts.values()
                for draft in attempt.drafts
            )
            forgotten = error.session in self._model.maybe_forgotten
            require(closing or forgotten, "a session is closed by somebody")

    async def _forget(self, log: EventLog, session: str) -> None:
        store = _maintained(log)
        if store is None:
            return
        model = self._model
        before = {
            attempt.session for attempt in model.attempts.values() if attempt.fate == "acknowledged"
        }
        forks = model.forks.get(session, set())
        model.maybe_forgotten |= {session, *forks}
        cache = _Cache()
        try:
            result = await store.forget(session, caches=[cache])
        except SessionNotFound:
            return
        require(set(cache.told) == set(result.sessions), f"a cache forgets too: {cache.told}")
        require(result.caches == (cache.name,), f"and that is said: {result.caches}")
        model.maybe_forgotten |= model.forks.get(session, set())
        model.forgotten |= {session, *(forks & before)}

    def _by_another(self, operation: Operation) -> bool:
        """Whether another process is to do it."""
        another = operation.kind == "record" and operation.draw & 6 == 6
        return self._shared and (operation.kind == "other" or another)

    def _fork(self, log: EventLog, session: str) -> None:
        """A log refuses all requests of a fork of this process, before it does anything."""
        begun = log.read(session)
        draft = Draft(MessageSent(text="fork"), "fork", "human", 1.0)
        calls: list[Callable[[], Coroutine[object, object, object]]] = [
            lambda: log.append(session, [draft]),
            lambda: collect(begun),
            lambda: collect(log.read(session)),
            lambda: collect(log.read_all()),
            lambda: log.checkpoint(CONSUMER, "1"),
            *(partial(recorder.session, f"{PREFIX}fork") for recorder in self._recorders),
        ]
        store = _maintained(log)
        if store is not None:
            calls += [store.verify, store.vacuum, partial(store.forget, session)]
            calls.append(partial(store.restore, []))
        with forked():
            for number, call in enumerate(calls):
                require(_refused(call), f"call {number} is not for a fork of the process")

    async def _verify(self, log: EventLog) -> None:
        store = _maintained(log)
        if store is None:
            return
        verification = await store.verify()
        if not (self._failing() or self._model.lost):
            require(not verification.problems, f"verify: {verification.problems[:1]}")

    # --- the whole --------------------------------------------------------------------------------

    def _chance(self) -> Random:
        """A copy of the generator: to draw from it changes nothing of the run."""
        chance = Random()
        chance.setstate(self._random.getstate())
        return chance

    async def _check_around(self, log: EventLog, records: Sequence[Record]) -> None:
        """What lies around an idle log."""
        chance = self._chance()
        draw = chance.randrange(1 << 20)
        if chance.random() < 0.4:
            await check_counts(log, records)
        if chance.random() < 0.2:
            await check_restoring(records, draw)
        if chance.random() < 0.2:
            await check_gaps(records, draw)
        if self._calm() and chance.random() < 0.2:
            try:
                await check_rows(log, draw)
            except AssertionError:
                if self._calm():  # else the disk failed in the middle of it
                    raise
            if self._virtual:
                await lease(log, log, Operation(-1, "lease", 0, 0, 1, draw), self._calm)
        if self._virtual and chance.random() < 0.1:
            await check_waiting(log, records)
        if chance.random() < 0.03:
            await check_output_files(log, records)
            check_addresses()

    async def _last_positions(self, log: EventLog) -> dict[str | None, int]:
        try:
            records = await collect(log.read_all())
        except LogUnavailable:
            if not self._failing():
                raise
            return {}
        return {record.session: record.position for record in records} | {None: len(records)}

    async def _check(self, log: EventLog) -> None:
        """Checks all promises while no operation is under way."""
        try:
            records = await self._model.check(log)
            self._followers.check(records)
            if not self._model.lost:
                await self._model.readers.check(log, records)
                settled = not self._model.maybe_forgotten - self._model.forgotten
                if settled and self._random.random() < 0.4:
                    await check_derived(log, self._model.forgotten, 4)
                    await check_reading(log, records, self._random.randrange(1000))
                if settled:
                    await self._check_around(log, records)
            await self._verify(log)
        except LogUnavailable:
            if not self._failing():
                raise

    async def _last(self, log: EventLog) -> None:
        """Whatever has happened: with a disk that works, the log works."""
        drafts = [Draft(MessageSent(text="the last"), f"last.{n}", "human", 1.0) for n in range(2)]
        attempt = self._model.attempts[-1] = Attempt("last", TRACE, drafts)
        await self._try(log, attempt, None, None)
        require(attempt.fate == "acknowledged", "in the end, an append is taken")


async def _begun(log: EventLog) -> AsyncIterator[Record] | None:
    """A read that is unfinished when the log is closed."""
    if not isinstance(log, MemoryLog) or log.statistics().position <= memory._BATCH:
        return None
    begun = log.read_all()
    await anext(begun)
    return begun


async def _late(log: EventLog) -> asyncio.Task[list[Record]] | None:
    """An append under way when a log in memory is closed; one to a file would be found later."""
    if not isinstance(log, MemoryLog):
        return None
    appending = log.append("late", [message("late")])
    late = asyncio.get_running_loop().create_task(appending)
    await asyncio.sleep(0)
    return late


async def _check_end(log: EventLog, begun: AsyncIterator[Record] | None) -> None:
    await check_closed(log)
    if begun is not None:
        await raises(LogClosed, collect(begun))


@final
class _Cache:
    """Holds nothing, and is told what to forget."""

    name = "cache"

    def __init__(self) -> None:
        self.told: list[str] = []

    async def forget(self, sessions: Sequence[str]) -> None:
        self.told += sessions


async def _recorder(stack: AsyncExitStack, log: EventLog) -> Recorder:
    return await stack.enter_async_context(Recorder(log, retry=0.05))


def _maintained(log: EventLog) -> Store | None:
    """The log with its maintenance, if it has any; third-party stores need not."""
    return cast(Store, log) if hasattr(log, "verify") and hasattr(log, "forget") else None


def _refused(call: Callable[[], Coroutine[object, object, object]]) -> bool:
    """Whether a call is refused before it waits for anything, or does."""
    try:
        made = call()
        with closing(made):
            made.send(None)
    except LogClosed:
        return True
    except StopIteration:
        pass
    return False
