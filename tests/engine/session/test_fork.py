"""Forks: with the same players and seed, they repeat the rest of their origin byte for byte at any
cut; with other players, the remaining ones continue in their old state; and forks resume.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import msgspec
import pytest
from duolog.engine.errors import Divergence, InvalidInput
from duolog.engine.events import ActionResolved, Origin, SessionClosed, SessionOpened
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.records import TRACE, Draft, Record
from duolog.engine.session.fork import end_before_round, fork
from duolog.engine.session.runner import Session, run_session
from duolog.engine.task import Cell, Setting
from duolog.examples.travel.travel_task import travel_task
from duolog.scoring.stopping import ToleranceStop

pytestmark = pytest.mark.slow

TASK = travel_task()


AGENTS = ("auto", "one-stage", "two-stage", "adaptive")
USERS = ("proactive", "lazy")


def planned(
    agent: str, instance: int = 1, *, user: str = "proactive", seed: int | None = None
) -> Session:
    cell = Cell(agent=agent, user=user, instance=str(instance), seed=7)
    session = TASK.session(cell, Setting())
    if seed is None:
        return session
    opened = msgspec.structs.replace(session.opened, seed=seed)
    return msgspec.structs.replace(session, opened=opened)


async def records_of(log: EventLog, session: str) -> list[Record]:
    """A session's records: its trace, and its measurements."""
    return [record async for record in log.read_all(session=session)]


async def trace_of(log: EventLog, session: str) -> list[Record]:
    return [record async for record in log.read(session)]


def content(record: Record) -> tuple[object, ...]:
    return (
        record.stream,
        record.version,
        record.kind,
        record.time,
        record.actor,
        record.role,
        record.caller_id,
        record.cause,
        record.seen,
        record.body,
    )


def after_opening(records: Sequence[Record]) -> list[tuple[object, ...]]:
    """All that the records of a session hold, but for the opening, in order of stream and version."""
    return sorted(content(r) for r in records if (r.stream, r.version) != (TRACE, 1))


async def played(log: EventLog, session: Session) -> list[Record]:
    """The records of a session that was run."""
    await run_session(log, session)
    return await records_of(log, session.id)


async def origin(log: EventLog) -> list[Record]:
    one = planned("one-stage")
    await run_session(log, one)
    return await trace_of(log, one.id)


@pytest.mark.parametrize("number", [2, 3, 5])
async def test_a_fork_shares_all_before_its_round_and_names_its_origin(number: int) -> None:
    async with open_log("memory://") as log:
        past = await origin(log)
        version = end_before_round(past, number)
        forked = fork(planned("two-stage"), past, version)
        result = await run_session(log, forked)
        trace = await trace_of(log, forked.id)
    assert [content(r) for r in trace[1:version]] == [content(r) for r in past[1:version]]
    opened = trace[0].event
    assert isinstance(opened, SessionOpened)
    assert opened.forked_from == Origin(session=past[0].session, version=version)
    assert [p.policy for p in opened.participants] == ["rules", "two-stage"]
    assert result.reason in ("finished", "abandoned")
    assert result.rounds >= number
    assert all(a.time <= b.time for a, b in itertools.pairwise(trace))


@pytest.mark.parametrize(
    ("sessions", "step"), [(1, 4), pytest.param(20, 1, marks=pytest.mark.soak)]
)
@pytest.mark.parametrize("agent", AGENTS)
async def test_the_same_players_and_seed_give_the_rest_of_the_origin_wherever_it_is_cut(
    agent: str, sessions: int, step: int
) -> None:
    for instance in range(sessions):
        user = USERS[instance % 2]
        async with open_log("memory://") as log:
            past = await played(log, planned(agent, instance, user=user))
            end = sum(record.stream == TRACE for record in past)
            for cut in range(2 + instance % step, end, step):
                forked = fork(planned(agent, instance, user=user), past, cut)
                assert after_opening(await played(log, forked)) == after_opening(past), cut


