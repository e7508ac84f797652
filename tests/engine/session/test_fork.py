"""Forks: they share a beginning with their origin, and resume like any other session."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import ActionResolved, Origin, SessionOpened
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft, Record
from duolog.engine.session.fork import end_before_round, fork
from duolog.engine.session.runner import Session, run_session
from duolog.engine.task import Cell, Setting
from duolog.examples.travel.task import TravelTask

TASK = TravelTask()


def planned(agent: str, instance: int = 1) -> Session:
    cell = Cell(agent=agent, user="proactive", instance=str(instance), seed=7)
    return TASK.session(cell, Setting())


async def trace_of(log: EventLog, session: str) -> list[Record]:
    return [record async for record in log.read(session)]


def content(record: Record) -> tuple[object, ...]:
    return (
        record.version,
        record.kind,
        record.time,
        record.actor,
        record.cause,
        record.seen,
        record.body,
    )


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
    assert result.reason == "finished"
    assert result.rounds >= number
    assert all(a.time <= b.time for a, b in itertools.pairwise(trace))


async def test_the_same_agent_with_another_seed_goes_on_differently() -> None:
    async with open_log("memory://") as log:
        past = await origin(log)
        version = end_before_round(past, 2)
        ends = []
        for seed in (1, 2):
            again = planned("one-stage")
            again = msgspec.structs.replace(
                again, opened=msgspec.structs.replace(again.opened, seed=seed)
            )
            forked = fork(again, past, version)
            await run_session(log, forked)
            ends.append([content(r) for r in (await trace_of(log, forked.id))[version:]])
    assert ends[0] != ends[1]


async def test_a_fork_cut_anywhere_resumes_to_the_same() -> None:
    async with open_log("memory://") as log:
        past = await origin(log)
        forked = fork(planned("two-stage"), past, end_before_round(past, 3))
        await run_session(log, forked)
        whole = await trace_of(log, forked.id)
    for cut in range(len(past[: end_before_round(past, 3)]), len(whole), 3):
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
    assert result.reason == "finished"
    assert result.rounds > 1


async def test_where_there_is_nothing_to_fork_it_says_so() -> None:
    async with open_log("memory://") as log:
        past = await origin(log)
    for version in (0, 1, len(past) + 1):
        with pytest.raises(InvalidInput, match=f"at version {version}"):
            fork(planned("two-stage"), past, version)
    with pytest.raises(InvalidInput, match="closed"):
        fork(planned("two-stage"), past, len(past))
    for number in (1, 99):
        with pytest.raises(InvalidInput, match=f"no round {number}"):
            end_before_round(past, number)
