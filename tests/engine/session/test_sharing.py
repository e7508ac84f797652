"""Several processes that run the same sessions into one log; here, several that opened one file."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest
from duolog.engine.errors import InvalidInput, VersionConflict
from duolog.engine.events import ScorerRef, UtilityScored
from duolog.engine.log.contract import Store
from duolog.engine.log.leases import LeaseTerms, Leasing
from duolog.engine.log.open import open_log
from duolog.engine.records import Record
from duolog.engine.scorers.protocol import Measurement, SessionScorer
from duolog.engine.session.context import ActorContext
from duolog.engine.session.runner import Session, SessionResult, run_session
from duolog.engine.session.sharing import lease_name
from duolog.engine.session.simulation import (
    Outcome,
    SessionElsewhere,
    SessionFailure,
    simulate,
)
from duolog.testing import Script, a_session, agent, human, played, streams
from gated_log import Gate

BRISK = LeaseTerms(looked_at=0.001)
FLEETING = LeaseTerms(lasts=0.0, renewed=0.001, looked_at=0.001)  # each has run out at once


class Marks:
    """Scores every record."""

    ref = ScorerRef(name="marks", version="1", config="")

    def begin(self, session: str) -> SessionScorer:
        return self

    async def observe(self, record: Record) -> list[Measurement]:
        scored = UtilityScored(scorer=self.ref, snapshot=record.version, value=0.5)
        return [Measurement(scored, f"record/{record.version}")]


def chat(name: str, helper: Callable[[ActorContext], object] | None = None) -> Session:
    user = Script().say("a").pause(1).times(3).finish()
    other = Script().hear().say("b").times(3)
    return a_session(human(user), agent(helper or other), id=name, scorers=(Marks(),))  # type: ignore[arg-type]


def held_up(reached: anyio.Event, go_on: anyio.Event) -> Callable[[], Session]:
    """The same session, whose agent is held up once, at its start."""
    helper = Script().hear().say("b").times(3)

    async def agent_of(context: ActorContext) -> None:
        if not reached.is_set():
            reached.set()
            await go_on.wait()
        await helper(context)

    return lambda: chat("s0", agent_of)


@asynccontextmanager
async def two(path: Path) -> AsyncIterator[tuple[Store, Store]]:
    async with open_log(f"{path}/log.db") as one, open_log(f"{path}/log.db") as other:
        yield one, other


async def whole(log: Store, *names: str) -> bool:
    """Whether the log holds these sessions as one process alone would have recorded them."""
    return all([await streams(log, name) == (await played(chat(name))).streams for name in names])


async def test_they_share_the_work_and_each_returns_when_all_is_done(tmp_path: Path) -> None:
    names = [f"s{number}" for number in range(12)]
    outcomes: tuple[list[Outcome], list[Outcome]] = ([], [])
    helper = Script().hear().say("b").times(3)
    begun, both = set[int](), anyio.Event()
    async with two(tmp_path) as logs:

        async def run(index: int) -> None:
            async def agent_of(context: ActorContext) -> None:
                begun.add(index)
                if len(begun) == 2:
                    both.set()
                await both.wait()  # else one of them may be through before the other has begun
                await helper(context)

            makers = [partial(chat, name, agent_of) for name in names]
            note = outcomes[index].append
            await simulate(logs[index], makers, concurrency=2, on_outcome=note, terms=BRISK)
            assert await whole(logs[index], *names)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, 0)
            tasks.start_soon(run, 1)
        assert isinstance(logs[0], Leasing)
        assert await logs[0].leases().holders() == {}
    ran = [[o.session for o in some if isinstance(o, SessionResult)] for some in outcomes]
    assert sorted(ran[0] + ran[1]) == sorted(names)
    assert all(ran)
    for some in outcomes:
        assert len(some) == len(names)
        assert not any(isinstance(outcome, SessionFailure) for outcome in some)


async def test_who_begins_one_session_after_another_leaves_some_for_who_joins(
    tmp_path: Path,
) -> None:
    reached, go_on, outcomes = anyio.Event(), anyio.Event(), list[Outcome]()
    names = ("s1", "s2", "s3")

    def note(outcome: Outcome) -> None:
        outcomes.append(outcome)
        if len(outcomes) == len(names):
            go_on.set()

    async with two(tmp_path) as (one, other), anyio.create_task_group() as tasks:
        rest: list[Callable[[], Session]] = [partial(chat, name) for name in names]
        makers = [held_up(reached, go_on), *rest]
        tasks.start_soon(partial(simulate, one, makers, terms=BRISK, pace=3600.0))
        await reached.wait()
        makers = [lambda: chat("s0"), *rest]
        await simulate(other, makers, on_outcome=note, terms=BRISK)
        assert await whole(other, "s0", *names)
    ran = [outcome.session for outcome in outcomes if isinstance(outcome, SessionResult)]
    assert sorted(ran) == [*names]  # all but the one that the first has begun


async def test_the_pace_ends_with_the_sessions(tmp_path: Path) -> None:
    async with open_log(f"{tmp_path}/log.db") as log:
        await simulate(log, [partial(chat, name) for name in ("s0", "s1")], pace=3600.0)
        assert await whole(log, "s0", "s1")
        with pytest.raises(InvalidInput, match="seconds apart"):
            await simulate(log, [], pace=-1.0)


async def test_what_one_that_died_had_begun_is_resumed_once_its_lease_has_run_out(
    tmp_path: Path,
) -> None:
    reached, outcomes = anyio.Event(), list[Outcome]()
    async with two(tmp_path) as (one, other):
        assert isinstance(other, Leasing)
        leases = other.leases()
        async with one.tap(), anyio.create_task_group() as dying:  # each record is written at once
            dying.start_soon(run_session, one, held_up(reached, anyio.Event())())
            await reached.wait()
            dying.cancel_scope.cancel()
        await leases.claim([lease_name("s0")], "the dead", 3600.0)
        async with anyio.create_task_group() as tasks:
            note = outcomes.append
            makers = [partial(chat, "s0"), partial(chat, "s1")]
            run = partial(simulate, one, makers, on_outcome=note, terms=BRISK)
            tasks.start_soon(run)
            async with other.subscribe(session="s1") as records:
                async for record in records:
                    if record.kind == "SessionClosed":
                        break
            assert (await other.summary("s0")).state == "open"  # for as long as it is held
            await leases.claim([lease_name("s0")], "the dead", 0.0)
        assert await whole(other, "s0", "s1")
    [resumed] = [o for o in outcomes if isinstance(o, SessionResult) and o.session == "s0"]
    assert resumed.resumed > 0


async def test_who_was_taken_for_dead_stops_and_sees_another_finish(tmp_path: Path) -> None:
    reached, outcomes = anyio.Event(), list[Outcome]()
    async with (
        two(tmp_path) as (one, other),
        one.tap(),  # each record is written at once, however long the other takes to begin
        anyio.create_task_group() as tasks,
    ):
        assert isinstance(other, Leasing)
        lease = lease_name("s0")
        slow = held_up(reached, anyio.Event())  # for ever
        note = outcomes.append
        tasks.start_soon(partial(simulate, one, [slow], on_outcome=note, terms=FLEETING))
        await reached.wait()
        while lease not in await other.leases().claim([lease], "ben", 3600.0):
            pass  # it has just been renewed
        await run_session(other, chat("s0"))
        await other.leases().release([lease], "ben")
    async with open_log(f"{tmp_path}/log.db") as log:
        assert await whole(log, "s0")
    assert outcomes == [SessionElsewhere(session="s0", utility=0.5)]


async def test_an_append_of_who_was_taken_for_dead_is_refused_and_nothing_is_doubled(
    tmp_path: Path,
) -> None:
    reached, go_on, outcomes = anyio.Event(), anyio.Event(), list[Outcome]()
    async with (
        two(tmp_path) as (one, other),
        one.tap(),  # each record is written at once, however long the other takes to begin
        anyio.create_task_group() as tasks,
    ):
        note = outcomes.append
        makers = [held_up(reached, go_on)]
        tasks.start_soon(partial(simulate, one, makers, on_outcome=note, terms=BRISK))
        await reached.wait()
        await run_session(other, chat("s0"))  # without a lease, as if that had been lost unnoticed
        go_on.set()
    async with open_log(f"{tmp_path}/log.db") as log:
        assert await whole(log, "s0")
    assert outcomes == [SessionElsewhere(session="s0", utility=0.5)]


class OwnLeases:
    """Leases that are free, until they are to be lost: those that are renewed then are."""

    def __init__(self) -> None:
        self.lost = False

    async def claim(self, names: Sequence[str], holder: str, seconds: float) -> frozenset[str]:
        return frozenset() if self.lost else frozenset(names)

    async def release(self, names: Sequence[str], holder: str) -> None:
        pass

    async def holders(self, prefix: str = "") -> Mapping[str, str]:
        return {}


class SharedGate(Gate):
    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.own = OwnLeases()

    def leases(self) -> OwnLeases:
        return self.own


async def test_who_loses_a_lease_runs_all_others_however_the_session_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcomes: list[Outcome] = []
    begun: list[str] = []
    async with open_log("memory://") as log:
        gate = SharedGate(log)

        async def run(log: Store, session: Session, *, fresh: bool) -> SessionResult:
            if session.id == "s0" and not begun:
                begun.append(session.id)
                gate.own.lost = True
                with contextlib.suppress(asyncio.CancelledError):
                    await anyio.sleep_forever()
                gate.own.lost = False
                raise asyncio.CancelledError  # as a library may: it is not the scope's own
            return await run_session(log, session, fresh=fresh)

        monkeypatch.setattr("duolog.engine.session.simulation.run_session", run)
        makers = [partial(chat, f"s{number}") for number in range(3)]
        await simulate(gate.log, makers, concurrency=1, on_outcome=outcomes.append, terms=FLEETING)
    assert {one.session for one in outcomes if isinstance(one, SessionResult)} == {"s0", "s1", "s2"}


async def test_a_session_that_others_keep_writing_to_is_given_up_after_some_tries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = Counter[str]()
    outcomes: list[Outcome] = []

    async def run(log: Store, session: Session, *, fresh: bool) -> SessionResult:
        tried[session.id] += 1
        if tried[session.id] < {"s0": 8, "s1": 100}[session.id]:
            raise VersionConflict(session.id, "trace", 1, 2)
        return await run_session(log, session, fresh=fresh)

    monkeypatch.setattr("duolog.engine.session.simulation.run_session", run)
    async with open_log(f"{tmp_path}/log.db") as log:
        makers = [partial(chat, f"s{number}") for number in range(2)]
        await simulate(log, makers, on_outcome=outcomes.append, terms=BRISK)
    ended = {one.session: type(one) for one in outcomes if not isinstance(one, str)}
    assert ended == {"s0": SessionResult, "s1": SessionFailure}
    assert tried == {"s0": 8, "s1": 8}


@pytest.mark.parametrize("count", [2, 3])
async def test_one_that_is_named_twice_is_run_once(tmp_path: Path, count: int) -> None:
    outcomes: list[Outcome] = []
    async with two(tmp_path) as (one, _):
        makers = [partial(chat, "s0")] * count
        await simulate(one, makers, on_outcome=outcomes.append, terms=BRISK)
        assert await whole(one, "s0")
    assert sum(isinstance(outcome, SessionResult) for outcome in outcomes) == 1
    assert len(outcomes) == count
