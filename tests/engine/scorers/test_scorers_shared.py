"""Scoring a log as it grows, by several processes; here, by several that opened one file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from duolog.engine.errors import LogUnavailable, SessionInterrupted
from duolog.engine.events import ScorerRef, UtilityScored
from duolog.engine.log.contract import SessionSummary, Store
from duolog.engine.log.follower import CheckpointKey
from duolog.engine.log.leases import LeaseHolder, LeaseTerms, Leasing
from duolog.engine.log.open import open_log
from duolog.engine.records import TRACE, Record
from duolog.engine.scorers.driver import Pace, ScorerDriver
from duolog.engine.scorers.protocol import Measurement, Scorer, SessionScorer
from duolog.engine.scorers.shards import SHARDS, ShardKeeper, shard_of
from duolog.engine.session.runner import run_session
from duolog.scoring.rescore import rescore
from duolog.testing import Script, a_session, agent, human, streams
from duolog.testing.tools import message

KEY = CheckpointKey("marks", "1")
BRISK = LeaseTerms(looked_at=0.01)
FLEETING = LeaseTerms(lasts=0.0, renewed=3600.0, looked_at=0.01)  # others may take them at once


class Marks:
    """Scores every record, and counts them; may be held up at one of them.

    Args:
        at: the session and version where it is held up.
    """

    ref = ScorerRef(name="marks", version="1", config="")

    def __init__(self, at: tuple[str, int] | None = None) -> None:
        self.at = at
        self.reached = anyio.Event()
        self.go_on = anyio.Event()
        self.seen: list[tuple[str, int]] = []
        self.error: Exception | None = None

    def begin(self, session: str) -> SessionScorer:
        return self

    async def observe(self, record: Record) -> list[Measurement]:
        where = (record.session, record.version)
        self.seen.append(where)
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        if where == self.at:
            self.reached.set()
            await self.go_on.wait()
        scored = UtilityScored(scorer=self.ref, snapshot=record.version, value=0.5)
        return [Measurement(scored, f"record/{record.version}")]

    async def of(self, session: str) -> Sequence[Scorer]:
        return [self]


async def record(log: Store, *names: str) -> None:
    for name in names:
        user, other = (
            Script().say("a").pause(1).times(3).finish(),
            Script().hear().say("b").times(3),
        )
        await run_session(log, a_session(human(user), agent(other), id=name))


def following(log: Store, marks: Marks, terms: LeaseTerms = BRISK) -> ScorerDriver:
    assert isinstance(log, Leasing)
    return ScorerDriver(log, marks.of, KEY, leases=log.leases(), terms=terms, pace=Pace(at_once=8))


@asynccontextmanager
async def running(*scorers: ScorerDriver) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        for scorer in scorers:
            tasks.start_soon(scorer.run)
        yield
        tasks.cancel_scope.cancel()


async def until(reached: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not reached():  # noqa: ASYNC110
            await anyio.sleep(0.001)


async def settled(*scorers: ScorerDriver) -> None:
    """Waits until these have all shards, and nothing waits."""

    def reached() -> bool:
        stand = [scorer.statistics() for scorer in scorers]
        behind = any(one.lag or one.waiting for one in stand)
        return sum(one.shards for one in stand) == SHARDS and not behind

    await until(reached)


async def measured_once(log: Store, *names: str) -> bool:
    """Whether each session is measured as by one process alone, which reads it afterwards."""
    for name in names:
        found = await streams(log, name)
        async with open_log("memory://") as alone:
            await record(alone, name)
            await rescore(alone, name, [Marks()])
            if found != await streams(alone, name):
                return False
    return True


@pytest.fixture
def path(tmp_path: Path) -> str:
    return f"{tmp_path}/log.db"


async def test_what_is_there_and_what_comes_is_scored_and_not_looked_at_again(path: str) -> None:
    names = [f"s{number}" for number in range(6)]
    first, again = Marks(), Marks()
    async with open_log(path) as log:
        await record(log, *names[:3])
        scorer = following(log, first)
        async with running(scorer):
            await settled(scorer)
            await record(log, *names[3:])
            await settled(scorer)
        assert await measured_once(log, *names)
        assert len(first.seen) == len(set(first.seen)) == scorer.statistics().measured
        assert isinstance(log, Leasing)
        assert await log.leases().holders() == {}
        later = following(log, again)
        async with running(later):
            await settled(later)
        assert again.seen == []


async def test_processes_divide_the_sessions_and_take_over_from_who_leaves(path: str) -> None:
    names = [f"s{number}" for number in range(12)]
    marks = Marks(), Marks()
    async with open_log(path) as one, open_log(path) as other:
        scorers = following(one, marks[0]), following(other, marks[1])
        async with running(scorers[1]):
            async with running(scorers[0]):
                halves = {(SHARDS // 2, 2)}
                await until(
                    lambda: (
                        {(s.statistics().shards, s.statistics().processes) for s in scorers}
                        == halves
                    )
                )
                await record(one, *names[:8])
                await settled(*scorers)
            await record(other, *names[8:])
            await settled(scorers[1])
        assert await measured_once(other, *names)
    sessions = [{session for session, _ in one.seen} for one in marks]
    assert all(sessions)
    assert sessions[0].isdisjoint({*names[8:]})


async def test_who_was_taken_for_dead_loses_nothing_and_doubles_nothing(path: str) -> None:
    names = [f"s{number}" for number in range(4)]
    slow, quick = Marks(at=("s1", 3)), Marks()
    async with open_log(path) as one:
        await record(one, *names)
        late = following(one, slow, FLEETING)
        async with (
            running(late),
            open_log(path) as other,
        ):  # opened late, it knows how far the log is
            await slow.reached.wait()
            scorer = following(other, quick)
            async with running(scorer):
                await settled(scorer)
                assert await measured_once(other, *names)
                slow.go_on.set()
                await until(lambda: not late.statistics().working)
        assert await measured_once(one, *names)


async def test_who_was_killed_in_the_middle_is_continued_where_its_checkpoint_is(path: str) -> None:
    names = [f"s{number}" for number in range(4)]
    killed, next_one = Marks(at=("s2", 4)), Marks()
    async with open_log(path) as log:
        await record(log, *names)
        async with running(following(log, killed, FLEETING)):
            await killed.reached.wait()
        scorer = following(log, next_one)
        async with running(scorer):
            await settled(scorer)
        assert await measured_once(log, *names)


async def test_the_sessions_are_listed_once_for_all_shards(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_log(path) as log:
        await record(log, "s0")
        sessions, calls = type(log).sessions, []

        def counted(self: Store) -> AsyncIterator[SessionSummary]:
            calls.append(self)
            return sessions(self)

        monkeypatch.setattr(type(log), "sessions", counted)
        scorer = following(log, Marks())
        async with running(scorer):
            await settled(scorer)
        assert len(calls) == 1


async def test_the_checkpoints_of_all_shards_are_committed_together(path: str) -> None:
    names = [f"s{number}" for number in range(SHARDS)]
    shards = {shard_of(name) for name in names}
    async with open_log(path) as log:
        await record(log, *names)
        scorer = following(log, Marks())
        async with running(scorer):
            await settled(scorer)
            await scorer.save()
            position = (await log.append("s", [message("a")]))[0].position
            await settled(scorer)
            before = log.statistics().groups
            await scorer.save()
            assert log.statistics().groups - before < len(shards) // 2
        for shard in shards:
            assert await log.checkpoint(f"score/marks/{shard}-of-{SHARDS}", "1") >= position


async def test_no_checkpoint_passes_what_came_while_the_sessions_were_listed(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    early = "s"  # listed before it has news, the late one after that
    late = next(n for n in map(str, range(1000)) if shard_of(n) == shard_of(early))
    held, marks = Marks(at=(late, 2)), Marks()
    async with open_log(path) as log:
        for name in (early, late):
            await log.append(name, [message("a")])
        scorer = following(log, Marks())
        async with running(scorer):
            await settled(scorer)

        async def listed(self: Store) -> AsyncIterator[SessionSummary]:
            yield await log.summary(early)
            for name in (early, late):
                await log.append(name, [message("b")])
            yield await log.summary(late)

        def away(self: Store, **_: object) -> None:
            raise LogUnavailable("it cannot be read now")

        with monkeypatch.context() as patch:
            patch.setattr(type(log), "sessions", listed)
            patch.setattr(type(log), "subscribe", away)
            async with running(following(log, held)):
                await held.reached.wait()
        scorer = following(log, marks)
        async with running(scorer):
            await settled(scorer)
    assert (early, 2) in marks.seen


async def test_a_scorer_that_cannot_go_on_now_is_tried_again(path: str) -> None:
    marks = Marks()
    marks.error = SessionInterrupted("s0", "the model is away")
    async with open_log(path) as log:
        await record(log, "s0")
        scorer = following(log, marks)
        async with running(scorer):
            await settled(scorer)
        assert await measured_once(log, "s0")


async def test_a_session_without_scorers_or_contents_is_passed_over(path: str) -> None:
    async def none(session: str) -> Sequence[Scorer]:
        return []

    async with open_log(path) as log:
        await record(log, "s0", "s1")
        await log.forget("s1")
        assert isinstance(log, Leasing)
        scorer = ScorerDriver(log, none, KEY, leases=log.leases(), terms=BRISK)
        async with running(scorer):
            await settled(scorer)
        assert set(await streams(log, "s0")) == {TRACE}


async def test_shards_are_divided_fairly_among_any_number(path: str) -> None:
    assert {shard_of(f"s{number}") for number in range(1000)} == set(range(SHARDS))
    async with open_log(path) as log:
        assert isinstance(log, Leasing)

        async def nothing(shards: object) -> None:
            pass

        keepers = [
            ShardKeeper(
                LeaseHolder(log.leases(), BRISK),
                "x",
                on_taken=nothing,
                on_left=nothing,
                on_lost=lambda shard: None,
            )
            for _ in range(3)
        ]
        for _ in range(3):
            for keeper in keepers:
                await keeper.share()
        held = [shard for keeper in keepers for shard in keeper.mine]
        assert sorted(held) == list(range(SHARDS))
        assert {len(keeper.mine) for keeper in keepers} <= {10, 11}


async def test_a_shard_that_could_not_be_left_is_left_later(path: str) -> None:
    async with open_log(path) as log:
        assert isinstance(log, Leasing)
        failures = [LogUnavailable("the server is away")]

        async def nothing(shards: object) -> None:
            pass

        async def leave(shard: int) -> None:
            if failures:
                raise failures.pop()

        def keeper() -> ShardKeeper:
            holder = LeaseHolder(log.leases(), BRISK)
            return ShardKeeper(
                holder, "x", on_taken=nothing, on_left=leave, on_lost=lambda shard: None
            )

        one, other = keeper(), keeper()
        await one.share()
        await other.share()
        with pytest.raises(LogUnavailable):
            await one.share()
        await one.share()
        await other.share()
        assert len(one.mine) == len(other.mine) == SHARDS // 2


async def test_a_shard_that_is_lost_while_it_is_taken_up_is_not_worked_on(path: str) -> None:
    held: set[int] = set()
    lost = anyio.Event()

    async with open_log(path) as log:
        assert isinstance(log, Leasing)
        leases = log.leases()

        async def take(shards: Sequence[int]) -> None:
            await leases.claim(["score/x/shard/7"], "ben", 3600.0)
            await lost.wait()
            held.update(shards)

        async def nothing(shard: int) -> None:
            pass

        def lose(shard: int) -> None:
            held.discard(shard)
            lost.set()

        holder = LeaseHolder(leases, LeaseTerms(lasts=0.0, renewed=0.001))
        keeper = ShardKeeper(holder, "x", on_taken=take, on_left=nothing, on_lost=lose)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(holder.keep)
            await keeper.share()
            tasks.cancel_scope.cancel()
    assert held == keeper.mine == {*range(SHARDS)} - {7}
