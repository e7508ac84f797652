"""The driver of scorers over a log: follows it as it grows, and loses nothing.

The records of a session are scored in order, and sessions in parallel. Quick records are scored at
once; those that take computing are collected for a worker thread. A task is started only if a scorer
waits for something, if there are measurements to record, or if records must be read from the log. A
checkpoint marks the position up to which everything is measured. After a restart, the driver begins
there; measurements that it repeats are recorded once.

With leases, several processes divide the sessions: one that wrote a session last scores it, if it records.
They share one checkpoint, since each of them follows the whole log: a session of another process counts as
unmeasured until that one has noted, in a derived row, how far it has come. A session whose process died is
read again from its first record; its measurements are there, and none is made twice.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Final, TypeAlias, final

import anyio
import anyio.lowlevel
import msgspec

from ..errors import (
    CheckpointConflict,
    InvalidInput,
    LogClosed,
    LogError,
    LogUnavailable,
    SessionClosedError,
    SessionInterrupted,
    SessionNotFound,
    first_error,
)
from ..events import ScorerRef
from ..log.backoff import Backoff
from ..log.contract import Advance, Derived, EventLog
from ..log.follower import CheckpointKey, Follower
from ..log.leases import LeaseHolder, Leases, LeaseTerms
from ..log.session_states import SessionStates
from ..logger import get_logger
from ..plugins import PluginCall
from ..records import TRACE, Record
from ..workers import Workers
from .division import Division, IsNear
from .hop import Hop, Look
from .observing import ComputeThread
from .protocol import Scorer, stream_of
from .runner import Found, ScorerRunner

__all__ = ("Pace", "ScorerDriver", "ScorerPool", "ScorerStatistics", "ScorersOf", "checkpoint_key")

ScorersOf: TypeAlias = Callable[[str], Awaitable[Sequence[Scorer]]]
"""Makes the scorers of a session; none if it cannot be scored."""

_BACKLOG: Final = 4096  # waiting records at which the driver stops reading the log
_SESSION: Final = 256  # of those, of one session; later records are read from the log again
_BATCH: Final = 512  # records taken from the log, or scored in the thread, at once
_QUICK: Final = 64  # records scored on the event loop before it yields to other tasks
_SAVE: Final = 1.0  # seconds between checkpoints

_CLAIMS: Final = 256
"""The most sessions to claim in one call."""

_AGAIN: Final = 0.1
"""Seconds until a session that another process still had is claimed again."""

_ELSEWHERE: Final = 4096
"""Unmeasured sessions of other processes at which the driver stops reading."""

_NOTE: Final = 1
"""Version of the derived rows that say how far a session is measured."""


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on the time and memory of scoring.

    Attributes:
        within: seconds for one record; a scorer that takes longer is quarantined.
        at_once: sessions that scorers wait for, or that are read from the log, at a time.
        keep: open sessions whose state is kept in memory; for others it is rebuilt from the log
            when a record arrives.
        idle: seconds for which the state of an inactive session is kept in memory.
        retry: seconds before the first new attempt if the log, or a model that a scorer asks,
            cannot be reached.
    """

    within: float = 60.0
    at_once: int = 64
    keep: int = 4096
    idle: float = 60.0
    retry: float = 0.25


class ScorerStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """How far a driver has come.

    Attributes:
        scorer: what measures, ``name@version``.
        position: the position of the log, up to which all of its sessions are measured.
        lag: how many positions the log is ahead of that.
        waiting: sessions that have records which are not measured yet.
        working: how many of those sessions are at work now.
        measured: records that the scorers have looked at since it was started.
        quarantined: failures of scorers in sessions since it was started; each measures its session
            no more.
        held: sessions on which this process has the lease; 0 without leases.
        processes: how many processes divide the sessions.
    """

    scorer: str = ""
    position: int
    lag: int
    waiting: int
    working: int
    measured: int
    quarantined: int = 0
    held: int = 0
    processes: int = 1


def checkpoint_key(ref: ScorerRef, session: str | None = None) -> CheckpointKey:
    """The key under which the log keeps a scorer's checkpoint."""
    name = f"scorer/{ref.name}"
    return CheckpointKey(name if session is None else f"{name}/{session}", ref.version)


