"""The log as a product embeds it: a store, a recorder in front of it, and scorers that watch it."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import (
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
    Unpack,
    cast,
    final,
    get_args,
    overload,
)

import anyio
from anyio.abc import TaskGroup

from ..engine.errors import DuologError, InvalidInput, LogAway, LogClosed, NewerLog
from ..engine.log.append import named
from ..engine.log.backoff import Backoff
from ..engine.log.contract import Cache, ForgetResult, Store
from ..engine.log.leases import Leases, Leasing
from ..engine.log.open import open_log
from ..engine.log.process import OwnProcess
from ..engine.logger import get_logger
from ..engine.records import Redact
from ..engine.redacting import redact_secrets
from ..engine.scorers.driver import Pace
from ..engine.scorers.protocol import Scorer
from ..scoring.index.erasure import Retention, keep_to
from ..scoring.trajectory.options import Options
from .idle import close_idle
from .live_updates import LiveUpdates, OnStop, OnUpdate, check_callbacks
from .queue import OnFull, Unwritten
from .receipt import Awaited
from .recorder import DEADLINE, LINGER, ROOM, Recorder
from .scorer_process import ScorerProcess
from .session import About, Recording
from .spill import Spill, SpillFiles, is_on_a_server, tallies_near
from .tally import TallyFiles

__all__ = (
    "HasStore",
    "Log",
    "StoreMethod",
    "Where",
    "open",
)


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class HasStore(Protocol):
    """Something in front of a store."""

    @property
    def _store(self) -> Store: ...


@final
class StoreMethod(Generic[Parameters, Result]):
    """A method that passes its call on to the store; signature and documentation are the store's.

    Args:
        method: the method, as the protocol ``Store`` declares it.
    """

    def __init__(self, method: Callable[Concatenate[Store, Parameters], Result]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __set_name__(self, owner: type[HasStore], name: str) -> None:
        self._name = name

    @overload
    def __get__(
        self, log: None, owner: type[HasStore], /
    ) -> Callable[Concatenate[Store, Parameters], Result]: ...

    @overload
    def __get__(self, log: HasStore, owner: type[HasStore], /) -> Callable[Parameters, Result]: ...

    def __get__(self, log: HasStore | None, owner: type[HasStore], /) -> Callable[..., Result]:
        """The store's own method, bound; of the class, the declaration."""
        if log is None:
            return self._method
        return cast(Callable[Parameters, Result], getattr(log._store, self._name))


Where: TypeAlias = Literal["loop", "thread", "process", "elsewhere"]
"""Where scorers run that watch a log: this event loop, a thread, a separate process, or another program."""

_PACE = Pace()
_SWEEP = (0.05, 3600.0)  # seconds between looks for idle sessions, at least and at most
_OPENING = 2.0  # seconds for which the opening of a log waits for its server
_POLL = 0.002  # seconds between looks whether all is written


