"""Scoring a log as it grows, by several processes; here, by several that opened one file."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path

import anyio
import pytest
from duolog.engine.errors import SessionInterrupted
from duolog.engine.events import ScorerRef, UtilityScored
from duolog.engine.log.contract import Store
from duolog.engine.log.follower import CheckpointKey
from duolog.engine.log.leases import LeaseHolder, LeaseTerms, Leasing
from duolog.engine.log.open import open_log
from duolog.engine.records import TRACE, Record
from duolog.engine.scorers.division import Division, IsNear
from duolog.engine.scorers.driver import Pace, ScorerDriver
from duolog.engine.scorers.protocol import Measurement, Scorer, SessionScorer, stream_of
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
        self.begun_with: dict[str, int] = {}

    def begin(self, session: str) -> SessionScorer:
        return Begun(self, session)

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


class Begun:
    """The marks of one session, which say what was measured of it before."""

    def __init__(self, marks: Marks, session: str) -> None:
        self._marks = marks
        self._session = session

    def attend(
        self, recorded: Sequence[Record], excused: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._marks.begun_with[self._session] = len(recorded)

    async def observe(self, record: Record) -> list[Measurement]:
        return await self._marks.observe(record)


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
    with anyio.fail_after(120):
        while not reached():  # noqa: ASYNC110
            await anyio.sleep(0.001)


async def settled(*scorers: ScorerDriver) -> None:
    """Waits until nothing waits, and they see each other and the same records."""

    def reached() -> bool:
        stand = [scorer.statistics() for scorer in scorers]
        apart = len({one.position for one in stand}) > 1
        behind = apart or any(one.lag or one.waiting for one in stand)
        return all(one.processes == len(scorers) for one in stand) and not behind

    await until(reached)
    for scorer in scorers:
        await scorer.settle()


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
    later = [f"later{number}" for number in range(4)]
    marks = Marks(), Marks()
    async with open_log(path) as one, open_log(path) as other:
        scorers = following(one, marks[0]), following(other, marks[1])
        async with running(scorers[1]):
            async with running(scorers[0]):
                await until(lambda: {s.statistics().processes for s in scorers} == {2})
                divided = [_sessions_of(scorer, 4) for scorer in scorers]
                await record(one, *divided[0], *divided[1])
                await settled(*scorers)
            await record(other, *later)
            await settled(scorers[1])
        assert await measured_once(other, *divided[0], *divided[1], *later)
    sessions = [{session for session, _ in one.seen} for one in marks]
    assert sessions == [{*divided[0]}, {*divided[1], *later}]


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


async def test_the_checkpoint_waits_for_the_sessions_of_other_processes(path: str) -> None:
    held, free = Marks(), Marks()
    async with open_log(path) as one, open_log(path) as other:
        scorers = following(one, held), following(other, free)
        async with running(*scorers):
            await until(lambda: {s.statistics().processes for s in scorers} == {2})
            divided = [_sessions_of(scorer, 6) for scorer in scorers]
            names = [*divided[0], *divided[1]]
            held.at = divided[0][0], 3
            await record(one, *names)
            await held.reached.wait()
            await until(lambda: not scorers[1].statistics().waiting)
            await scorers[1].save()
            name, version = held.at
            unmeasured = (await anext(one.read(name, after_version=version - 1))).position
            assert await one.checkpoint(*KEY) < unmeasured
            assert (divided[1][0], 1) in free.seen
            held.go_on.set()
            await settled(*scorers)

            async def is_saved() -> bool:
                await scorers[1].save()
                return await one.checkpoint(*KEY) > unmeasured

            with anyio.fail_after(120):
                while not await is_saved():  # noqa: ASYNC110  (of two processes)
                    await anyio.sleep(0.01)
        assert await measured_once(one, *names)
    assert {name for name, _ in held.seen}.isdisjoint(name for name, _ in free.seen)


def _sessions_of(scorer: ScorerDriver, how_many: int) -> list[str]:
    """Names of sessions that fall to this process: which do depends on its own, partly random, name."""
    division = scorer._division
    assert division is not None
    theirs = (f"s{n}" for n in itertools.count() if division.wait(f"s{n}", 1) is not None)
    return list(itertools.islice(theirs, how_many))


class Writers:
    """Which process wrote which session last."""

    def __init__(self) -> None:
        self.last: dict[str, str] = {}

    def of(self, process: str) -> IsNear:
        return lambda session, version: self.last.get(session) == process


@pytest.fixture
def writers() -> Writers:
    return Writers()


def recording(log: Store, marks: Marks, near: IsNear, terms: LeaseTerms) -> ScorerDriver:
    assert isinstance(log, Leasing)
    return ScorerDriver(log, marks.of, KEY, leases=log.leases(), terms=terms, is_near=near)


PATIENT = LeaseTerms(looked_at=0.01, grace=3600.0)


@asynccontextmanager
async def two_recorders(
    path: str, writers: Writers, marks: tuple[Marks, Marks], terms: LeaseTerms
) -> AsyncIterator[tuple[Store, tuple[ScorerDriver, ScorerDriver]]]:
    """Two processes, *one* and *other*, that record and score, once they see each other."""
    async with open_log(path) as one, open_log(path) as other:
        scorers = (
            recording(one, marks[0], writers.of("one"), terms),
            recording(other, marks[1], writers.of("other"), terms),
        )
        async with running(*scorers):
            await until(lambda: {s.statistics().processes for s in scorers} == {2})
            yield one, scorers


async def test_the_process_that_wrote_a_session_last_scores_it(path: str, writers: Writers) -> None:
    names = [f"s{number}" for number in range(10)]
    marks = Marks(), Marks()
    async with two_recorders(path, writers, marks, PATIENT) as (one, scorers):
        for name in names:
            writers.last[name] = "one" if int(name[1:]) % 2 else "other"
        await record(one, *names)
        await settled(*scorers)
        assert await measured_once(one, *names)
    sessions = [{session for session, _ in one.seen} for one in marks]
    assert sessions == [{*names[1::2]}, {*names[::2]}]
    assert all(len(one.seen) == len(set(one.seen)) for one in marks)


async def test_a_session_follows_the_process_that_writes_it(path: str, writers: Writers) -> None:
    marks = Marks(), Marks()
    async with two_recorders(path, writers, marks, PATIENT) as (one, scorers):
        for number, who in enumerate(("one", "one", "other", "other", "one"), 1):
            writers.last["s"] = who
            await one.append("s", [message(f"m{number}")])
            seen = marks[0] if who == "one" else marks[1]
            await until(lambda seen=seen, n=number: ("s", n) in seen.seen)  # type: ignore[misc]
            await settled(*scorers)
        scored = [r.event async for r in one.read("s", stream=stream_of(Marks.ref))]
    versions = [event.snapshot for event in scored if isinstance(event, UtilityScored)]
    assert versions == [1, 2, 3, 4, 5]


async def test_what_another_process_has_measured_is_not_scored_again(
    path: str, writers: Writers
) -> None:
    """The process that replaces the first one may see that it is the writer before it has looked at any record."""
    marks = Marks(), Marks()
    seldom = LeaseTerms(looked_at=1.0, grace=3600.0)  # so that no note has come by then
    async with two_recorders(path, writers, marks, seldom) as (one, _):
        names = [f"s{number}" for number in range(8)]
        for version, writer in enumerate(("one", "other"), 1):
            writers.last |= dict.fromkeys(names, writer)
            for name in names:
                await one.append(name, [message(writer)])
            seen = marks[0] if writer == "one" else marks[1]
            last = {(name, version) for name in names}
            await until(lambda seen=seen, last=last: last <= {*seen.seen})  # type: ignore[misc]
    assert {name for name, _ in marks[1].seen} == {*names}
    assert marks[1].begun_with == dict.fromkeys(names, 1)


async def test_if_the_writer_does_not_score_another_process_does(
    path: str, writers: Writers
) -> None:
    """The process that wrote the session was killed, or does not watch."""
    marks = Marks(), Marks()
    terms = LeaseTerms(looked_at=0.01, grace=0.05)
    async with two_recorders(path, writers, marks, terms) as (one, scorers):
        writers.last["s0"] = "a third one"
        await record(one, "s0")
        await settled(*scorers)
        assert await measured_once(one, "s0")
    assert sorted(bool(one.seen) for one in marks) == [False, True]


async def test_sessions_of_a_process_that_was_killed_are_taken_over(
    path: str, writers: Writers
) -> None:
    names = [f"s{number}" for number in range(6)]
    killed, left = Marks(at=("s3", 2)), Marks()
    terms = LeaseTerms(lasts=1.0, renewed=3600.0, looked_at=0.01, grace=0.0)
    async with open_log(path) as log, open_log(path) as other:
        writers.last.update(dict.fromkeys(names, "killed"))
        async with running(recording(log, killed, writers.of("killed"), terms)):
            await record(log, *names)
            await killed.reached.wait()
            assert isinstance(log, Leasing)
            leases = await log.leases().holders()
        # As a kill leaves them: nothing was given back.
        for name, holder in leases.items():
            await log.leases().claim([name], holder, 1.0)
        scorer = recording(other, left, writers.of("left"), LeaseTerms(looked_at=0.01, grace=0.0))
        async with running(scorer):
            with anyio.fail_after(120):
                while not await measured_once(log, *names):  # noqa: ASYNC110
                    await anyio.sleep(0.05)


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


async def test_sessions_are_divided_fairly_among_any_number(path: str) -> None:
    names = [f"s{number}" for number in range(300)]
    async with open_log(path) as log:
        assert isinstance(log, Leasing)
        divisions = [division(log, f"machine/{number}") for number in range(3)]
        for one in (*divisions, *divisions):
            await one.look()
        of = [[name for name in names if one.wait(name, 1) is not None] for one in divisions]
        assert sorted(name for found in of for name in found) == sorted(names)
        assert all(60 < len(found) < 140 for found in of)
        assert [one.processes for one in divisions] == [3, 3, 3]


async def test_a_session_has_one_process_until_it_is_left(path: str) -> None:
    async with open_log(path) as log:
        assert isinstance(log, Leasing)
        one, other = division(log), division(log)
        assert await one.claim(["s", "t"]) == {"s", "t"}
        assert await other.claim(["s", "u"]) == {"u"}
        one.leave("s")
        assert one.mine == {"t"}
        assert await other.claim(["s"]) == frozenset()  # not given back yet
        await one.release()
        assert await other.claim(["s"]) == {"s"}


async def test_a_session_that_is_lost_is_not_worked_on(path: str) -> None:
    lost = anyio.Event()
    async with open_log(path) as log:
        assert isinstance(log, Leasing)
        holder = LeaseHolder(log.leases(), LeaseTerms(lasts=0.0, renewed=0.001))
        one = Division(holder, "x", is_near=None, grace=0.0, on_lost=lambda session: lost.set())
        async with anyio.create_task_group() as tasks:
            await one.claim(["s", "t"])
            await log.leases().claim(["score/x/session/s"], "ben", 3600.0)
            tasks.start_soon(holder.keep)
            with anyio.fail_after(120):
                await lost.wait()
            tasks.cancel_scope.cancel()
        assert one.mine == {"t"}


def division(log: Leasing, name: str = "") -> Division:
    holder = LeaseHolder(log.leases(), BRISK)
    holder.name = name or holder.name
    return Division(holder, "x", is_near=None, grace=0.0, on_lost=lambda session: None)