class _Work:
    """The scoring state of one session: the progress so far, and the waiting records.

    Attributes:
        runner: runs the scorers; None until they begin, or if they have to begin again.
        version: trace version of the last scored record.
        pending: waiting records, in order.
        behind: position of a record in the log that is not in ``pending``; 0 if there is none.
        results: measurements that are not recorded yet.
        busy: whether a task or the thread works on it, or is about to.
        closed: whether the session is closed, as far as is known.
        over: whether nothing is left to measure.
        since: when a scorer that waits began with a record; None while none does.
        excused: how many of its calls wait for something that does not count towards its time.
        backoff: waits between attempts while they fail.
        mine: whether this process scores the session.
        lent: whether another process that records may have it, once that has written it last.
        latest: version and position of the last trace record that came.
        position: the position of the last scored record.
        noted: version up to which the other processes know it to be measured.
    """

    __slots__ = (
        "backoff",
        "behind",
        "busy",
        "closed",
        "excused",
        "latest",
        "lent",
        "mine",
        "noted",
        "over",
        "pending",
        "position",
        "results",
        "runner",
        "session",
        "since",
        "version",
    )

    def __init__(self, session: str, *, mine: bool) -> None:
        self.session = session
        self.mine = mine
        self.lent = False
        self.latest = (0, 0)
        self.position = self.noted = 0
        self.runner: ScorerRunner | None = None
        self.version = 0
        self.pending: deque[Record] = deque()
        self.behind = 0
        self.results: deque[tuple[Record, Sequence[Found]]] = deque()
        self.busy = False
        self.closed = False
        self.over = False
        self.since: float | None = None
        self.excused = 0
        self.backoff: Backoff | None = None

    @property
    def first(self) -> int:
        """Position of the first record that is not measured; 0 if all are."""
        if self.results:
            return self.results[0][0].position
        if self.over:
            return 0
        if not self.pending:
            return self.behind
        first = self.pending[0].position
        return min(first, self.behind or first)

    @property
    def measured(self) -> tuple[int, int]:
        """Version and position of the last record that is measured, and that measurement recorded."""
        if self.over:
            return self.latest
        return (0, 0) if self.results else (self.version, self.position)

    @contextmanager
    def excuse(self) -> Iterator[None]:
        """While a scorer waits for something else, its time stops."""
        self.excused += 1
        try:
            yield
        finally:
            self.excused -= 1
            self.since = time.monotonic()

    def restart(self) -> None:
        """Lets the scorers begin again, from the session's first record."""
        self.behind = self.first
        self.results.clear()
        self.runner = None
        self.version = self.position = 0

    def stop_if_late(self, begun_before: float) -> None:
        """Quarantines a scorer that has waited over a record since before this time."""
        late = self.since is not None and self.since < begun_before
        if late and self.runner is not None and not self.excused:
            self.runner.give_up()


