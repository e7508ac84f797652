"""Lists of sessions: page by page, as the log grows, and the rows that the log keeps for them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import cast

import anyio
import pytest
from duolog.engine.events import FeedbackGiven
from duolog.engine.log.contract import EventLog, Store
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft, Record
from duolog.scoring.index import lists
from duolog.scoring.index.lines import SessionLines
from duolog.scoring.index.lists import SessionList, SessionLists
from duolog.scoring.index.order import SessionOrder, parse_order
from duolog.scoring.index.query import SessionQuery, parse_query
from duolog.scoring.index.select import select
from duolog.scoring.index.sessions import SessionIndex
from duolog.testing.records import RecordWriter
from duolog.testing.sessions import put_records
from gated_log import Gate
from scripted_logs import interleave
from workbench import story


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list is waited for as long as a slow machine needs, unless a test says otherwise."""
    monkeypatch.setattr(lists, "_PATIENCE", 3600.0)


async def put(log: EventLog, number: int, *, utility: float | None = None, **labels: str) -> None:
    """A session of two rounds."""
    script = RecordWriter(f"s-{number}")
    script.opened(clock="virtual", config={"group": labels, "judge": "judge"})
    script.human("hello")
    draft = script.output("a plan")
    if utility is not None:
        script.scored(utility, snapshot=draft)
    script.human("better")
    script.rated(1, 2)
    script.closed()
    await put_records(log, script.records)


async def index_of(log: EventLog, tasks: anyio.abc.TaskGroup) -> SessionIndex:
    index = SessionIndex(log)
    tasks.start_soon(index.run)
    while not index.loaded:
        await index.wait()
    return index


async def loaded(index: SessionIndex, log: EventLog) -> None:
    """Waits until the index has all that the log holds."""
    while index.position < log.statistics().position:
        await index.wait()


@pytest.mark.parametrize(
    "sort", ["-written", "written", "utility", "-utility", "rounds", "session", "agent"]
)
async def test_pages_hold_each_session_once_forwards_and_backwards(sort: str) -> None:
    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        for number in range(23):
            utility = None if number % 5 == 0 else number % 3 / 2
            await put(log, number, utility=utility, agent=f"a{number % 2}")
        index = await index_of(log, tasks)
        listing = SessionList(index, SessionLines(log), parse_query([]), parse_order(sort))
        await listing.refresh()
        pages = [await listing.page(5)]
        while pages[-1].after:
            pages.append(await listing.page(5, after=pages[-1].last))
        found = [one.session for page in pages for one in page.sessions]
        assert len(found) == 23
        assert len(set(found)) == 23
        for page, following in pairwise(pages):
            assert (await listing.page(5, before=following.first)).sessions == page.sessions
        tasks.cancel_scope.cancel()


async def test_a_list_keeps_up_and_a_page_stays_where_it_was() -> None:
    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        for number in range(10):
            await put(log, number, utility=number / 10)
        index = await index_of(log, tasks)
        listing = SessionList(
            index, SessionLines(log), parse_query(["utility=0.2.."]), parse_order("-utility")
        )
        await listing.refresh()
        first = await listing.page(3)
        assert [one.session for one in first.sessions] == ["s-9", "s-8", "s-7"]
        await put(log, 10, utility=0.95)
        await put(log, 11, utility=0.65)
        await put(log, 12, utility=0.1)
        await loaded(index, log)
        await listing.refresh()
        second = await listing.page(3, after=first.last)
        assert [one.session for one in second.sessions] == ["s-11", "s-6", "s-5"]
        assert (await listing.page(1)).sessions[0].session == "s-10"
        assert len(listing) == 10
        tasks.cancel_scope.cancel()


async def test_what_has_changed_follows_from_a_position() -> None:
    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        for number in range(4):
            await put(log, number, agent="a" if number % 2 else "b")
        index = await index_of(log, tasks)
        before = index.position
        query, order = parse_query(["agent=a"]), parse_order("-written")
        changes = SessionLists(index, SessionLines(log)).follow(query, order, before, 0.001)
        first = await anext(changes)
        assert (first.rows, first.gone, first.found, first.total) == ([], [], 2, 4)
        await put(log, 4, agent="b")
        await put(log, 5, agent="a")
        came: list[str] = []
        gone: list[str] = []
        with anyio.fail_after(120):
            async for change in changes:
                came += [session for session, _ in change.rows]
                gone += change.gone
                if change.position == log.statistics().position:
                    break
        assert set(came) == {"s-5"}
        assert set(gone) == {"s-4"}
        # Another server, asked with the position that a page had reached, says the same.
        again = SessionLists(await index_of(log, tasks), SessionLines(log))
        renewed = await anext(again.follow(query, order, before, 0.001))
        assert [session for session, _ in renewed.rows] == ["s-5"]
        tasks.cancel_scope.cancel()


