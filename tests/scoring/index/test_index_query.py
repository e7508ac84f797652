"""Queries over sessions: their meaning, and the messages for invalid ones."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import product
from pathlib import Path

import anyio
import pytest
from duolog import InvalidInput
from duolog.engine.log.contract import EventLog, SessionSummary
from duolog.engine.log.open import open_log
from duolog.engine.log.ranked import Ranked
from duolog.scoring.index.lines import SessionLines
from duolog.scoring.index.lists import SessionList
from duolog.scoring.index.order import BEGUN, SORT_KEYS, parse_order
from duolog.scoring.index.query import parse_query, split_query
from duolog.scoring.index.select import select
from duolog.scoring.index.sessions import SessionIndex
from duolog.scoring.reviews import Review, add_review
from duolog.testing.records import RecordWriter
from duolog.testing.sessions import put_records
from hypothesis import given
from hypothesis import strategies as st

MENU = SessionSummary(
    session="menu-1-two-stage",
    task="menu",
    instance="1",
    group={"agent": "two-stage", "user": "none"},
    state="finished",
    events=28,
    last=31.4,
)
CHAT = SessionSummary(session="Chat [7]", state="open", opened=1e9, last=1e9 + 90)


@pytest.mark.parametrize(
    ("query", "menu", "chat"),
    [
        ("", True, True),
        ("agent=two-stage", True, False),
        ("agent=TWO-STAGE,auto", True, False),
        ("agent!=two-stage", False, True),
        ("agent=none", False, True),
        ("user=none", True, True),
        ("agent=t*", True, False),
        ("state=open,failed", False, True),
        ("state!=open", True, False),
        ("task=menu instance=1", True, False),
        ("session=*[7]", False, True),
        ('session="chat [7]"', False, True),
        ("lasted=31", True, False),
        ("events=..27", False, True),
        ("two-stage FINISHED", True, False),
        ("chat menu", False, False),
    ],
)
def test_what_a_summary_says_decides(query: str, menu: bool, chat: bool) -> None:
    found = parse_query(split_query(query))
    assert (found.admits(MENU), found.admits(CHAT)) == (menu, chat)
    assert found.admits_measures(1, None, {})


@pytest.mark.parametrize(
    ("query", "met"),
    [
        ("rounds=4", True),
        ("rounds=2..", True),
        ("rounds<4", False),
        ("rounds<=4", True),
        ("rounds!=4", False),
        ("utility=0.667", True),
        ("utility=0.6..0.7", True),
        ("utility=..0.3", False),
        ("utility=..0.3,0.6..", True),
        ("utility>0.7", False),
        ("utility>=0.667", True),
        ("utility=none", False),
        ("utility!=none", True),
        ("tau", True),
        ("tau=2", True),
        ("tau=3", False),
        ("tau=2..3", True),
        ("tau!=2", False),
        ("tau=none", False),
        ("τ>2", False),
        ("utility=0.6.. tau=3", False),
    ],
)
def test_what_was_measured_decides(query: str, met: bool) -> None:
    found = parse_query(split_query(query))
    assert found.admits(MENU)
    assert found.admits_measures(4, 2 / 3, {1: 2, 2: 3}) == met


def test_a_value_that_is_missing() -> None:
    assert parse_query(["utility=none", "tau=none"]).admits_measures(1, None, {})
    assert not parse_query(["tau"]).admits_measures(1, None, {})
    assert not parse_query(["utility=0.."]).admits_measures(1, None, {})


def test_the_tolerances_to_follow() -> None:
    assert parse_query(["rounds=4"]).taus == ()
    assert parse_query(["tau"]).taus == (1, 2, 3)
    assert parse_query(["tau=5..6"]).taus == (1, 2, 3, 5, 6)
    assert parse_query(["tau=7.."]).taus == (1, 2, 3, 7)


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("state=finnished", "unknown state 'finnished'; did you mean 'finished'"),
        ("utility=high", "utility expects a number, a range such as 0.5..0.8, or none, got 'high'"),
        ("utility=", "utility expects a number, a range such as 0.5..0.8, or none, got ''"),
        ("utility=nan", "got 'nan'"),
        ("rounds=1.5", "rounds expects a whole number from 0, .* got '1.5'"),
        ("tau=0", "tau expects a whole number from 1, .* got '0'"),
        ("tau=..", r"got '\.\.'"),
        ("utility=0.8..0.5", "0.8..0.5 is empty"),
        ("agent=", "agent= lacks a value"),
        ("util>0.5", "'util' is not a number: .* did you mean 'utility'"),
    ],
)
def test_what_makes_no_sense_is_named(query: str, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        parse_query(split_query(query))


def test_a_label_that_no_session_has_is_named_with_the_nearest() -> None:
    query = parse_query(["agnet=auto"])
    with pytest.raises(
        InvalidInput, match="unknown label or property 'agnet'; did you mean 'agent'"
    ):
        query.check_labels({"agent", "user"})
    with pytest.raises(InvalidInput, match="sorted by 'utilty'; did you mean 'utility'"):
        parse_order("-utilty").check_label({"agent"})
    with pytest.raises(InvalidInput, match="unknown sort key"):
        parse_order("-")


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("session", "a2 a10 b1"),
        ("-rounds", "b1 a2 a10"),
        ("utility", "a10 b1 a2"),
        ("x", "b1 a2 a10"),
    ],
)
async def test_the_order(order: str, expected: str) -> None:
    async with open_log("memory://") as log:
        for session, rounds, utility, group in (
            ("a10", 1, 0.1, {}),
            ("b1", 3, 0.5, {"x": "1"}),
            ("a2", 2, None, {"x": "2"}),
        ):
            script = RecordWriter(session)
            script.opened(config={"group": group})
            for number in range(rounds):
                script.human("hello")
                draft = script.output(f"plan {number}")
                if utility is not None:
                    script.scored(utility, snapshot=draft)
            await put_records(log, script.records)
        found = [one.session async for one in select(log, parse_query([]), parse_order(order))]
        assert found == expected.split()
        first = [
            one.session async for one in select(log, parse_query([]), parse_order(order), limit=2)
        ]
        assert first == expected.split()[:2]


ASKED = (
    "",
    "odd=1",
    "rounds=3 odd=0",
    "rounds!=3",
    "rounds>2",
    "rounds=none",
    "utility=0.5..",
    "utility=0.7 sort!=none",
    "utility=none",
    "utility!=none",
    "cost=none",
    "cost=..3",
    "latency=..5",
    "tau",
    "tau=2",
    "tau=2..3 rounds=3",
    "tau=none",
    "sort=TEA",
    "sort=tea*,none",
    "sort=Grün",
    "instance=1",
    "instance=none",
    "state=forgotten",
    "state=open",
    "session=s1,s12",
    "lasted=..3",
    "events=5..7",
    "s1",
    "TEA",
    "grün",
    "tea odd=1",
    "tag=dull",
    "tag=none",
    "tag!=dull",
    "reviewer=anna,none",
    "reviewer=anna",
    "rated=2",
)


@asynccontextmanager
async def following(log: EventLog) -> AsyncIterator[SessionIndex]:
    """An index of a log that has read all sessions."""
    index = SessionIndex(log)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(index.run)
        while not index.loaded:
            await index.wait()
        yield index
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
async def test_a_store_that_selects_gives_what_reading_all_gives(
    store: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.setattr("duolog.scoring.index.select.AT_ONCE", 4)
    monkeypatch.setattr("duolog.scoring.index.select._FACTOR", 2)
    server = request.getfixturevalue("postgres") if store == "postgres" else None
    url = f"{tmp_path}/log.db" if server is None else server.url(schema="selects")
    async with open_log(url) as log, open_log("memory://") as read, AsyncExitStack() as stack:
        assert isinstance(log, Ranked)
        assert not isinstance(read, Ranked)
        for number in range(24):
            script = RecordWriter(f"s{number}")
            sort = {"sort": ("Tea", "tea 10", "GRÜN")[number % 3]} if number % 4 else {}
            group = {"odd": str(number % 2), **sort}
            script.opened(config={"group": group})
            for round_ in range(number * 7 % 5):
                script.human("hello")
                draft = script.output(f"plan {round_}")
                if number % 3:
                    script.scored(number * 11 % 10 / 10, snapshot=draft)
                script.rated(round_ + 1, number % 4 + 1)
            for one in (log, read):
                await put_records(one, script.records)
        for one in (log, read):
            await one.forget("s7")
            for reviewed in ("s3", "s4"):
                review = Review(tags=("dull",), rating=2)
                await add_review(one, reviewed, "anna", review, now=lambda: 99.0)
        index = await stack.enter_async_context(following(log))
        orders = ("", "-utility", "sort")
        for text, by in product(ASKED, orders):
            query, order = parse_query(text.split()), parse_order(by) if by else None
            whole = [found.session async for found in select(read, query, order)]
            for limit in (2, 30, None):
                found = [one.session async for one in select(log, query, order, limit=limit)]
                assert found == whole[:limit], (text, by, limit)
            kept = SessionList(index, SessionLines(log), query, order or BEGUN)
            await kept.refresh()
            assert [one.session for one in (await kept.page(30)).sessions] == whole, (text, by)
        for key, sign in product((*SORT_KEYS, "sort"), ("", "-")):
            order = parse_order(sign + key)
            whole = [found.session async for found in select(read, parse_query([]), order)]
            found = [one.session async for one in select(log, parse_query([]), order, limit=5)]
            assert found == whole[:5], (key, sign)


@given(st.text(max_size=60))
def test_any_line_is_a_query_or_refused(line: str) -> None:
    try:
        query = parse_query(split_query(line))
    except InvalidInput:
        return
    query.admits(MENU)
    query.admits_measures(1, 0.5, {1: 1})
    assert len(query.taus) <= 1003
