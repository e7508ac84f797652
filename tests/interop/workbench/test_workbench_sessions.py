"""The list of sessions: what it holds, page by page, as the log grows, and for whom."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import cast

import anyio
import pytest
from duolog.engine.events import FeedbackGiven, MessageSent
from duolog.engine.log.contract import EventLog, Store
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft, Record
from duolog.interop.workbench.sessions.address import ListAddress, parse_address
from duolog.interop.workbench.sessions.listing import Listing, parse_key
from duolog.interop.workbench.sessions.listings import Listings
from duolog.interop.workbench.sessions.measured import MeasuredRows
from duolog.interop.workbench.sessions.page import searching_note
from duolog.interop.workbench.sessions.table import SessionTable
from duolog.scoring.listing.order import parse_order
from duolog.scoring.listing.query import parse_query
from duolog.scoring.trajectory.options import Options
from duolog.testing.records import RecordWriter
from duolog.testing.sessions import put_records
from gated_log import Gate
from workbench import story, visiting

HOSTILE = "</td><script>alert(1)</script>\u202e"


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


async def table_of(log: EventLog, tasks: anyio.abc.TaskGroup) -> SessionTable:
    table = SessionTable(log)
    tasks.start_soon(table.run)
    while not table.loaded:
        await table.wait()
    return table


@pytest.mark.parametrize("sort", ["-written", "written", "utility", "-utility", "session", "agent"])
async def test_pages_hold_each_session_once_forwards_and_backwards(sort: str) -> None:
    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        for number in range(23):
            utility = None if number % 5 == 0 else number % 3 / 2
            await put(log, number, utility=utility, agent=f"a{number % 2}")
        table = await table_of(log, tasks)
        listing = Listing(log, table, parse_query([]), parse_order(sort))
        await listing.refresh()
        pages = [listing.page(5)]
        while pages[-1].after:
            pages.append(listing.page(5, after=pages[-1].last))
        found = [line.summary.session for page in pages for line in page.sessions]
        assert len(found) == 23
        assert len(set(found)) == 23
        for page, following in pairwise(pages):
            assert listing.page(5, before=following.first).sessions == page.sessions
        tasks.cancel_scope.cancel()


async def test_a_list_keeps_up_and_a_page_stays_where_it_was() -> None:
    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        for number in range(10):
            await put(log, number, utility=number / 10)
        table = await table_of(log, tasks)
        listing = Listing(log, table, parse_query(["utility=0.2.."]), parse_order("-utility"))
        await listing.refresh()
        first = listing.page(3)
        assert [line.summary.session for line in first.sessions] == ["s-9", "s-8", "s-7"]
        await put(log, 10, utility=0.95)
        await put(log, 11, utility=0.65)
        await put(log, 12, utility=0.1)
        while len(table) < 13:
            await table.wait()
        await listing.refresh()
        second = listing.page(3, after=first.last)
        assert [line.summary.session for line in second.sessions] == ["s-11", "s-6", "s-5"]
        assert listing.page(1).sessions[0].summary.session == "s-10"
        assert len(listing) == 10
        tasks.cancel_scope.cancel()


async def test_what_has_changed_follows_from_a_position() -> None:
    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        for number in range(4):
            await put(log, number, agent="a" if number % 2 else "b")
        table = await table_of(log, tasks)
        before = table.position
        address = parse_address([("agent", "a")])
        changes = Listings(log, table).follow(address, before, 0.001)
        first = await anext(changes)
        assert (first.rows, first.gone, first.found, first.total) == ([], [], 2, 4)
        await put(log, 4, agent="b")
        await put(log, 5, agent="a")
        came: list[str] = []
        gone: list[str] = []
        with anyio.fail_after(5):
            async for change in changes:
                came += [session for session, _ in change.rows]
                gone += change.gone
                if change.position == log.statistics().position:
                    break
        assert set(came) == {"s-5"}
        assert set(gone) == {"s-4"}
        # Another server, asked with the position that a page had reached, says the same.
        again = await table_of(log, tasks)
        renewed = await anext(Listings(log, again).follow(address, before, 0.001))
        assert [session for session, _ in renewed.rows] == ["s-5"]
        tasks.cancel_scope.cancel()


async def test_tolerances_are_filtered_by_records() -> None:
    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        for number in range(3):
            await put(log, number, utility=0.5)
        still = RecordWriter("still")
        still.opened()
        await put_records(log, still.records)
        table = await table_of(log, tasks)
        listing = Listing(log, table, parse_query(["tau=1"]), parse_order("session"))
        await listing.refresh()
        assert [line.stops for line in listing.page(9).sessions] == [{1: 1}] * 3
        tasks.cancel_scope.cancel()


async def test_what_there_was_no_time_to_look_at_is_looked_at_though_nothing_more_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("duolog.interop.workbench.sessions.listing._PATIENCE", 0.01)
    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        script = RecordWriter("s")
        script.opened()
        await put_records(log, script.records)
        gate = Gate(log)
        table = await table_of(log, tasks)
        address = parse_address([("tau", "1")])
        changes = Listings(gate.log, table).follow(address, table.position, 0.001)
        assert (await anext(changes)).found == 0
        gate.shut_reads()
        written = len(script.records)
        script.human("hello")
        script.output("a plan")
        script.human("better")
        script.rated(1, 2)
        await put_records(log, script.records[written:])
        await table.wait()
        with anyio.fail_after(5):
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
    monkeypatch.setattr("duolog.interop.workbench.sessions.listing._PATIENCE", 0.01)
    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        script = story("s", [2])
        await put_records(log, script.records)
        table, cut = await table_of(log, tasks), CutOff(log)
        listing = Listing(cut.log, table, parse_query(["tau=1"]), parse_order("session"))
        await listing.soon()
        assert (len(listing), listing.complete) == (0, False)
        await listing.refresh()
        assert [line.stops for line in listing.page(9).sessions] == [{1: 1}]
        written = len(script.records)
        script.output("another plan")
        await put_records(log, script.records[written:])
        await table.wait()
        await listing.refresh()
        assert cut.read == [record.position for record in script.records]
        tasks.cancel_scope.cancel()


async def _release(gate: Gate) -> None:
    await anyio.sleep(0.05)  # longer than a list is waited for
    gate.open_reads()


def test_an_address_holds_all_and_leads_back() -> None:
    given = [("q", "utility=..0.3 dinner"), ("agent", "two stage"), ("tau", "any")]
    given += [("sort", "-utility"), ("effort", "acts"), ("after", "[0.5,7]")]
    address = parse_address(given)
    assert address.parameters() == given
    assert str(address).startswith("/sessions?q=utility%3D..0.3+dinner&agent=two+stage&tau=any")
    assert address.query.tolerances
    assert str(ListAddress()) == "/sessions"
    for key in ("[0.5,7]", "[null,3]", '[[["a",3],["",0]],1]'):
        assert parse_key(key)


@pytest.mark.parametrize(
    "query", ["state=wrong", "effort=money", "after=x", "after=%5B%22a%22%2C1%5D", "utility=a..b"]
)
async def test_an_address_that_makes_no_sense_is_answered_by_what_is_wrong(query: str) -> None:
    async with open_log("memory://") as log, visiting(log) as visitor:
        await put(log, 1, utility=1.0)
        page = await visitor.get(f"/sessions?{query}")
        assert page.status_code == 400
        assert 'role="alert"' in page.text
        assert (await visitor.get(f"/v1/sessions/rows?{query}")).status_code == 400


async def test_the_page_escapes_what_sessions_are_called() -> None:
    async with open_log("memory://") as log:
        script = RecordWriter(HOSTILE)
        script.opened(config={"group": {HOSTILE: HOSTILE, "agent": HOSTILE}})
        await put_records(log, script.records)
        async with visiting(log) as visitor:
            page = (await visitor.get("/sessions")).text
            rows = await visitor.data("/v1/sessions/rows", of=HOSTILE)
        for text in (page, rows["rows"][HOSTILE]):
            assert "<script>alert" not in text
            assert "&lt;script&gt;" in text
            assert "\u202e</a>" not in text


@pytest.mark.parametrize(
    ("role", "status"), [("operator", 200), ("viewer", 200), ("participant", 403)]
)
async def test_the_list_is_for_those_to_whom_all_sessions_are_open(role: str, status: int) -> None:
    async with open_log("memory://") as log:
        await put(log, 1, utility=1.0)
        async with visiting(log, role) as visitor:
            for path in ("/sessions", "/v1/sessions/rows?of=s-1"):
                answer = await visitor.get(path)
                assert answer.status_code == status
                assert ("s-1" in answer.text) == (status == 200)
            if status == 403:
                assert (await visitor.get("/v1/sessions/stream")).status_code == 403


async def test_a_deep_link_shows_the_same_again() -> None:
    async with open_log("memory://") as log:
        for number in range(60):
            await put(log, number, utility=number % 7 / 10, agent=f"a{number % 2}")
        async with visiting(log) as visitor:
            page = await visitor.get("/sessions", agent="a1", sort="-utility")
            [following] = re.findall(r'href="([^"]*after=[^"]*)"', page.text) or [""]
            assert "30 of 60 sessions" in page.text
            assert not following  # they fit on a page
            page = await visitor.get("/sessions", sort="-utility")
            [following] = re.findall(r'href="([^"]*after=[^"]*)"', page.text)
            link = following.replace("&amp;", "&")
            second = await visitor.client.get(link)
            assert len(re.findall("<tr data-session", second.text)) == 10
            assert (await visitor.client.get(link)).text == second.text


async def test_rows_are_measured_as_the_session_grows() -> None:
    async with open_log("memory://") as log:
        script = RecordWriter("live")
        script.opened(clock="utc")
        script.human("hello")
        await put_records(log, script.records)
        async with visiting(log) as visitor:
            first = await visitor.data("/v1/sessions/rows", of="live", effort="acts")
            assert "in all 1" in first["rows"]["live"]
            await log.append("live", [Draft(MessageSent(text="more"), "ann", "human", 9.0)])
            second = await visitor.data("/v1/sessions/rows", of="live", effort="acts")
            assert "in all 2" in second["rows"]["live"]


@pytest.mark.parametrize(
    ("looked", "loaded", "complete", "note"),
    [
        (0, False, False, "the latest ones; reading the list: 2,000 sessions so far …"),
        (1500, False, False, "3 of 1,500 sessions so far; reading the list …"),
        (1500, True, False, "3 found in 1,500 of 2,000 sessions …"),
        (2000, True, True, "3 of 2,000 sessions"),
    ],
)
def test_a_list_says_what_is_still_being_read(
    looked: int, loaded: bool, complete: bool, note: str
) -> None:
    assert searching_note(3, 2000, looked, loaded=loaded, complete=complete) == note


async def test_a_row_is_read_once_however_many_look_at_it() -> None:
    async with open_log("memory://") as log:
        await put(log, 1, utility=0.5)
        counted = Counting(log)
        rows = MeasuredRows(cast(EventLog, counted), Options())
        summary = await log.summary("s-1")
        first = await rows.row(summary, "rounds")
        assert await rows.row(summary, "rounds") is first
        assert counted.count == 1
        await log.append("s-1", [Draft(FeedbackGiven(thumbs="up"), "ann", "human", 9.0)])
        later = await rows.row(await log.summary("s-1"), "rounds")
        assert later.since > first.since
        assert counted.count == 2


class Counting:
    """A log that counts how often it is read."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self.count = 0

    def read_all(
        self, *, session: str | None = None, after_position: int = 0
    ) -> AsyncIterator[Record]:
        self.count += 1
        return self._log.read_all(session=session, after_position=after_position)