async def test_what_was_measured_before_the_cut_is_taken_over_and_not_measured_again() -> None:
    async with open_log("memory://") as log:
        past = await played(log, planned("two-stage"))
        cut = max(r.version for r in past if r.kind == "SnapshotTaken")
        forked = fork(planned("two-stage"), past, cut)
        inherited = forked.inherited
        assert inherited is not None
        assert {s: len(drafts) for s, drafts in inherited.measured.items()} == {
            "travel@2": sum(
                r.stream == "travel@2" and int((r.cause or "").split("/")[1]) <= cut for r in past
            )
        }
        bare = msgspec.structs.replace(
            forked, inherited=msgspec.structs.replace(inherited, measured={})
        )
        assert after_opening(await played(log, bare)) == after_opening(past)


@pytest.mark.parametrize("agent", AGENTS[1:])
async def test_another_seed_draws_otherwise_after_the_cut_only(agent: str) -> None:
    async with open_log("memory://") as log:
        past = await played(log, planned(agent))
        trace = [record for record in past if record.stream == TRACE]
        for number in (2, 3):
            cut = end_before_round(trace, number)
            rests = []
            for seed in (1, 2):
                forked = fork(planned(agent, seed=seed), past, cut)
                await run_session(log, forked)
                now = await trace_of(log, forked.id)
                assert [content(r) for r in now[1:cut]] == [content(r) for r in trace[1:cut]]
                rests.append([content(r) for r in now[cut:]])
            assert rests[0] != rests[1]
            assert [content(r) for r in trace[cut:]] not in rests


async def test_who_plays_on_has_its_own_state_where_another_agent_takes_over() -> None:
    """The human has rated the round before the cut, and does not rate it again."""
    async with open_log("memory://") as log:
        past = await played(log, planned("one-stage"))
        trace = [record for record in past if record.stream == TRACE]
        for record in trace:
            if record.kind != "ProgressRated":
                continue
            forked = fork(planned("two-stage"), past, record.version, past=planned("one-stage"))
            await run_session(log, forked)
            now = await trace_of(log, forked.id)
            after = ("MessageSent", "SnapshotTaken", "SessionClosed", "ProfileChanged")
            assert now[record.version].kind in after
            assert content(now[record.version]) == content(trace[record.version])


@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("one-stage", "proactive"), ("two-stage", "proactive")),
        (("one-stage", "proactive"), ("auto", "proactive")),
        (("two-stage", "proactive"), ("two-stage", "lazy")),
        (("two-stage", "lazy"), ("adaptive", "proactive")),
        (("auto", "proactive"), ("one-stage", "proactive")),
    ],
)
async def test_anybody_can_take_over_anywhere(
    before: tuple[str, str], after: tuple[str, str], step: int
) -> None:
    async with open_log("memory://") as log:
        past = await played(log, planned(before[0], user=before[1]))
        trace = [record for record in past if record.stream == TRACE]
        for cut in range(2, len(trace), step):
            forked = fork(
                planned(after[0], user=after[1]),
                past,
                cut,
                past=planned(before[0], user=before[1]),
            )
            result = await run_session(log, forked)
            assert result.reason in ("finished", "abandoned", "stalled", "limit"), cut
            now = await trace_of(log, forked.id)
            assert [content(r) for r in now[1:cut]] == [content(r) for r in trace[1:cut]]


async def test_a_fork_of_a_fork_executes_the_part_of_each_of_its_players() -> None:
    async with open_log("memory://") as log:
        past = await played(log, planned("one-stage"))
        trace = [record for record in past if record.stream == TRACE]
        cut = end_before_round(trace, 2)

        def first() -> Session:
            return fork(planned("two-stage", seed=3), past, cut, past=planned("one-stage"))

        forked = await played(log, first())
        end = sum(record.stream == TRACE for record in forked)
        for again in (cut - 3, cut, cut + 5, end - 4):
            session = msgspec.structs.replace(planned("two-stage", seed=3), opened=first().opened)
            second = fork(session, forked, again, past=first())
            rest = after_opening(await played(log, second))
            if again >= cut:
                assert rest == after_opening(forked)
            else:
                assert rest != after_opening(forked)