@final
class ScorerDriver:
    """Some scorers at work on a log.

    Args:
        log: whose sessions they measure, and where their measurements go.
        scorers: what measures; or what makes the scorers of each session.
        key: the key of the checkpoint. Drivers that divide a log by leases have the same.
        session: only this session; None for all.
        pace: the limits of the scorers.
        leases: the leases of the log, to divide its sessions with other processes; None to measure
            all.
        terms: how long a process may be silent before others take over its sessions.
        is_near: whether this process wrote a session last, up to a trace version; None if it does not
            record.
        stopped: why models are asked no more, if they are not; a session that needs one then ends
            the run.

    Raises:
        InvalidInput: a pace that makes no sense.
    """

    def __init__(
        self,
        log: EventLog,
        scorers: Sequence[Scorer] | ScorersOf,
        key: CheckpointKey,
        *,
        session: str | None = None,
        pace: Pace = Pace(),  # noqa: B008  (it is frozen)
        leases: Leases | None = None,
        terms: LeaseTerms = LeaseTerms(),  # noqa: B008
        is_near: IsNear | None = None,
        stopped: Callable[[], str | None] = lambda: None,
    ) -> None:
        if not (pace.within > 0 and pace.at_once > 0 and pace.keep > 0 and pace.retry >= 0):
            raise InvalidInput(f"a pace needs numbers above 0, not {pace}")
        self._log = log
        self._scorers = scorers
        self._key = key
        self._session = session
        self._pace = pace
        self._terms = terms
        self._stopped = stopped
        self._streams = {stream_of(s.ref) for s in (() if callable(scorers) else scorers)}
        self._name = "+".join(sorted(self._streams)) or "@".join(key)
        self._division: Division | None = None
        if leases is not None:
            self._division = Division(
                LeaseHolder(leases, terms),
                "@".join(key),
                is_near=is_near,
                grace=terms.grace,
                on_lost=self._lose,
            )
        self._waiting: dict[str, int] = {}  # position of the first unmeasured record, by session
        self._elsewhere: dict[str, float] = {}  # those of them without a lease here, since when
        self._asking: dict[str, None] = {}  # those of them to be claimed now
        self._refused: dict[str, None] = {}  # those of them to be claimed again soon
        self._notes: dict[str, Derived] = {}
        self._kind = f"scored/{'@'.join(key)}"
        self._saved = 0
        self._latest = ""
        self._works: SessionStates[_Work] = SessionStates(
            pace.keep, busy=lambda work: work.busy or work.first > 0, idle=pace.idle
        )
        # Sessions that wait and are not at work, in order; likewise for a slot, and for the thread.
        self._ready: OrderedDict[str, None] = OrderedDict()
        self._queued: OrderedDict[_Work, None] = OrderedDict()
        self._to_compute: OrderedDict[_Work, None] = OrderedDict()
        self._computing = ComputeThread()
        self._hop: Hop | None = None
        self._waited_for: dict[_Work, None] = {}  # those whose scorers wait for something
        self._slots = pace.at_once
        self._news = self._room = self._computable = self._claimable = anyio.Event()
        self._progress: anyio.Event | None = None
        self._workers: Workers[tuple[_Work, bool]] | None = None
        self._taken = self._head = 0
        self._backlog = self._at_work = self._measured = self._quarantined = 0
        self._begun = self.ended = False

    # --- following the log ------------------------------------------------------------------------

    async def run(self) -> None:
        """Measures until it is cancelled; then saves the checkpoint, and gives its sessions back.

        Raises:
            LogError: the log failed, or was closed.
            SessionInterrupted: a model is down, or its budget is used up.
        """
        division = self._division
        try:
            async with anyio.create_task_group() as outer:
                if division is not None:
                    outer.start_soon(division.holder.keep)
                try:
                    await self._run()
                finally:
                    if division is not None:
                        with anyio.move_on_after(self._terms.lasts, shield=True):
                            await self.save()
                            await self._note(division)
                    outer.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            raise first_error(group) from None
        finally:
            self.ended = True
            self._note_progress()

    async def _run(self) -> None:
        follower = Follower(
            self._log,
            session=self._session,
            key=self._key,
            backoff=Backoff(self._pace.retry),
            on_unavailable=self._report_unavailable,
        )
        async with follower, anyio.create_task_group() as tasks:
            await follower.retry(follower.begin)
            self._taken, self._head = follower.taken, follower.head_at_start
            self._saved = self._taken
            if self._division is not None:
                await follower.retry(self._division.look)
                tasks.start_soon(self._divide, self._division)
            self._begun = True
            self._note_progress()
            self._workers = Workers(tasks, self._work)
            for work in (self._look_often, self._compute, self._watch_the_time, self._save_often):
                tasks.start_soon(work)
            while True:
                for record in await follower.take(min(_BATCH, _BACKLOG - self._backlog)):
                    self._take(record)
                    follower.done(record.position)
                self._taken = follower.taken
                self._note_progress()
                while self._backlog >= _BACKLOG or len(self._elsewhere) >= _ELSEWHERE:
                    self._room = anyio.Event()
                    await self._room.wait()

    def _take(self, record: Record) -> None:
        """Takes the next record of the log, and queues it if it has to be scored."""
        session = record.session
        if record.stream != TRACE:
            failed = record.kind == "ScorerFailed" and record.stream in self._streams
            if failed and record.position > self._head:
                self._quarantined += 1  # the process that measured it has logged it
            return
        self._latest = session
        division = self._division
        work = self._works.get(session)
        if work is None:
            work = _Work(session, mine=division is None or session in division.mine)
        work.latest = record.version, record.position
        if work.over:
            return
        work.closed = work.closed or record.kind == "SessionClosed"
        rests = work.lent and session not in self._waiting
        if division is not None and rests and division.has_left(session, record.version):
            self._leave(division, work)
            work = self._elsewhere_again(work)
        if session not in self._waiting:
            self._waiting[session] = record.position
            self._works.keep(session, work)
            if work.mine:
                self._make_ready(work)
            else:
                self._elsewhere[session] = time.monotonic()
        if work.behind:  # this one is read with those before it
            pass
        elif len(work.pending) >= _SESSION or not (work.mine or self._wait(work) is not None):
            work.behind = record.position
        else:
            work.pending.append(record)
            self._backlog += 1
        if not work.mine and self._wait(work) == 0 and session not in self._refused:
            self._asking[session] = None
            self._claimable.set()

    def _make_ready(self, work: _Work) -> None:
        if not work.busy:
            self._ready[work.session] = None
            self._news.set()

    # --- sessions of several processes -------------------------------------------------------------

    async def _divide(self, division: Division) -> None:
        """Claims sessions, gives them back, and tells other processes how far they are measured."""
        look_at = again_at = 0.0
        while True:
            self._claimable = anyio.Event()
            try:
                if time.monotonic() >= look_at:
                    await division.look()
                    await self._reconsider(division)
                    look_at = time.monotonic() + self._terms.looked_at
                await self._note(division)
                if time.monotonic() >= again_at:
                    self._asking |= self._refused
                    self._refused.clear()
                    again_at = time.monotonic() + _AGAIN
                while self._asking:
                    await self._claim(division)
            except LogUnavailable as error:
                self._report("sessions were not divided", error)
                await anyio.sleep(self._terms.looked_at)
            until = min(look_at, again_at) if self._refused else look_at
            with anyio.move_on_after(max(0.0, until - time.monotonic())):
                await self._claimable.wait()

    def _wait(self, work: _Work) -> float | None:
        """Seconds to wait before a session is claimed here; None to leave it to other processes."""
        assert self._division is not None
        return self._division.wait(work.session, work.latest[0])

    async def _reconsider(self, division: Division) -> None:
        """Looks at the sessions of the other processes, and at those that are idle here."""
        for session in [name for name in division.mine if self._works.get(name) is None]:
            division.leave(session)  # its state was evicted
        for work in self._works:
            if work.mine:
                self._add_note(work)
        if self._elsewhere:
            sessions = tuple(self._elsewhere)
            async for row in self._log.derived(self._kind, _NOTE, sessions=sessions):
                self._take_note(row)
        now = time.monotonic()
        for session, since in self._elsewhere.items():
            known = self._works.get(session)
            wait = None if known is None else self._wait(known)
            if wait is not None and now - since >= wait:
                self._asking[session] = None

    async def _claim(self, division: Division) -> None:
        """Claims sessions, and takes up those that it gets."""
        asked = list(islice(self._asking, _CLAIMS))
        for session in asked:
            del self._asking[session]
        asked = [session for session in asked if session in self._elsewhere]
        if not asked:
            return
        try:
            taken = await division.claim(asked)
        except LogError:
            self._asking |= dict.fromkeys(asked)
            raise
        for session in asked:
            work = self._works.get(session)
            assert work is not None  # it waits, so it is not evicted
            if session in taken:
                self._take_up(division, work)
                continue
            if division.is_near(session, work.latest[0]):
                self._refused[session] = None

    def _take_up(self, division: Division, work: _Work) -> None:
        """Scores a session from here on."""
        del self._elsewhere[work.session]
        work.mine = True
        work.lent = division.lends(work.session, work.latest[0])
        work.behind = work.behind or (0 if work.pending else self._waiting[work.session])
        self._room.set()
        self._make_ready(work)

    def _leave(self, division: Division, work: _Work) -> None:
        """Leaves a session of which all is measured to the other processes."""
        self._add_note(work)
        self._works.drop(work.session)
        self._detach(work)
        division.leave(work.session)
        self._claimable.set()

    def _lose(self, session: str) -> None:
        """Another process has taken a session."""
        work = self._works.drop(session)
        if work is not None:
            self._detach(work)
        if session in self._waiting:
            self._elsewhere_again(work or _Work(session, mine=False))

    def _elsewhere_again(self, old: _Work) -> _Work:
        """The state of a session that is not scored here any more."""
        session = old.session
        work = _Work(session, mine=False)
        work.latest, work.closed = old.latest, old.closed
        if session in self._waiting:
            work.behind = self._waiting[session]
            self._elsewhere[session] = time.monotonic()
            self._works.keep(session, work)
        return work

    def _detach(self, work: _Work) -> None:
        """Stops scoring a session here; a task that is at work on it ends by itself."""
        work.mine = False
        if not work.busy:
            self._ready.pop(work.session, None)
            self._drop(work, len(work.pending))

    def _add_note(self, work: _Work) -> None:
        """Notes for the other processes how far a session is measured."""
        version, position = work.measured
        shared = self._division is not None and self._division.processes > 1
        if shared and version > work.noted:
            work.noted = version
            self._notes[work.session] = Derived(
                session=work.session,
                kind=self._kind,
                version=_NOTE,
                position=position,
                payload=b"",
                numbers=(float(version),),
            )

    def _take_note(self, row: Derived) -> None:
        """Another process has measured a session up to here."""
        session, work = row.session, self._works.get(row.session)
        if work is None or session not in self._elsewhere:
            return
        self._waiting[session] = max(self._waiting[session], row.position + 1)
        if int(row.numbers[0] or 0) >= work.latest[0]:
            del self._elsewhere[session], self._waiting[session]
            self._asking.pop(session, None)
            self._refused.pop(session, None)
            self._drop(work, len(work.pending))
            self._works.drop(session)
            self._note_progress()

    async def _note(self, division: Division) -> None:
        """Writes the notes, and gives back the sessions that were left."""
        notes, self._notes = self._notes, {}
        if notes:
            await self._log.keep_derived(tuple(notes.values()))
        await division.release()

    # --- looking at records -----------------------------------------------------------------------

    async def _look_often(self) -> None:
        """Scores the sessions that have new records, in order."""
        while True:
            looked = 0
            while self._ready and looked < _QUICK:
                session, _ = self._ready.popitem(last=False)
                work = self._works.get(session)
                if work is not None:
                    looked += self._route(work)
            while self._queued and self._slots and len(self._to_compute) < self._pace.at_once:
                work, _ = self._queued.popitem(last=False)
                self._slots -= 1
                self._start(work, slot=True)
            if self._ready:
                await anyio.lowlevel.checkpoint()
            else:
                self._news = anyio.Event()
                await self._news.wait()

    def _route(self, work: _Work) -> int:
        """Scores a session's quick records, and passes on the others; returns how many it scored."""
        session = work.session
        if not work.mine or work.over:
            self._drop(work, len(work.pending))
            work.behind = 0
        if not work.mine:
            work.results.clear()
            work.busy = False
            return 0
        if work.runner is None and not callable(self._scorers) and self._is_new(work):
            work.runner = self._runner(work, self._scorers)
        looked = 0
        cost = None
        while not work.results and (record := self._next(work)) is not None:
            assert work.runner is not None
            cost = work.runner.cost(record)
            if cost != "quick" or looked >= _QUICK:
                break
            found = work.runner.look(record)
            looked += 1
            self._looked(work, record, [(record, found)] if found else ())
        first = work.first
        work.busy = first > 0
        if first:
            self._waiting[session] = first
        if work.results:
            self._start(work, slot=False)
        elif not first:
            self._rest(work)
        elif self._next(work) is None or cost == "waits":
            self._queued[work] = None
            self._news.set()
        elif cost == "computes":
            self._to_compute[work] = None
            self._computable.set()
        else:
            work.busy = False
            self._make_ready(work)
        return looked

    def _is_new(self, work: _Work) -> bool:
        """Whether a session has begun since the driver did, so that nothing was measured of it.

        If processes divide the log, another one may have measured it before this one saw it.
        """
        first = work.pending[0] if work.pending and not work.behind else None
        fresh = first is not None and first.version == 1 and first.position > self._head
        return fresh and self._division is None

    def _next(self, work: _Work) -> Record | None:
        """The next record to score, if it is in memory, and the scorers have begun."""
        if work.runner is None or work.over:
            return None
        while work.pending and work.pending[0].version <= work.version:
            self._drop(work, 1)
        at_hand = work.pending and work.pending[0].version == work.version + 1
        return work.pending[0] if at_hand else None

    def _looked(
        self, work: _Work, last: Record, found: Sequence[tuple[Record, Sequence[Found]]]
    ) -> None:
        """The scorers have looked at the records that wait, up to one."""
        looked = last.version - work.version
        work.version, work.position = last.version, last.position
        work.results += found
        work.over = work.runner is None or not work.runner.active
        self._measured += looked
        self._drop(work, looked)

    def _drop(self, work: _Work, count: int) -> None:
        """The first records that wait were looked at, or need not be."""
        for _ in range(count):
            work.pending.popleft()
        self._backlog -= count
        self._room.set()

    def _rest(self, work: _Work) -> None:
        """Nothing is left to be done of a session."""
        self._waiting.pop(work.session, None)
        self._note_progress()
        if work.closed:  # if feedback still comes, it is read again
            self._works.drop(work.session)
            if self._division is not None:
                self._leave(self._division, work)
        self._works.evict()

    # --- computing in a thread --------------------------------------------------------------------

    async def _compute(self) -> None:
        """Scores the records that take computing in the thread, many at a time."""
        while True:
            if not self._to_compute:
                self._computable = anyio.Event()
                await self._computable.wait()
            works: list[_Work] = []
            looks: list[Look] = []
            room = _BATCH
            while self._to_compute and room > 0:
                work, _ = self._to_compute.popitem(last=False)
                assert work.runner is not None
                works.append(work)
                looks.append(Look(work.runner, tuple(islice(work.pending, room))))
                room -= len(looks[-1].records)
            self._news.set()  # more may be read
            self._at_work += len(works)
            self._hop = Hop(looks)
            with self._hop.scope:
                await self._computing.run(self._hop.run)
            self._hop = None
            self._at_work -= len(works)
            for work, look in zip(works, looks, strict=True):
                if look.count:
                    self._looked(work, look.records[look.count - 1], look.found)
                if look.late is not None:  # other scorers may still have to score the record
                    work.results.append(look.late)
                self._route(work)

    async def _watch_the_time(self) -> None:
        """Quarantines a scorer that takes too long over a record."""
        within = self._pace.within
        while within < math.inf:
            await anyio.sleep(within / 4)
            late = time.monotonic() - within
            for work in tuple(self._waited_for):
                work.stop_if_late(late)
            if self._hop is not None:
                self._hop.stop_if_late(late)

    # --- tasks of sessions ------------------------------------------------------------------------

    def _start(self, work: _Work, *, slot: bool) -> None:
        assert self._workers is not None
        self._at_work += 1
        self._workers.start((work, slot))

    async def _work(self, started: tuple[_Work, bool]) -> None:
        """Records the measurements of a session; with a slot, reads it from the log too."""
        work, slot = started
        try:
            with PluginCall(f"the scorers of {work.session!r}"):  # or the task could end unnoticed
                await self._record(work)
                if slot:
                    await self._catch_up(work)
            work.backoff = None
        except LogClosed:
            raise
        except (LogUnavailable, SessionInterrupted) as error:
            if isinstance(error, SessionInterrupted) and self._stopped() is not None:
                raise
            work.restart()
            work.backoff = work.backoff or Backoff(self._pace.retry)
            seconds = work.backoff.next()
            what = "a session cannot be scored now; trying again"
            self._report(what, error, work.session, seconds=seconds)
            if slot:
                self._free_slot()
                slot = False
            await anyio.sleep(seconds)
        except SessionClosedError:
            self._end_work(work)  # the session was forgotten
        except Exception as error:  # noqa: BLE001  (logged; the other sessions continue)
            self._report("a session cannot be measured", error, work.session)
            self._end_work(work)
        if slot:
            self._free_slot()
        self._at_work -= 1
        self._route(work)

    def _free_slot(self) -> None:
        self._slots += 1
        self._news.set()

    def _end_work(self, work: _Work) -> None:
        work.results.clear()
        work.over = True

    async def _record(self, work: _Work) -> None:
        while work.results and work.runner is not None:
            record, found = work.results[0]
            await work.runner.keep(record, found)
            work.results.popleft()

    async def _catch_up(self, work: _Work) -> None:
        """Reads records that are not in memory, and scores as long as scorers wait for something."""
        while work.first and work.mine:
            if work.runner is None:
                work.runner = await self._begin(work)
                if work.runner is None:
                    work.over = True
                    return
            record = self._next(work)
            if record is None:
                await self._read_on(work)
            elif work.runner.cost(record) == "waits":
                await self._wait_for(work, work.runner, record)
            else:
                return

    async def _read_on(self, work: _Work) -> None:
        """Reads the next records that were not looked at."""
        behind, work.behind = work.behind, 0  # new records wait in ``pending`` again
        read: list[Record] = []
        try:
            async for record in self._log.read(work.session, after_version=work.version):
                if len(read) >= _SESSION:
                    work.behind = record.position
                    break
                read.append(record)
        except BaseException:
            work.behind = behind
            raise
        last = read[-1].version if read else work.version
        later = [record for record in work.pending if record.version > last]
        if later and later[0].version == last + 1:  # else it is read the next time
            read += later
        work.closed = work.closed or any(record.kind == "SessionClosed" for record in read)
        self._backlog += len(read) - len(work.pending)
        work.pending = deque(read)
        self._room.set()

    async def _wait_for(self, work: _Work, runner: ScorerRunner, record: Record) -> None:
        work.since = time.monotonic()
        self._waited_for[work] = None
        try:
            await runner.measure((record,))
        finally:
            work.since = None
            del self._waited_for[work]
        self._looked(work, record, ())

    async def _begin(self, work: _Work) -> ScorerRunner | None:
        """Starts the scorers of a session with their earlier measurements of it."""
        scorers = await self._scorers(work.session) if callable(self._scorers) else self._scorers
        if not scorers:
            return None
        recorded: list[Record] = []
        for scorer in () if self._is_new(work) else scorers:
            stream = stream_of(scorer.ref)
            recorded += [record async for record in self._log.read(work.session, stream=stream)]
        return self._runner(work, scorers, recorded)

    def _runner(
        self, work: _Work, scorers: Sequence[Scorer], recorded: Sequence[Record] = ()
    ) -> ScorerRunner:
        self._streams.update(stream_of(scorer.ref) for scorer in scorers)
        return ScorerRunner(
            self._log,
            work.session,
            scorers,
            recorded=recorded,
            excused=work.excuse,
            computing=self._computing,
        )

    # --- progress ---------------------------------------------------------------------------------

    async def _save_often(self) -> None:
        while True:
            await anyio.sleep(_SAVE)
            await self._try_to_save()

    async def _try_to_save(self) -> None:
        try:
            await self.save()
        except LogClosed:
            raise
        except LogError as error:
            self._report("a checkpoint was not saved", error)

    async def save(self) -> None:
        """Moves the checkpoint to the position before which everything is measured and recorded.

        If that fails, the checkpoint lags: the records after it are scored again after a restart, and
        recorded once.

        Raises:
            LogError: the log cannot store it.
        """
        position = min([self._taken, *(first - 1 for first in self._waiting.values())])
        if position <= self._saved or not self._latest:
            return
        consumer, version = self._key
        advance = Advance(
            consumer=consumer, version=version, expected=self._saved, position=position
        )
        try:
            await self._log.append(self._latest, [], checkpoint=advance)
            self._saved = position
        except CheckpointConflict as conflict:  # another process measures this too, or did
            self._saved = conflict.actual

    async def settle(self) -> None:
        """Waits until all that the log holds now is measured, and the checkpoint says so.

        Returns as well once the driver has ended.
        """
        try:
            position = self._log.statistics().position
            if self._session is not None:
                position = (await self._log.summary(self._session)).position
        except (LogClosed, SessionNotFound):
            return
        while not self.ended and (not self._begun or self._position() < position):
            self._progress = progress = self._progress or anyio.Event()
            await progress.wait()
        if not self.ended:
            with suppress(LogClosed):
                await self._try_to_save()

    def _own(self) -> Iterator[int]:
        """The position of the first unmeasured record of each waiting session, without those of others."""
        for session, first in self._waiting.items():
            work = self._works.get(session) if session in self._elsewhere else None
            if work is None or self._wait(work) is not None:
                yield first

    def _position(self) -> int:
        return min([self._taken, *(first - 1 for first in self._own())])

    def _note_progress(self) -> None:
        if self._progress is not None:
            self._progress.set()
            self._progress = None

    def statistics(self) -> ScorerStatistics:
        """How far it has come."""
        position = self._position()
        return ScorerStatistics(
            scorer=self._name,
            position=position,
            lag=max(0, self._log.statistics().position - position),
            waiting=sum(1 for _ in self._own()),
            working=self._at_work,
            measured=self._measured,
            quarantined=self._quarantined,
            held=len(self._division.mine) if self._division else 0,
            processes=self._division.processes if self._division else 1,
        )

    def _report_unavailable(self, error: LogUnavailable, seconds: float) -> None:
        self._report("the log cannot be read now; trying again", error, seconds=seconds)

    def _report(
        self, what: str, error: Exception, session: str | None = None, **more: float
    ) -> None:
        get_logger("scorers").warning(
            what, scorer=self._name, session=session or self._session, error=str(error), **more
        )


