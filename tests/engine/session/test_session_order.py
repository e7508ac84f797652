"""One seed, one session: whatever else the machine is doing, and however many viewers follow."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import anyio
import msgspec
import pytest
from anyio.lowlevel import checkpoint
from anyio.to_thread import run_sync
from duolog.engine.events import ActionResolved, ScorerRef, UtilityScored
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.records import TRACE, Record
from duolog.engine.scorers.protocol import Measurement, SessionScorer
from duolog.engine.session.actors import Policy, playing
from duolog.engine.session.decisions import Decision
from duolog.engine.session.limits import Limits
from duolog.engine.session.runner import Session, run_session
from duolog.engine.session.simulation import simulate
from duolog.engine.session.view import View
from duolog.testing import (
    Improviser,
    Script,
    Workshop,
    a_session,
    agent,
    human,
    played,
    streams,
)


class Busy:
    """A policy that takes real time over its decisions: on the wall, or in a thread."""

    def __init__(self, policy: Policy, delay: float) -> None:
        self._policy = policy
        self._delay = delay

    async def decide(self, view: View) -> Decision:
        if view.version % 3 == 0:
            await anyio.sleep(self._delay)
        elif view.version % 3 == 1:
            await run_sync(time.monotonic)
        return await self._policy.decide(view)


class Counting:
    """A scorer that measures every record, and takes its time."""

    def __init__(self, name: str = "counting") -> None:
        self.ref = ScorerRef(name=name, version="1", config="")
        self._count = 0

    def begin(self, session: str) -> SessionScorer:
        return Counting(self.ref.name)

    async def observe(self, record: Record) -> Sequence[Measurement]:
        await checkpoint()
        self._count += 1
        scored = UtilityScored(scorer=self.ref, round=self._count, value=0.5)
        return [Measurement(scored, f"record/{record.version}")]


def improvised(
    seed: int = 7, *, id: str = "session", delay: float | None = None, length: int = 15
) -> Session:
    actions = ("look", "search", "build", "fumble")

    def actor(decisions: int | None) -> Policy:
        policy = Improviser(decisions, actions)
        return policy if delay is None else Busy(policy, delay)

    return a_session(
        human(playing(actor(length))),
        agent(playing(actor(length)), "left"),
        agent(playing(actor(None)), "right"),
        id=id,
        seed=seed,
        environment=Workshop(),
        request="Do something.",
        limits=Limits(actions=60),
    )


async def alone(session: Session) -> dict[str, list[Record]]:
    return (await played(session)).streams


@pytest.mark.parametrize("seed", range(8))
async def test_two_runs_of_one_seed_are_alike_byte_for_byte(seed: int) -> None:
    first = await alone(improvised(seed))
    assert first == await alone(improvised(seed))
    assert len(first[TRACE]) > 12


async def test_another_seed_is_another_interleaving() -> None:
    """With actors that do the same whatever the seed: only whose turn it is differs."""

    def session(seed: int) -> Session:
        beat = Script().say("tick").pause(1).times(5)
        return a_session(human(beat), agent(beat, "left"), agent(beat, "right"), seed=seed)

    orders = set()
    for seed in range(6):
        trace = (await alone(session(seed)))[TRACE]
        orders.add(tuple(record.actor for record in trace))
        assert sorted(r.time for r in trace) == [r.time for r in trace]
    assert len(orders) == 6


async def test_real_waiting_changes_nothing() -> None:
    fast = await alone(improvised())
    slow = await alone(improvised(delay=0.002))
    assert slow == fast


@pytest.mark.slow
@pytest.mark.parametrize("others", [200, pytest.param(1000, marks=pytest.mark.soak)])
async def test_a_session_among_many_others_is_the_session_alone(others: int) -> None:
    watched = {f"watched-{seed}": seed for seed in range(5)}
    expected = {name: await alone(improvised(seed, id=name)) for name, seed in watched.items()}

    def crowd(number: int) -> Session:
        return improvised(number, id=f"crowd-{number}", delay=0.001, length=4)

    def watched_one(name: str) -> Session:
        return improvised(watched[name], id=name, delay=0.003)

    makers: list[Callable[[], Session]] = [partial(crowd, number) for number in range(others)]
    for index, name in enumerate(watched):
        makers.insert(index * others // 5, partial(watched_one, name))
    async with open_log("memory://") as log:
        await simulate(log, makers, concurrency=others + 5)
        for name, wanted in expected.items():
            assert await streams(log, name) == wanted


async def test_work_in_flight_holds_the_clock() -> None:
    """A decision that takes real time takes no session time, and no other actor runs meanwhile."""
    spans: list[tuple[str, str]] = []

    class Thinking:
        async def decide(self, view: View) -> Decision:
            spans.append(("begin", view.me))
            before = view.now
            await run_sync(time.monotonic)
            await anyio.sleep(0.001)
            assert view.now == before
            spans.append(("end", view.me))
            return await improviser[view.me].decide(view)

    improviser = {name: Improviser(8) for name in ("user", "agent")}
    thinking = playing(Thinking())
    result = await alone(a_session(human(thinking), agent(thinking)))
    assert len(result[TRACE]) > 8
    assert len(spans) > 10
    for begin, end in zip(spans[::2], spans[1::2], strict=False):
        assert (begin[0], end[0]) == ("begin", "end")
        assert begin[1] == end[1]


# --- lookers-on --------------------------------------------------------------------------------------


async def watched(log: EventLog, session: Session) -> dict[str, list[Record]]:
    """Runs a session that a subscription, a session subscription and two taps follow."""
    followed: list[Record] = []
    async with anyio.create_task_group() as tasks:

        async def follow(only: str | None) -> None:
            async with log.subscribe(session=only) as subscription:
                async for record in subscription:
                    followed.append(record)
                    if record.kind == "SessionClosed":
                        break

        async def glance(size: int) -> None:
            async with log.tap(buffer=size) as tap:
                async for _ in tap:
                    await anyio.sleep(0.001)

        tasks.start_soon(follow, None)
        tasks.start_soon(follow, session.id)
        tasks.start_soon(glance, 1)
        tasks.start_soon(glance, 1000)
        await anyio.wait_all_tasks_blocked()
        await run_session(log, session)
        found = await streams(log, session.id)
        await anyio.wait_all_tasks_blocked()
        assert len(followed) == 2 * len(found[TRACE])
        tasks.cancel_scope.cancel()
    return found


async def test_an_observer_changes_nothing() -> None:
    expected = await alone(improvised())
    async with open_log("memory://") as log:
        assert await watched(log, improvised()) == expected


async def test_a_scorer_adds_its_stream_and_changes_no_other() -> None:
    bare = await alone(improvised())
    one = await alone(msgspec.structs.replace(improvised(), scorers=(Counting("one"),)))
    both = await alone(
        msgspec.structs.replace(improvised(), scorers=(Counting("two"), Counting("one")))
    )
    assert set(one) == {TRACE, "one@1"}
    assert set(both) == {TRACE, "one@1", "two@1"}
    assert one[TRACE] == both[TRACE] == bare[TRACE]
    assert one["one@1"] == both["one@1"]
    assert len(one["one@1"]) == len(bare[TRACE])


async def test_scorers_have_measured_before_the_next_actor_is_chosen() -> None:
    async with open_log("memory://") as log:
        await run_session(log, msgspec.structs.replace(improvised(), scorers=(Counting(),)))
        records = [record async for record in log.read_all()]
    measured = 0
    for index, record in enumerate(records):
        if record.stream != TRACE:
            measured = int((record.cause or "").removeprefix("trace/"))
        elif index and records[index - 1].stream != TRACE:
            assert measured == record.version - 1, "all before it was measured"


async def test_what_takes_turns_at_once_does_not_depend_on_the_order_of_players() -> None:
    session = improvised()
    turned = msgspec.structs.replace(session, players=session.players[::-1])
    first, second = await alone(improvised()), await alone(turned)
    assert first == second


async def test_outcomes_come_in_order_of_time_and_some_out_of_order_of_actions() -> None:
    found = [await alone(improvised(seed)) for seed in range(6)]
    disordered = 0
    for trace in (found[TRACE] for found in found):
        assert [r.time for r in trace] == sorted(r.time for r in trace)
        resolved = [r.event.action for r in trace if isinstance(r.event, ActionResolved)]
        disordered += resolved != sorted(resolved)
    assert disordered > 0