def open(
    url: str,
    *,
    create: bool = True,
    redact: Redact | None = redact_secrets,
    room: int = ROOM,
    on_full: OnFull = "drop",
    durable: bool = False,
    deadline: float = DEADLINE,
    spill: Spill | bool | None = None,
    strict: bool = False,
    linger: float = LINGER,
    retention: Retention | None = None,
    utility: str | None = None,
    idle_after: float | None = None,
) -> Log:
    """Makes a log at a URL, to record in and to read; enter it with ``async with``.

    ``memory://`` is a log that exists only while it is open. ``sqlite:///path`` is a file, which
    several processes may share; see ``duolog.engine.log.open.open_log`` for its options.

    For example::

        async with duolog.open("sqlite:///telemetry.db") as log:
            session = await log.session("conversation-42", task="support", agent="v7")
            await session.human.says("My order has not arrived.")
            await session.agent.says("We will send it again.")
            await session.close()

    Args:
        url: URL of the log.
        create: create the log if there is none; otherwise entering it raises ``LogNotFound``.
        redact: removes secrets from each draft before it is written; None to remove nothing. The default
            removes keys and tokens of documented forms.
        room: how many events may wait to be written, of all sessions together.
        on_full: what to do with an event if the queue is full: ``drop`` drops it, counts it and
            logs a warning; ``block`` makes its caller wait until there is room.
        durable: whether a verb waits until its event is in the log, unless the call says otherwise.
        deadline: seconds for which a closing log keeps writing and measuring.
        spill: where events wait on the local disk while the log is away, see ``duolog.Spill``. By
            default, events for a log on a server wait in files, and others wait in memory. ``True``
            and ``False`` turn the files on or off for any log.
        strict: entering a log that is away fails, and opening a session waits for it. By default
            both succeed, and the events are written when the log is back.
        linger: seconds, from 0 to 0.05, for which events are gathered into one commit. The commit
            starts at once if a caller waits for one of them (``durable``, a receipt, ``flush``).
            There is no linger while a watch with a handler, or one that is iterated, takes updates.
            If the process dies, gathered events are lost, as are others not yet written.
        retention: how long sessions are kept; older ones are erased while the log is open. None to
            keep them.
        utility: name of the scorer whose utility counts, e.g. ``retention``, for sessions that are
            opened here without one. Their openings record it, so every report uses it.
        idle_after: seconds without an event after which an open session of this log is closed as
            ``ended``, even if another process recorded it. If it is opened again, a new session
            continues it, with ``.2`` behind its id and ``config["continues"]``. None to close none.

    Raises:
        InvalidInput: the URL names no store, or a setting has the wrong type; or, on entering, ``room``
            is below 1 or ``on_full`` is unknown.
        LogNotFound: on entering, there is no log and ``create`` is false.
        LogUnavailable: on entering, the log cannot be opened, and waiting would not help: a wrong
            password, an unknown host; or it is away (``LogAway``) and ``strict``.
        NewerLog: on entering, a newer version of Duolog wrote the log.
    """
    numbers = {"room": room, "deadline": deadline, "linger": linger, "idle_after": idle_after}
    _check_settings(numbers, spill=spill, retention=retention)
    store = open_log(url, create=create, redact=redact)
    if spill is None:
        spill = is_on_a_server(url)
    files = None
    if spill:
        files = SpillFiles(spill if isinstance(spill, Spill) else Spill(), store.url, redact)
    return Log(
        store,
        room=room,
        on_full=on_full,
        durable=durable,
        deadline=deadline,
        spill=files,
        strict=strict,
        linger=linger,
        retention=retention,
        utility=utility,
        idle_after=idle_after,
        tallies=tallies_near(store.url, redact),
        again=None if store.url.startswith("memory:") else partial(open_log, url, redact=redact),
    )


def _check_settings(numbers: Mapping[str, object], *, spill: object, retention: object) -> None:
    """Refuses settings of the wrong type, which would fail later, or mean something else."""
    for name, value in numbers.items():
        if not isinstance(value, int | float | None) or isinstance(value, bool):
            raise InvalidInput(f"{name} is a number, not {value!r}")
    if not isinstance(spill, Spill | bool | None):
        raise InvalidInput(
            f"spill is True, False or a duolog.Spill, such as Spill(directory={spill!r}), not {spill!r}"
        )
    if not isinstance(retention, Retention | None):
        raise InvalidInput(
            f"retention is a duolog.Retention, such as Retention(age=90 * 86_400), not {retention!r}"
        )