async def test_a_session_can_be_played_twice() -> None:
    """A fork may be given the very session that was run."""
    async with open_log("memory://") as log:
        one = planned("one-stage")
        past = await played(log, one)
        assert after_opening(await played(log, fork(one, past, 20))) == after_opening(past)


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("again", [True, False])
async def test_a_fork_cut_anywhere_resumes_to_the_same(again: bool, step: int) -> None:
    async with open_log("memory://") as log:
        past = await origin(log)
        old = planned("one-stage") if again else None
        forked = fork(planned("two-stage"), past, end_before_round(past, 3), past=old)
        await run_session(log, forked)
        whole = await trace_of(log, forked.id)
    for cut in range(len(past[: end_before_round(past, 3)]), len(whole), step):
        async with open_log("memory://") as log:
            drafts = [
                Draft(r.event, r.actor, r.role, r.time, None, r.cause, r.seen)  # type: ignore[arg-type]
                for r in whole[:cut]
            ]
            await log.append(forked.id, drafts)
            await run_session(log, forked)
            assert [content(r) for r in await trace_of(log, forked.id)] == [
                content(r) for r in whole
            ]


async def test_an_action_in_flight_at_the_fork_has_its_outcome_there() -> None:
    async with open_log("memory://") as log:
        past = await origin(log)
        taken = next(r.version for r in past if r.kind == "ActionTaken")
        forked = fork(planned("one-stage"), past, taken)
        await run_session(log, forked)
        trace = await trace_of(log, forked.id)
    outcomes = [r.event for r in trace if isinstance(r.event, ActionResolved)]
    assert [o.outcome for o in outcomes if o.action == taken] == ["ok"]


async def test_an_automated_run_can_go_on_with_a_user() -> None:
    async with open_log("memory://") as log:
        alone = TASK.session(Cell(agent="auto", user="none", instance="1", seed=7), Setting())
        await run_session(log, alone)
        past = await trace_of(log, alone.id)
        drafted = next(r.version for r in past if r.kind == "SnapshotTaken")
        forked = fork(planned("one-stage"), past, drafted)
        result = await run_session(log, forked)
    assert result.reason in ("finished", "abandoned")
    assert result.rounds > 1


async def test_where_there_is_nothing_to_fork_it_says_so() -> None:
    async with open_log("memory://") as log:
        past = await origin(log)
    for version in (0, 1, len(past) + 1):
        with pytest.raises(InvalidInput, match=f"at version {version}"):
            fork(planned("two-stage"), past, version)
    with pytest.raises(InvalidInput, match="closed"):
        fork(planned("two-stage"), past, len(past))
    with pytest.raises(Divergence, match="participants"):
        fork(planned("two-stage"), past, 20, past=planned("two-stage"))
    for number in (1, 99):
        with pytest.raises(InvalidInput, match=f"cannot fork at round {number}"):
            end_before_round(past, number)


async def test_a_session_that_was_stopped_is_not_forked_after_the_stop() -> None:
    def stopped() -> Session:
        session = planned("one-stage", 2, user="proactive+strictness=2")
        stop = ToleranceStop(session.id, 2)
        return msgspec.structs.replace(session, stop=stop)

    async with open_log("memory://") as log:
        past = await played(log, stopped())
        trace = [record for record in past if record.stream == TRACE]
        closed = trace[-1].event
        assert isinstance(closed, SessionClosed)
        assert closed.reason == "tolerance"
        with pytest.raises(InvalidInput, match="closed at"):
            fork(stopped(), past, len(trace))
        # A part before the stop can be forked, and is stopped again.
        for cut in range(2, len(trace), 7):
            assert after_opening(await played(log, fork(stopped(), past, cut))) == after_opening(
                past
            )