async def test_tolerances_are_filtered_by_records() -> None:
    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        for number in range(3):
            await put(log, number, utility=0.5)
        still = RecordWriter("still")
        still.opened()
        await put_records(log, still.records)
        index = await index_of(log, tasks)
        listing = SessionList(
            index, SessionLines(log), parse_query(["tau=1"]), parse_order("session")
        )
        await listing.refresh()
        assert [one.session for one in (await listing.page(9)).sessions] == ["s-0", "s-1", "s-2"]
        tasks.cancel_scope.cancel()


async def test_what_there_was_no_time_to_look_at_is_looked_at_though_nothing_more_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lists, "_PATIENCE", 0.01)
    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        script = RecordWriter("s")
        script.opened()
        await put_records(log, script.records)
        gate = Gate(log)
        index = await index_of(log, tasks)
        following = SessionLists(index, SessionLines(gate.log))
        query, order = parse_query(["tau=1"]), parse_order("-written")
        changes = following.follow(query, order, index.position, 0.001)
        while not (change := await anext(changes)).complete:
            pass  # a busy machine may have had no time for it
        assert change.found == 0
        gate.shut_reads()
        written = len(script.records)
        script.human("hello")
        script.output("a plan")
        script.human("better")
        script.rated(1, 2)
        await put_records(log, script.records[written:])
        await index.wait()
        with anyio.fail_after(120):
            tasks.start_soon(_release, gate)
            async for change in changes:
                if [session for session, _ in change.rows] == ["s"]:
                    break
        tasks.cancel_scope.cancel()