@final
class ScorerPool:
    """Scorers at work on a log, each with its own driver, so that a slow one does not delay others.

    Args:
        log: holds the sessions that they measure, and receives their measurements.
        scorers: the scorers to run.
        session: only this session; None for all.
        pace: the limits of each scorer.
        leases: the leases of the log, to divide its sessions with other processes; None to measure
            all.
        terms: how long a process may be silent before others take over its sessions.
        is_near: whether this process wrote a session last, up to a trace version; None if it does not
            record.

    Raises:
        InvalidInput: something that is not a scorer, two scorers of one name and version, or a pace that
            makes no sense.
    """

    def __init__(
        self,
        log: EventLog,
        scorers: Iterable[Scorer],
        *,
        session: str | None = None,
        pace: Pace = Pace(),  # noqa: B008
        leases: Leases | None = None,
        terms: LeaseTerms = LeaseTerms(),  # noqa: B008
        is_near: IsNear | None = None,
    ) -> None:
        given: object = scorers
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise InvalidInput(f"scorers is a sequence of scorers, not {given!r:.200}")
        scorers = tuple(scorers)
        for scorer in scorers:
            if not isinstance(scorer, Scorer):
                raise InvalidInput(
                    f"{scorer!r:.200} is not a scorer, which has a ref and begins to score a session: pass, "
                    "for example, duolog.rule_judge()"
                )
        streams = [stream_of(scorer.ref) for scorer in scorers]
        if len(set(streams)) < len(streams):
            raise InvalidInput(f"two scorers of one name and version: {', '.join(streams)}")
        self._drivers = [
            ScorerDriver(
                log,
                (scorer,),
                checkpoint_key(scorer.ref, session),
                session=session,
                pace=pace,
                leases=leases,
                terms=terms,
                is_near=is_near,
            )
            for scorer in scorers
        ]

    async def run(self) -> None:
        """Measures until it is cancelled, or the log is closed or can no longer be read."""
        async with anyio.create_task_group() as tasks:
            for driver in self._drivers:
                tasks.start_soon(self._run, driver, name=f"scorer {driver.statistics().scorer}")

    async def _run(self, driver: ScorerDriver) -> None:
        try:
            await driver.run()
        except LogClosed:
            pass
        except LogError as error:
            get_logger("scorers").warning(
                "a scorer has ended: the log cannot be read any more",
                scorer=driver.statistics().scorer,
                error=str(error),
            )

    async def settle(self) -> None:
        """Waits until all that the log holds now is measured, and the checkpoints say so.

        Returns as well once the scorers have ended.
        """
        for driver in self._drivers:
            await driver.settle()

    def statistics(self) -> tuple[ScorerStatistics, ...]:
        """How far the scorers have come."""
        return tuple(driver.statistics() for driver in self._drivers)