@final
class Log:
    """A store of events with a recorder and scorers; itself a ``Store``.

    Appending, reading, subscribing, forgetting and verifying are the store's own methods.
    ``statistics`` is about the store; ``recorder.statistics()`` is about events that wait to be
    written to it. Enter and leave a log in the same task.

    Args:
        store: where events are kept; opened and closed along with this.
        room: see ``open``.
        on_full: see ``open``.
        durable: see ``open``.
        deadline: see ``open``.
        utility: see ``open``.
        retry: seconds before the first new attempt if the store cannot be written now.
        spill: files for events that wait while the store is away; None for memory alone.
        strict: see ``open``.
        linger: see ``open``.
        retention: see ``open``.
        idle_after: see ``open``.
        again: opens the store once more, for scorers in a thread; None if it cannot be.
        tallies: where events that wait in memory alone are counted, see ``Recorder``.

    Attributes:
        recorder: opens sessions to be recorded, and returns the state of its intake.
        unwritten: events that could not be written before the log was closed.
    """

    def __init__(
        self,
        store: Store,
        *,
        room: int = ROOM,
        on_full: OnFull = "drop",
        durable: bool = False,
        deadline: float = DEADLINE,
        utility: str | None = None,
        retry: float = 0.25,
        spill: SpillFiles | None = None,
        strict: bool = False,
        linger: float = LINGER,
        retention: Retention | None = None,
        idle_after: float | None = None,
        again: Callable[[], Store] | None = None,
        tallies: TallyFiles | None = None,
    ) -> None:
        self._again = again
        self._tallies = tallies
        if retention is not None:
            retention.query()  # to refuse it at once
        self._retention = retention
        if idle_after is not None and not idle_after > 0:
            raise InvalidInput(f"idle_after is a number of seconds above 0, not {idle_after!r}")
        self._held = store
        self._idle_after = idle_after
        self._deadline = deadline
        self._retry = retry
        self._spill = spill
        self._strict = strict
        self._away: DuologError | None = None  # why the store is not open yet
        self._there = anyio.Event()
        self.recorder = Recorder(
            self,
            room=room,
            on_full=on_full,
            durable=durable,
            deadline=deadline,
            utility=utility,
            retry=retry,
            spill=spill,
            strict=strict,
            linger=linger,
            hurried=lambda: any(updates.is_awaited for updates in self._watches),
            successors=idle_after is not None,
            tallies=tallies,
        )
        self.unwritten: tuple[Unwritten, ...] = ()
        self._watches: list[LiveUpdates] = []
        self._tasks: TaskGroup | None = None
        self._running: set[anyio.CancelScope] = set()
        self._exit = AsyncExitStack()
        self._closing = anyio.Lock()
        self._process = OwnProcess()

    # --- recording and watching -------------------------------------------------------------------

    async def session(self, session: str, **about: Unpack[About]) -> Recording[Awaited]:
        """Opens a session to record in, or continues one that the log holds.

        The session's description is recorded when it is first opened, and does not change later.

        For example::

            session = await log.session("conversation-42", task="support", labels={"country": "NZ"})
            await session.human.says("Where is my parcel?")
            await session.agent.submits("It will come tomorrow.")
            await session.human.rates(5)

        Args:
            session: session id, of the caller's choice, unique in the log.
            about: what the session is about: task, agent, labels and so on; all of it is in
                ``duolog.telemetry.session.About``.

        Returns:
            The session. Its verbs (``says``, ``submits``, ``edits``, ``rates`` and so on) return at
            once; pass ``durable=True`` to wait until the event is in the log.

        Raises:
            InvalidInput: an empty id, two participants of one name, or an unknown option or label.
            CodecError: the log's record of the session is damaged.
            LogClosed: the log is closed.
        """
        return await self.recorder.session(session, **about)

    def watch(
        self,
        *,
        scorers: Sequence[Scorer] = (),
        session: str | None = None,
        options: Options | None = None,
        after_position: int | None = None,
        on_stop: OnStop | None = None,
        on_update: OnUpdate | None = None,
        pace: Pace = _PACE,
        leases: bool | None = None,
        where: Where = "loop",
    ) -> LiveUpdates:
        """Scores sessions while they run: updates of utility, effort, ratings, stages and stops.

        Each scorer resumes where it last ended on this log, or starts at the log's beginning. It
        writes its measurements into a separate stream. The updates follow from the records, in the
        log's order. A ``StopAdvice`` that is delivered is recorded (``StopAdvised``, not enforced).

        Args:
            scorers: scorers to run, in addition to the measurements already in the log.
            session: only this one; None for all.
            options: how to score.
            after_position: only updates caused by records after this position; None for those from
                now on.
            on_stop: called with each stop advice.
            on_update: called with each update.
            pace: limits for each scorer.
            leases: whether several processes that watch this log divide the sessions. Then one
                process measures each session, and each advice goes to ``on_stop`` of one of them.
                If a process dies, the others take over within seconds. The default is True for a
                log on a server, and False for others. A watch of one session never divides it.
            where: where the scorers run. ``loop``: in this event loop. ``thread``: in a thread with
                its own event loop and connection to the log. ``process``: in a process that this one
                starts, and that ends with it; the scorers are sent there as pickles.
                ``elsewhere``: in another program (``duolog score LOG --follow``), whose
                measurements this watch reads.

        Raises:
            InvalidInput: something that is not a scorer or not a function, two scorers of one name and
                version, ``leases`` for a log without them,
                ``thread`` or ``process`` for a log in memory, or a scorer that cannot be sent to
                another process.
            LogClosed: the log is not open.
        """
        if where not in get_args(Where):
            raise InvalidInput(
                f"scorers run in the 'loop', a 'thread', a 'process' or 'elsewhere', not {where!r}"
            )
        check_callbacks(on_stop, on_update)
        if where == "elsewhere":
            scorers = ()
        if where in ("thread", "process") and self._again is None:
            raise InvalidInput(f"{self.url} has one connection: its scorers run in the loop")
        divided = is_on_a_server(self.url) if leases is None else leases
        divided = divided and isinstance(self._held, Leasing)
        if leases and not divided:
            raise InvalidInput(f"{self.url} is for one process: watch it without leases")
        process = None
        if where == "process" and scorers and self._again is not None:
            process = ScorerProcess(
                self._again,
                scorers,
                session=session,
                pace=pace,
                divided=divided and session is None,
            )
        updates = LiveUpdates(
            self,
            self._spawn,
            self._ready,
            scorers,
            session=session,
            options=options,
            after_position=after_position,
            on_stop=on_stop,
            on_update=on_update,
            pace=pace,
            leases=self._lease if divided and session is None else None,
            is_near=self.recorder.is_last_writer,
            again=self._again if where == "thread" and scorers else None,
            process=process,
        )
        self._watches = [other for other in self._watches if not other.ended] + [updates]
        return updates

    def _lease(self) -> Leases:
        store = self._store
        assert isinstance(store, Leasing)
        return store.leases()

    async def settle(self) -> None:
        """Waits until all that was recorded is written, the scorers that watch have measured it, and
        the watches that run by themselves have delivered their updates.
        """
        # The intake reports each event to its caller, but it does not report when all are written.
        while self._tasks is not None and self.recorder.statistics().waiting:  # noqa: ASYNC110
            await anyio.sleep(_POLL)
        for updates in self._watches:
            await updates.settle()

    async def _keep_to(self, retention: Retention) -> None:
        await self._there.wait()
        await keep_to(self, retention)

    def _spawn(self, run: Callable[[], Coroutine[object, object, None]], name: str) -> None:
        if self._tasks is None:
            raise LogClosed(f"{self.url} is not open")
        self._tasks.start_soon(self._run, run, name=f"{name} of {self.url}")

    async def _run(self, run: Callable[[], Coroutine[object, object, None]]) -> None:
        with anyio.CancelScope() as scope:
            self._running.add(scope)
            try:
                await run()
            finally:
                self._running.discard(scope)

    # --- opening and closing ----------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        self._process = OwnProcess()
        async with AsyncExitStack() as entered:
            refused = await self._enter_store(entered)
            if refused is None:
                await entered.enter_async_context(self.recorder)
                self._tasks = await entered.enter_async_context(anyio.create_task_group())
                if self._retention is not None:
                    keep = partial(self._keep_to, self._retention)
                    self._spawn(keep, "retention")
                if self._idle_after is not None:
                    self._spawn(partial(self._close_idle, self._idle_after), "closer of sessions")
                self._exit = entered.pop_all()
        if refused is not None:  # here, since a task group would wrap it in a group
            raise refused
        return self

    async def _enter_store(self, entered: AsyncExitStack) -> DuologError | None:
        """Opens the store, unless it is away; returns the error if waiting would not help.

        Raises:
            DuologError: likewise.
        """
        if self._strict or self._spill is None:
            try:
                await entered.enter_async_context(self._held)
            except LogAway as error:
                if self._strict:
                    raise
                self._away = error
            else:
                self._note_open()
                return None
        else:
            self._away = LogAway(f"no answer in {_OPENING:g} seconds")
        tried = anyio.Event()
        keeper = await entered.enter_async_context(anyio.create_task_group())
        keeper.start_soon(self._run, partial(self._keep_store, tried), name=f"opener of {self.url}")
        with anyio.move_on_after(_OPENING):
            await tried.wait()
        away = self._why_away()
        if away is not None and not isinstance(away, LogAway):
            keeper.cancel_scope.cancel()
            return away
        if away is not None:
            get_logger("telemetry").warning(
                "the log is away; what is recorded waits for it", error=str(away)
            )
        return None

    def _why_away(self) -> DuologError | None:
        return self._away

    def _note_open(self) -> None:
        """Says that the store is open. Raises NewerLog if it must not be written."""
        self._away = None
        if isinstance(self._held, Leasing):
            try:
                self._held.leases()
            except NewerLog:
                raise
            except DuologError:
                pass
        self._there.set()

    async def _keep_store(self, tried: anyio.Event) -> None:
        """Opens the store when it is there, and closes it in the task that opened it."""
        backoff = Backoff(self._retry)
        async with AsyncExitStack() as entered:
            while self._why_away() is not None:
                try:
                    await entered.enter_async_context(self._held)
                    self._note_open()
                except DuologError as error:
                    self._away = error
                    if not isinstance(error, LogAway) and tried.is_set():
                        get_logger("telemetry").error("the log cannot be opened", error=str(error))
                    tried.set()
                    if isinstance(error, NewerLog):  # what waits is for the newer version to write
                        await anyio.sleep_forever()
                    await backoff.wait()
            if tried.is_set():
                get_logger("telemetry").warning("the log is there again", url=self.url)
            tried.set()
            entered.push_async_callback(self._held.aclose)
            await anyio.sleep_forever()

    async def _close_idle(self, seconds: float) -> None:
        """Closes idle sessions now and then."""
        await self._ready()
        while True:
            try:
                for session in await close_idle(self, seconds):
                    get_logger("telemetry").info("an idle session was closed", session=session)
            except LogClosed:
                return
            except DuologError as error:
                get_logger("telemetry").warning("idle sessions were not closed", error=str(error))
            await anyio.sleep(min(max(seconds / 4, _SWEEP[0]), _SWEEP[1]))

    async def _ready(self) -> None:
        """Waits until the store is open."""
        await self._there.wait()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()
        if self._process.forked:
            return
        # The body's own exception is nothing to the task groups, which would wrap it in groups.
        await self._exit.aclose()

    async def aclose(self, deadline: float | None = None) -> None:
        """Takes no further events, writes and measures what waits, and closes. Idempotent.

        Events that could not be written in time are in ``unwritten``, and in the program's log.
        Events that could not be measured are measured when the same scorers run on this log again.

        Args:
            deadline: seconds; None for what the log was opened with.
        """
        if self._process.forked:
            return  # the log is its parent's
        until = time.monotonic() + (self._deadline if deadline is None else deadline)
        with anyio.CancelScope(shield=True):
            async with self._closing:
                if self._tasks is not None:
                    self.unwritten = await self.recorder.aclose(until - time.monotonic())
                    with anyio.move_on_after(until - time.monotonic()):
                        for updates in self._watches:
                            await updates.settle()
                    self._tasks = None
                    for scope in self._running:
                        scope.cancel()
                await self._held.aclose()

    # --- the store --------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The URL of this log."""
        return self._held.url

    @property
    def _store(self) -> Store:
        """The store, once it is open. Raises LogAway before that."""
        if self._away is not None:
            raise LogAway(f"{self.url} could not be opened yet: {self._away}") from self._away
        return self._held

    async def forget(
        self, session: str | Sequence[str], *, caches: Sequence[Cache] = (), compact: bool = True
    ) -> ForgetResult:
        """Erases sessions and their forks, here and in the spill files; see ``Store.forget``."""
        for name in named(session):
            await self.recorder.flush(name)
        files: list[Cache] = [] if self._spill is None else [self._spill]
        if self._tallies is not None and await anyio.to_thread.run_sync(self._tallies.exist):
            files.append(self._tallies)
        return await self._store.forget(session, caches=(*caches, *files), compact=compact)

    append = StoreMethod(Store.append)
    read = StoreMethod(Store.read)
    read_all = StoreMethod(Store.read_all)
    scan = StoreMethod(Store.scan)
    subscribe = StoreMethod(Store.subscribe)
    tap = StoreMethod(Store.tap)
    checkpoint = StoreMethod(Store.checkpoint)
    sessions = StoreMethod(Store.sessions)
    summary = StoreMethod(Store.summary)
    derived = StoreMethod(Store.derived)
    keep_derived = StoreMethod(Store.keep_derived)
    drop_derived = StoreMethod(Store.drop_derived)
    statistics = StoreMethod(Store.statistics)
    restore = StoreMethod(Store.restore)
    vacuum = StoreMethod(Store.vacuum)
    verify = StoreMethod(Store.verify)