class CutOff(Gate):
    """Holds up the first reading after three records for longer than a list is waited for."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.read: list[int] = []

    async def read_all(
        self, *, session: str | None = None, after_position: int = 0
    ) -> AsyncIterator[Record]:
        async for record in super().read_all(session=session, after_position=after_position):
            self.read.append(record.position)
            yield record
            if len(self.read) == 3:
                await anyio.sleep_forever()


async def test_a_session_is_read_on_where_a_list_had_no_time_for_it_and_where_it_grew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lists, "_PATIENCE", 0.01)
    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        script = story("s", [2])
        await put_records(log, script.records)
        index, cut = await index_of(log, tasks), CutOff(log)
        lines = SessionLines(cut.log)
        listing = SessionList(index, lines, parse_query(["tau=1"]), parse_order("session"))
        while len(cut.read) < 3:  # a busy machine may have had no time for any record
            await listing.soon()
        assert (len(listing), listing.complete) == (0, False)
        await listing.refresh()
        assert [one.session for one in (await listing.page(9)).sessions] == ["s"]
        written = len(script.records)
        script.output("another plan")
        await put_records(log, script.records[written:])
        await index.wait()
        await listing.refresh()
        assert cut.read == [record.position for record in script.records]
        tasks.cancel_scope.cancel()


async def _release(gate: Gate) -> None:
    await anyio.sleep(0.05)  # longer than a list is waited for
    gate.open_reads()


async def test_a_line_is_read_once_however_many_look_at_it() -> None:
    async with open_log("memory://") as log:
        await put(log, 1, utility=0.5)
        counted = Counting(log)
        lines = SessionLines(counted.log)
        summary = await log.summary("s-1")
        first = await lines.line(summary)
        assert await lines.line(summary) is first
        assert counted.read == ["s-1"]
        await log.append("s-1", [Draft(FeedbackGiven(thumbs="up"), "ann", "human", 9.0)])
        later = await lines.line(await log.summary("s-1"))
        assert later.position > first.position
        assert counted.read == ["s-1", "s-1"]


@pytest.mark.parametrize("where", ["memory://", "log.db"])
async def test_what_was_measured_is_kept_until_the_session_grows(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with open_log(where) as log:
        for number in range(3):
            await put(log, number, utility=number / 10)
        first = [one async for one in select(log, parse_query(["tau"]))]
        counted = Counting(log)
        found = select(counted.log, parse_query(["tau"]), parse_order("-utility"))
        assert [one async for one in found] == first[::-1]
        assert counted.read == []
        await log.append("s-1", [Draft(FeedbackGiven(thumbs="up"), "ann", "human", 9.0)])
        found = select(counted.log, parse_query(["utility=0.."]))
        assert [one.session async for one in found] == ["s-0", "s-1", "s-2"]
        assert counted.read == ["s-1"]
        await log.forget("s-2")
        last = [one async for one in select(counted.log, SessionQuery())][-1]
        assert (last.state, last.utility, last.rounds) == ("forgotten", None, 2)


async def test_what_is_kept_says_as_much_as_the_records() -> None:
    async with open_log("memory://") as log:
        await put_records(log, story("s", [1, 2, 5]).records)
        summary = await log.summary("s")
        lines = SessionLines(log)
        read = await lines.line(summary)
        await lines.keep()
        again = SessionLines(log)
        await again.prefetch([summary])
        kept = again.at_hand(summary)
        assert kept is not None
        assert (kept.rounds, kept.utility, kept.position) == (4, 0.5, summary.position)
        assert (kept.folded, kept.stops(), kept.stall) == (read.folded, {1: 1, 2: 2}, 0)
        assert kept.utilities == (0.5, 0.5, 0.5, 0.5)
        assert kept.efforts("acts") == (1, 1, 1, 1)


async def test_a_list_says_which_session_is_where() -> None:
    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        for number in range(5):
            await put(log, number)
        index = await index_of(log, tasks)
        newest = SessionList(index, SessionLines(log), order=SessionOrder("", descending=True))
        await newest.refresh()
        assert [*newest.places()] == [4, 3, 2, 1, 0]
        assert [*newest.places(1, 3)] == [3, 2]
        assert [newest.rank(place) for place in range(5)] == [4, 3, 2, 1, 0]
        few = SessionList(index, SessionLines(log), parse_query(["session=s-3"]))
        await few.refresh()
        assert ([*few.places()], few.rank(3), few.rank(1)) == ([3], 0, None)
        tasks.cancel_scope.cancel()


async def test_an_index_knows_how_many_sessions_had_begun() -> None:
    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        scripts = [story(f"s{number}", [3]) for number in range(6)]
        await interleave(log, scripts, [0, 1, 0, 2, 2, 1, 3, 4, 0, 5])
        index = await index_of(log, tasks)
        records = [record async for record in log.read_all()]
        for position in range(len(records) + 2):
            begun = {one.session for one in records if one.position <= position}
            assert await index.count_at(position) == len(begun)
        tasks.cancel_scope.cancel()


async def test_the_latest_sessions_are_known_before_the_index_is_read() -> None:
    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        for number in range(4):
            await put(log, number)
        await log.append("s-1", [Draft(FeedbackGiven(thumbs="up"), "ann", "human", 9.0)])
        early = await SessionIndex(log).latest(3)
        index = await index_of(log, tasks)
        assert [one.session for one in early] == ["s-1", "s-3", "s-2"]
        assert await index.latest(3) == early
        assert index.values("state") == {"finished": 4}
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("where", ["memory://", "log.db"])
async def test_an_index_counts_sessions_that_begin_and_end_while_it_follows(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with open_log(where) as log, anyio.create_task_group() as tasks:
        script = RecordWriter("old")
        script.opened(config={"group": {"agent": "a"}})
        await put_records(log, script.records)
        await put(log, 1, agent="a")
        index = await index_of(log, tasks)
        assert index.names == ["old", "s-1"]
        assert index.values("state") == {"open": 1, "finished": 1}
        assert index.values("agent") == {"a": 2}
        written = len(script.records)
        script.human("hello")
        script.closed()
        await put_records(log, script.records[written:])
        await put(log, 2, agent="b")
        with anyio.fail_after(120):
            await loaded(index, log)
        assert index.names == ["old", "s-1", "s-2"]
        assert index.values("state") == {"finished": 3}
        assert index.values("agent") == {"a": 2, "b": 1}
        assert await index.changed_since(0, 3) == [2, 0, 1]
        assert await index.changed_since(0, 2) is None
        assert [one.session async for one in index.newest()] == ["s-2", "s-1", "old"]
        tasks.cancel_scope.cancel()


class Counting:
    """A log that notes which sessions are read."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self.read: list[str | None] = []

    @property
    def log(self) -> EventLog:
        """The log, as it looks from outside."""
        return cast(EventLog, self)

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)

    def read_all(
        self, *, session: str | None = None, after_position: int = 0
    ) -> AsyncIterator[Record]:
        self.read.append(session)
        return self._log.read_all(session=session, after_position=after_position)
