"""The list of ``watch``, filtered and sorted, without a terminal: while the log grows, and back in time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from duolog.cli.watch.state import WatchedLog
from duolog.engine.errors import LogUnavailable
from duolog.engine.log.contract import EventLog, SessionSummary
from duolog.engine.log.open import MemoryLog
from duolog.scoring.columns.rows import SessionFold
from duolog.scoring.trajectory.options import Options
from duolog.testing.sessions import put_records
from scripted_logs import script_of

SESSIONS = {
    "a-10": ["human", "agent", "draft", "score", "human", "close"],
    "a-9": ["human", "agent", "human", "bad", "agent"],
    "b-1": ["human", "agent", "human", "agent", "human", "agent"],
}


@asynccontextmanager
async def watching(log: EventLog) -> AsyncIterator[WatchedLog]:
    """Watches a log, its whole list in view."""
    watched = WatchedLog(log, Options())
    watched.changed = lambda: watched.show(0, watched.listed)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watched.run)
        await settle(watched)
        yield watched
        tasks.cancel_scope.cancel()


async def settle(watched: WatchedLog) -> None:
    with anyio.fail_after(120):
        while not watched.settled:  # noqa: ASYNC110
            await anyio.sleep(0.002)


@asynccontextmanager
async def three() -> AsyncIterator[tuple[EventLog, WatchedLog]]:
    async with MemoryLog() as log:
        for name, moves in SESSIONS.items():
            await put_records(log, script_of(moves, name).records)
        async with watching(log) as watched:
            yield log, watched


async def listed(watched: WatchedLog) -> list[str]:
    """The rows of the list, from the top."""
    await settle(watched)
    return watched.sessions(0, watched.listed)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "b-1 a-9 a-10"),
        ("A-", "a-9 a-10"),
        ("state=open", "b-1 a-9"),
        ("tau", "a-9"),
        ("utility=0..", "a-10"),
        ("rounds=2.. session=*-1*", "b-1 a-10"),
        ("nothing like it", ""),
    ],
)
async def test_the_list_is_what_meets_the_query(query: str, expected: str) -> None:
    async with three() as (_, watched):
        watched.selection.search(query)
        assert await listed(watched) == expected.split()
        assert watched.count == 3


async def test_the_list_is_sorted() -> None:
    async with three() as (_, watched):
        watched.selection.sort("session")
        assert await listed(watched) == ["a-9", "a-10", "b-1"]
        watched.selection.reverse()
        assert await listed(watched) == ["b-1", "a-10", "a-9"]
        watched.selection.search("a-")
        assert await listed(watched) == ["a-10", "a-9"]
        assert watched.selection.order == "session ↓"
        watched.selection.sort(None)
        watched.selection.reverse()
        assert await listed(watched) == ["a-10", "a-9"]


async def test_a_key_goes_through_the_orders_and_ends_with_the_first() -> None:
    async with three() as (_, watched):
        seen = []
        for _ in range(7):
            watched.selection.next_order()
            seen.append(watched.selection.order)
        assert seen[0] == "written ↓"
        assert seen[-1] == ""
        assert len(set(seen)) == 7


async def test_the_list_follows_the_log() -> None:
    async with three() as (log, watched):
        watched.selection.search("state=open")
        watched.selection.sort("-rounds")
        assert await listed(watched) == ["b-1", "a-9"]
        await put_records(log, script_of([*SESSIONS["b-1"], "close"], "b-1").records[7:])
        await put_records(log, script_of(["human", "agent"] * 5, "new").records)
        with anyio.fail_after(120):
            while await listed(watched) != ["new", "a-9"]:  # noqa: ASYNC110
                await anyio.sleep(0.002)


async def test_back_in_time_the_list_leaves_out_what_had_not_begun() -> None:
    async with three() as (_, watched):
        watched.selection.search("a-")
        await settle(watched)
        watched.select("a-10")
        await settle(watched)
        watched.go(2)
        assert await listed(watched) == ["a-10"]
        assert (watched.rank("a-10"), watched.rank("a-9")) == (0, None)
        watched.follow()
        assert await listed(watched) == ["a-9", "a-10"]


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("state=opne", "unknown state 'opne'; did you mean 'open'"),
        ("agent=", "lacks a value"),
        ("agnet=auto", "unknown label or property 'agnet'"),
    ],
)
async def test_what_is_no_query_leaves_the_list_as_it_is(query: str, complaint: str) -> None:
    async with three() as (_, watched):
        watched.selection.search("a-")
        assert await listed(watched) == ["a-9", "a-10"]
        watched.selection.search(query)
        assert await listed(watched) == ["a-9", "a-10"]
        assert complaint in watched.selection.problem
        watched.selection.search(query)
        await settle(watched)
        assert complaint in watched.selection.problem
        watched.selection.search("a-")
        assert watched.selection.problem == ""
        watched.selection.search("b")
        assert await listed(watched) == ["b-1"]
        assert watched.selection.problem == ""


async def test_a_change_that_could_not_be_read_at_once_is_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    summary = MemoryLog.summary
    failed: list[str] = []

    async def failing(log: MemoryLog, session: str) -> SessionSummary:
        if not failed:
            failed.append(session)
            raise LogUnavailable("for a moment")
        return await summary(log, session)

    async with three() as (log, watched):
        watched.selection.search("state=open")
        assert await listed(watched) == ["b-1", "a-9"]
        monkeypatch.setattr(MemoryLog, "summary", failing)
        await put_records(log, script_of([*SESSIONS["a-9"], "close"], "a-9").records[-1:])
        with anyio.fail_after(120):
            while await listed(watched) != ["b-1"]:  # noqa: ASYNC110
                await anyio.sleep(0.01)
    assert failed == ["a-9"]


async def test_a_session_that_changes_is_folded_on(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def fold(session: str, options: Options) -> SessionFold:
        made.append(session)
        return SessionFold(session, options)

    monkeypatch.setattr("duolog.scoring.index.lines.SessionFold", fold)
    async with three() as (log, watched):
        watched.selection.search("tau=1")
        assert await listed(watched) == ["a-9"]
        more = script_of([*SESSIONS["a-9"], "human", "human", "close"], "a-9").records[-3:]
        for record in more:
            await put_records(log, [record])
            with anyio.fail_after(120):
                while watched.selection.list.position < log.statistics().position:  # noqa: ASYNC110
                    await anyio.sleep(0.002)
        assert await listed(watched) == ["a-9"]
    assert sorted(made) == [*SESSIONS]
