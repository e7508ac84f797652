"""Scores the sessions of a log as it grows, divided among as many processes as join in.

Each process has some of the shards of sessions. A shard's checkpoint is a position: every session of the
shard whose last record lies at or before it is measured to its end. So who takes over a shard finds what
is to be done in the list of sessions, reads each of those from its first record on, and takes what was
measured as it is. Nothing is lost, and since measurements have identities and their streams expected
versions, nothing is recorded twice.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias, final

import anyio
import msgspec

from ..engine.errors import (
    CheckpointConflict,
    LogClosed,
    LogUnavailable,
    SessionClosedError,
    SessionInterrupted,
)
from ..engine.log.backoff import Backoff
from ..engine.log.contract import Advance, EventLog
from ..engine.log.follower import CheckpointKey, Follower
from ..engine.log.leases import LeaseHolder, Leases, LeaseTerms
from ..engine.log.session_states import SessionStates
from ..engine.logger import get_logger
from ..engine.plugins import PluginCall
from ..engine.records import TRACE, Record
from ..engine.scorers.protocol import Scorer, stream_of
from ..engine.scorers.runner import ScorerRunner
from ..engine.scorers.shards import SHARDS, ShardKeeper, shard_of
from ..engine.session.cast import first_error

__all__ = ("FollowingScorer", "FollowingStatistics", "ScorersOf")

ScorersOf: TypeAlias = Callable[[str], Awaitable[Sequence[Scorer]]]
"""Makes the scorers of a session; none where it cannot be scored."""

_WAITING: Final = 4096  # sessions that wait, from which on the log is read no further
_KEPT: Final = 2048  # open sessions whose scorers are kept at hand
_SAVE: Final = 1.0  # seconds between checkpoints

_DEFAULT = LeaseTerms()


class FollowingStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """How one process stands that scores a log as it grows.

    Attributes:
        position: of the log, up to which all sessions of its shards are measured.
        lag: how many positions the log is ahead of that.
        waiting: sessions that have records which are not measured yet.
        working: of those, sessions that are at work now.
        measured: records that its scorers have looked at.
        shards: how many of the shards it has.
        processes: how many processes divide them.
    """

    position: int
    lag: int
    waiting: int
    working: int
    measured: int
    shards: int
    processes: int


class _Session:
    """What has been measured of one session."""

    __slots__ = ("busy", "over", "runner", "version")

    def __init__(self) -> None:
        self.runner: ScorerRunner | None = None
        self.version = 0  # of the trace, up to which it was looked at
        self.busy = False
        self.over = False  # there is nothing to measure any more


class _Shard:
    """What is to be done of one shard.

    Attributes:
        saved: position of its checkpoint.
        waiting: sessions that have records which are not measured, with the position of the last
            one known.
        listing: whether it is not known yet which sessions wait.
        latest: the last session that had to wait.
    """

    __slots__ = ("latest", "listing", "saved", "waiting")

    def __init__(self, saved: int) -> None:
        self.saved = saved
        self.waiting: dict[str, int] = {}
        self.listing = True
        self.latest = ""


@final
class FollowingScorer:
    """Scores this process's shards of a log.

    Args:
        log: the log.
        leases: of the log.
        scorers_of: makes the scorers of a session.
        key: of the checkpoints; those who score by the same scorers have the same.
        concurrency: how many sessions are scored at the same time.
        stopped: why models are asked no more, if they are not; a session that needs one then ends the
            run.
        terms: how long a process may be silent before others take over its shards.
    """

    def __init__(
        self,
        log: EventLog,
        leases: Leases,
        scorers_of: ScorersOf,
        *,
        key: CheckpointKey,
        concurrency: int = 8,
        stopped: Callable[[], str | None] = lambda: None,
        terms: LeaseTerms = _DEFAULT,
    ) -> None:
        self._log = log
        self._scorers_of = scorers_of
        self._key = key
        self._concurrency = concurrency
        self._stopped = stopped
        self._terms = terms
        self._holder = LeaseHolder(leases, terms)
        self._keeper = ShardKeeper(
            self._holder,
            "@".join(key),
            on_taken=self._take_shards,
            on_left=self._leave_shard,
            on_lost=self._lose_shard,
        )
        self._shards: dict[int, _Shard] = {}
        self._sessions: SessionStates[_Session] = SessionStates(_KEPT, busy=lambda one: one.busy)
        # Sessions that wait and are not at work, in order. Of a dict, the first is far to find.
        self._ready: OrderedDict[str, None] = OrderedDict()
        self._news = anyio.Event()
        self._room = anyio.Event()
        self._taken = 0
        self._measured = 0
        self._working = 0

    # --- following --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Scores until it is cancelled; then saves checkpoints and gives its shards back.

        Raises:
            LogError: the log failed.
            SessionInterrupted: a model or its budget is used up for good.
        """
        self._taken = self._log.statistics().position
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._holder.keep)
            try:
                async with anyio.create_task_group() as work:
                    work.start_soon(self._follow)
                    work.start_soon(self._keeper.keep, self._terms.looked_at)
                    work.start_soon(self._save_often)
                    for _ in range(self._concurrency):
                        work.start_soon(self._work)
            finally:
                with anyio.move_on_after(self._terms.lasts, shield=True):
                    await self.save()
                tasks.cancel_scope.cancel()

    async def _follow(self) -> None:
        async with Follower(self._log, after_position=self._taken) as follower:
            async for record in follower:
                shard = self._shards.get(shard_of(record.session))
                if shard is not None and record.stream == TRACE:
                    self._await_measuring(shard, record.session, record.position)
                self._taken = record.position
                follower.done(record.position)
                while sum(len(one.waiting) for one in self._shards.values()) >= _WAITING:
                    await self._room.wait()

    def _await_measuring(self, shard: _Shard, session: str, position: int) -> None:
        shard.waiting[session] = position
        shard.latest = session
        state = self._sessions.get(session)
        if state is None or not state.busy:
            self._ready[session] = None
            self._news.set()

    # --- shards -----------------------------------------------------------------------------------

    async def _take_shards(self, numbers: Sequence[int]) -> None:
        """Finds what is to be done of shards; what comes from now on is seen as it comes."""
        taken = {
            number: _Shard(await self._log.checkpoint(*self._checkpoint(number)))
            for number in numbers
        }
        self._shards |= taken
        found: list[tuple[int, str, int]] = []
        async for summary in self._log.sessions():
            number = shard_of(summary.session)
            if number in taken and summary.position > taken[number].saved:
                found.append((summary.position, summary.session, number))
        for position, session, number in sorted(found):  # the order in which checkpoints can move
            shard = taken[number]
            if self._shards.get(number) is shard and session not in shard.waiting:
                self._await_measuring(shard, session, position)
        for shard in taken.values():
            shard.listing = False

    async def _leave_shard(self, number: int) -> None:
        await self._save(number)
        self._lose_shard(number)

    def _lose_shard(self, number: int) -> None:
        shard = self._shards.pop(number, None)
        for session in shard.waiting if shard is not None else ():
            self._ready.pop(session, None)

    def _checkpoint(self, number: int) -> CheckpointKey:
        consumer, version = self._key
        return CheckpointKey(f"score/{consumer}/{number}-of-{SHARDS}", version)

    # --- measuring --------------------------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            while not self._ready:
                if self._news.is_set():
                    self._news = anyio.Event()
                await self._news.wait()
            session, _ = self._ready.popitem(last=False)
            state = self._sessions.get(session) or _Session()
            self._sessions.keep(session, state)
            state.busy = True
            self._working += 1
            try:
                await self._measure(session, state)
            finally:
                self._working -= 1
                state.busy = False
                self._sessions.evict()
                self._room.set()
                self._room = anyio.Event()

    async def _measure(self, session: str, state: _Session) -> None:
        """Measures a session for as long as there is something new of it."""
        number = shard_of(session)
        backoff = Backoff(0.25)
        while (shard := self._shards.get(number)) is not None and session in shard.waiting:
            position = shard.waiting[session]
            try:
                with PluginCall(f"the scorers of {session!r}"):
                    await self._read_on(session, state)
            except (LogUnavailable, SessionInterrupted) as error:
                if isinstance(error, SessionInterrupted) and self._stopped() is not None:
                    raise
                self._warn("a session cannot be scored now; trying again", error, session)
                state.runner, state.version = None, 0
                await backoff.wait()
                continue
            except LogClosed:
                raise
            except SessionClosedError:
                state.over = True  # it was forgotten
            except Exception as error:  # noqa: BLE001  (logged; the other sessions go on)
                self._warn("a session cannot be scored", error, session)
                state.over = True
            if shard.waiting.get(session) == position:
                del shard.waiting[session]

    async def _read_on(self, session: str, state: _Session) -> None:
        """Has the scorers look at all that the log holds of a session and they have not seen."""
        if state.over:
            return
        if state.runner is None:
            state.runner = await self._begin(session)
        if state.runner is None:
            state.over = True
            return
        async for record in self._log.read(session, after_version=state.version):
            if shard_of(session) not in self._shards or not state.runner.active:
                break
            await state.runner.measure((record,))
            state.version = record.version
            self._measured += 1

    async def _begin(self, session: str) -> ScorerRunner | None:
        scorers = await self._scorers_of(session)
        recorded: list[Record] = []
        for scorer in scorers:
            stream = stream_of(scorer.ref)
            recorded += [record async for record in self._log.read(session, stream=stream)]
        return ScorerRunner(self._log, session, scorers, recorded=recorded) if scorers else None

    # --- progress ---------------------------------------------------------------------------------

    async def _save_often(self) -> None:
        while True:
            await anyio.sleep(_SAVE)
            try:
                await self.save()
            except LogUnavailable as error:
                self._warn("checkpoints were not saved", error)

    async def save(self) -> None:
        """Moves the checkpoints of this process's shards to where all before is measured.

        All at once, so that the log commits them together.

        Raises:
            LogError: the log cannot take it.
        """
        try:
            async with anyio.create_task_group() as tasks:
                for number in tuple(self._shards):
                    tasks.start_soon(self._save, number)
        except BaseExceptionGroup as group:
            raise first_error(group) from None

    async def _save(self, number: int) -> None:
        shard = self._shards.get(number)
        position = 0 if shard is None else self._position(shard)
        if shard is None or position <= shard.saved or not shard.latest:
            return
        consumer, version = self._checkpoint(number)
        advance = Advance(
            consumer=consumer, version=version, expected=shard.saved, position=position
        )
        try:
            await self._log.append(shard.latest, [], checkpoint=advance)
            shard.saved = position
        except CheckpointConflict as conflict:  # another process has the shard, or had it
            shard.saved = conflict.actual

    def _position(self, shard: _Shard) -> int:
        if shard.listing:
            return shard.saved
        # One that was listed may lie ahead of what was followed, and others that wait in between.
        return min([self._taken, *(position - 1 for position in shard.waiting.values())])

    def statistics(self) -> FollowingStatistics:
        """How it stands."""
        shards = self._shards.values()
        position = min([self._position(shard) for shard in shards], default=self._taken)
        return FollowingStatistics(
            position=position,
            lag=max(0, self._log.statistics().position - position),
            waiting=sum(len(shard.waiting) for shard in shards),
            working=self._working,
            measured=self._measured,
            shards=len(self._shards),
            processes=self._keeper.processes,
        )

    def _warn(self, what: str, error: Exception, session: str | None = None) -> None:
        get_logger("scorers").warning(what, session=session, error=str(error))
